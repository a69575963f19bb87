"""Turns: the conductor gives them, a client takes them, and who is gone or hangs costs the others nothing."""

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpubench.node import rendezvous
from gpubench.node.control_channel import Connection, ControlServer, join
from gpubench.node.run_node import RunNode
from gpubench.node.spec.plain import SpecError
from gpubench.node.spec.turns import END, START, TURNS_SPEC, Turn, TurnsSpec, rendezvous_name
from gpubench.node.stop import StopRequest
from gpubench.node.supervisor import Leader, NodeLostError
from gpubench.node.turns import DONE, OVER, PAUSE, PAUSED, TURN, ClientTurns, ConductorGoneError, Turns, conduct
from tests.node.runners import NeverAsked, until

TOKEN = "5eed"


def spec(turns: list[Turn], runs: int = 2, **changes: float) -> TurnsSpec:
    bounds = {"start_s": 60.0, "turn_s": 60.0, "silence_s": 60.0, **changes}
    names = {str(order): f"run{order}" for order in range(runs)}
    return TurnsSpec(TURNS_SPEC, "c", 3, names, "lo", turns, **bounds)


class Member:
    """The leader of a run, as far as turns go."""

    def __init__(self, runs: Path, order: int) -> None:
        path = rendezvous.path_for(runs, rendezvous_name(3), TOKEN)
        facts = rendezvous.wait(path, TOKEN, time.monotonic() + 60, lambda: False)
        host, port = facts["server"]
        self.line: Connection = join(host, port, TOKEN, rank=order, facts={}, timeout_s=60)

    def hear(self) -> dict[str, object]:
        """The next message."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.line.receive()
            if found:
                self.line.put_back(found[1:])
                return found[0]
            assert self.line.open
            time.sleep(0.005)
        raise AssertionError("nothing was said")

    def done(self) -> None:
        self.line.send({"kind": DONE})


@contextlib.contextmanager
def conducted(runs: Path, what: TurnsSpec) -> Iterator[Callable[[int], Member]]:
    thread = threading.Thread(target=conduct, args=(what, runs, TOKEN, NeverAsked()))
    thread.start()
    with contextlib.ExitStack() as lines:

        def come(order: int) -> Member:
            member = Member(runs, order)
            lines.callback(member.line.close)
            return member

        yield come
        thread.join(60)
    assert not thread.is_alive()
    assert not list(runs.glob(".rendezvous*"))


def test_turns_come_in_the_order_of_the_plan_one_at_a_time(tmp_path: Path) -> None:
    turns = [Turn(1, 0, 2), Turn(0, 0, 2), Turn(0, 1, 2), Turn(1, 1, 2)]
    with conducted(tmp_path, spec(turns)) as come:
        members = [come(order) for order in (0, 1)]
        for turn in turns:
            assert members[turn.order].hear() == {"kind": TURN, "workload": turn.workload}
            assert not members[1 - turn.order].line.receive()  # nobody else works meanwhile
            members[turn.order].done()


def test_clusters_start_together_and_end_together_and_none_works_before_all_stand(tmp_path: Path) -> None:
    turns = [Turn(0, START), Turn(1, START), Turn(0, 0, 2), Turn(0, END), Turn(1, END)]
    with conducted(tmp_path, spec(turns)) as come:
        members = [come(order) for order in (0, 1)]
        for member in members:
            assert member.hear() == {"kind": TURN, "workload": START}
        members[0].done()
        time.sleep(0.2)
        assert not members[0].line.receive()
        members[1].done()
        assert members[0].hear() == {"kind": TURN, "workload": 0}
        assert not members[1].line.receive()
        members[0].done()
        for member in reversed(members):
            assert member.hear() == {"kind": TURN, "workload": END}
            member.line.close()


def test_a_run_that_is_gone_loses_its_turns_and_the_other_goes_on(tmp_path: Path) -> None:
    turns = [Turn(0, START), Turn(1, START), Turn(0, 0, 1), Turn(1, 0, 1), Turn(0, 1, 1), Turn(1, 1, 1)]
    with conducted(tmp_path, spec(turns)) as come:
        first, second = (come(order) for order in (0, 1))
        first.hear()
        first.done()
        second.hear()
        first.line.close()
        second.done()
        assert [second.hear()["workload"], second.done(), second.hear()["workload"], second.done()][::2] == [0, 1]


def test_a_run_that_keeps_its_turn_is_told_that_it_has_lost_the_others(tmp_path: Path) -> None:
    turns = [Turn(0, 0, 1), Turn(1, 0, 1), Turn(0, 1, 1)]
    with conducted(tmp_path, spec(turns, turn_s=0.3, silence_s=30.0)) as come:
        hanging, other = (come(order) for order in (0, 1))
        assert hanging.hear()["kind"] == TURN
        told = hanging.hear()
        assert (told["kind"], "didn't give its turn back within 0.3 s" in str(told["reason"])) == (OVER, True)
        hanging.line.close()
        assert other.hear() == {"kind": TURN, "workload": 0}
        other.done()


def test_who_never_comes_is_not_waited_for_longer_than_a_start_may_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with conducted(tmp_path, spec([Turn(0, START), Turn(1, START)], start_s=0.5)) as come:
        there = come(1)
        assert there.hear() == {"kind": TURN, "workload": START}
        there.done()
    assert "block 3 continues without run [0]" in capsys.readouterr().err


def test_without_a_conductor_a_run_is_lost_and_has_not_failed(tmp_path: Path) -> None:
    run = SimpleNamespace(run="run0", block=3, order=0, deadlines=SimpleNamespace(start_s=0.3))
    node = cast("RunNode", SimpleNamespace(spec=run, runs_dir=tmp_path))
    leader = Leader(node, tmp_path, TOKEN, cast("StopRequest", NeverAsked()))
    with pytest.raises(NodeLostError, match="no turns: no conductor of its block within "):
        leader.join_block()
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        rendezvous.publish(
            rendezvous.path_for(tmp_path, rendezvous_name(3), TOKEN), TOKEN, {"server": list(gone.getsockname())}
        )
        with pytest.raises(NodeLostError, match="no turns: the conductor of its block doesn't answer: "):
            leader.join_block()


class Waits(NeverAsked):
    """Says when a wait really waits, and how often one came back at once."""

    def __init__(self) -> None:
        self.asleep = threading.Event()
        self.at_once = 0

    def wait(self, handles: Sequence[Any], timeout_s: float) -> None:
        if select.select(handles, [], [], 0)[0]:
            self.at_once += 1
        else:
            self.asleep.set()
        super().wait(handles, timeout_s)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_leader_whose_nodes_pause_sleeps_until_they_answer_whatever_the_conductor_does(
    is_there: bool, tmp_path: Path
) -> None:
    spec = SimpleNamespace(run="run0", deadlines=SimpleNamespace(silence_s=60.0), place=str)
    node = cast("RunNode", SimpleNamespace(spec=spec, runs_dir=tmp_path, load=SimpleNamespace(tick=lambda: 1.0)))
    waits, (conductor, mine) = Waits(), socket.socketpair()
    leader = Leader(node, tmp_path, TOKEN, cast("StopRequest", waits))
    turns = leader.turns = Turns(node, Connection(mine))
    with contextlib.ExitStack() as opened:
        server = ControlServer("127.0.0.1", TOKEN)
        for one in (conductor, turns, server):
            opened.callback(one.close)
        turns.wake(server)
        peer = join(server.host, server.port, TOKEN, rank=1, facts={}, timeout_s=60)
        opened.callback(peer.close)
        until(lambda: leader._receive(server, fatal=True) and leader.peers)
        conductor.sendall(json.dumps({"kind": TURN, "workload": 3}).encode() + b"\n")
        if not is_there:
            conductor.close()
        waits.asleep.clear()
        telling = threading.Thread(target=leader._tell_all, args=(server, PAUSE, PAUSED))
        telling.start()
        until(lambda: waits.asleep.is_set() or waits.at_once > 1000)
        asleep = waits.asleep.is_set()
        peer.send({"kind": PAUSED})
        telling.join(60)
        assert not telling.is_alive()
        assert asleep
        if is_there:
            assert turns.asked() == {"kind": TURN, "workload": 3}
        else:
            with pytest.raises(ConductorGoneError, match="is gone"):
                turns.asked()


def test_a_client_gives_back_the_turns_of_workloads_that_have_ended_early() -> None:
    mine, clients = socket.socketpair()
    turns = ClientTurns(clients.detach())
    for workload in (0, 0, 1, 2, END):
        mine.sendall(json.dumps({"kind": TURN, "workload": workload}).encode() + b"\n")
    with pytest.raises(ValueError, match="broken"), turns.all_of(0):
        raise ValueError("broken")
    with turns.all_of(2):
        pass
    turns.begin(END)
    is_returned = [json.loads(line) for line in mine.recv(4096).splitlines()]
    assert is_returned == [{"kind": DONE}] * 4  # 0 that failed, 0, 1, and 2
    mine.close()


def test_a_workload_that_is_ended_between_its_turns_gives_back_none() -> None:
    mine, clients = socket.socketpair()
    turns = ClientTurns(clients.detach())
    mine.sendall(json.dumps({"kind": TURN, "workload": 0}).encode() + b"\n")
    with turns.all_of(0):
        turns.end()  # as ``switch`` does, before it waits: and there the workload is ended
    mine.sendall(json.dumps({"kind": TURN, "workload": 1}).encode() + b"\n")
    with turns.all_of(1):
        pass
    assert [json.loads(line) for line in mine.recv(4096).splitlines()] == [{"kind": DONE}] * 2
    mine.close()


def test_turns_are_written_a_line_each_and_read_as_they_were() -> None:
    written = spec([Turn(0, START), Turn(1, 0, 3)])
    text = written.dump()
    assert '  {"order": 1, "workload": 0, "reps": 3}\n' in text
    assert TurnsSpec.parse(text) == written
    for wrong, why in (("{", "is not JSON"), ("{}", "is not a gpubench/turns/1"), (text.replace("reps", "r"), "Turn")):
        with pytest.raises(SpecError, match=why):
            TurnsSpec.parse(wrong, "turns.json")
