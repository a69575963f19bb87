"""The line between supervisors, on real sockets."""

import functools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpubench.node import control_channel as hubs
from gpubench.node.control_channel import Connection, ControlServer, join
from tests.node.runners import until

Message = dict[str, Any]


@pytest.fixture
def server() -> Iterator[ControlServer]:
    made = ControlServer("127.0.0.1", "secret")
    yield made
    made.close()


@pytest.fixture
def call(server: ControlServer) -> Iterator[Callable[..., Connection]]:
    lines: list[Connection] = []

    def connect(token: str = "secret", rank: int = 1) -> Connection:
        lines.append(join(server.host, server.port, token, rank=rank, facts={"host": f"n{rank}"}, timeout_s=10))
        return lines[-1]

    yield connect
    for line in lines:
        line.close()


def poll_until(server: ControlServer, condition: Callable[[list[Message]], object]) -> list[Message]:
    """Poll until the messages so far fulfil the condition."""
    found: list[Message] = []
    deadline = time.monotonic() + 150
    while not condition(found):
        assert time.monotonic() < deadline, found
        found += server.poll(0.02)
    return found


def hear(line: Connection, count: int = 1) -> list[Message]:
    found: list[Message] = []
    deadline = time.monotonic() + 150
    while len(found) < count:
        assert line.open
        assert time.monotonic() < deadline, found
        found += line.receive()
        time.sleep(0.002)
    return found


def closed(line: Connection) -> bool:
    assert line.receive() == []
    return not line.open


def test_who_knows_the_token_is_let_in_and_every_message_carries_the_senders_rank(
    server: ControlServer, call: Any
) -> None:
    for rank in (2, 1):
        call(rank=rank).send({"kind": "died", "cause": rank})
    found = poll_until(server, lambda found: len(found) == 4)
    assert sorted(server.connections) == [1, 2]
    for rank in (1, 2):
        first, second = [message for message in found if message["rank"] == rank]
        assert (first["kind"], first["facts"]) == ("hello", {"host": f"n{rank}"})
        assert (second["kind"], second["cause"]) == ("died", rank)


def test_who_does_not_know_the_token_is_shown_the_door(server: ControlServer, call: Any) -> None:
    stranger = call(token="guess")
    stranger.send({"kind": "died", "cause": "nonsense"})
    guest = call(rank=2)
    found = poll_until(server, lambda found: len(found) == 1)
    assert found[0]["rank"] == 2
    poll_until(server, lambda _: closed(stranger))
    assert list(server.connections) == [2]
    assert guest.open


@pytest.mark.parametrize("sent", [b'{"kind": "died"}\n', b'{"kind": "hello"}\n', b'{"kind": "hello", "token": null}\n'])
def test_whoever_says_something_else_first_is_shown_the_door(server: ControlServer, sent: bytes) -> None:
    with socket.create_connection((server.host, server.port), timeout=10) as sock:
        sock.sendall(sent)
        stranger = Connection(sock)
        found = poll_until(server, lambda _: closed(stranger))
    assert found == []
    assert server.connections == {}


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xfe\n", b"[]\n", b"7\n", b"\n", b"[" * 60_000 + b"\n", b"9" * 60_000 + b"\n"],
    ids=["HTTP", "no UTF-8", "a list", "a number", "an empty line", "nested too deeply", "a number of many digits"],
)
def test_noise_is_no_message_and_harms_nobody(server: ControlServer, call: Any, sent: bytes) -> None:
    with socket.create_connection((server.host, server.port), timeout=10) as sock:
        sock.sendall(sent)
        call(rank=1)
        found = poll_until(server, lambda found: len(found) == 1)
    assert found[0]["kind"] == "hello"
    assert list(server.connections) == [1]


def test_messages_arrive_whole_however_the_network_cuts_them(server: ControlServer, call: Any) -> None:
    line = call()
    poll_until(server, lambda found: len(found) == 1)
    text = b"".join(json.dumps({"kind": "x", "text": "ü" * number}).encode() + b"\n" for number in range(5))
    found: list[Message] = []
    for start in range(0, len(text), 7):
        line.sock.sendall(text[start : start + 7])
        found += server.poll(0.02)
    found += poll_until(server, lambda more: len(found) + len(more) == 5)
    assert [message["text"] for message in found] == ["ü" * number for number in range(5)]


def test_a_line_that_never_ends_is_closed(server: ControlServer, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "LARGEST_LINE", 100_000)
    line = call()
    poll_until(server, lambda found: len(found) == 1)

    def babble() -> None:
        while line.open:
            line.send({"kind": "x", "text": "x" * 300_000})

    sender = threading.Thread(target=babble)
    sender.start()
    poll_until(server, lambda _: server.gone(1e9) == [1])
    sender.join()


def test_a_farewell_arrives_whole_although_heartbeats_lie_unread(server: ControlServer, call: Any) -> None:
    line = call()
    poll_until(server, lambda found: len(found) == 1)
    server.broadcast({"kind": "beat"})
    logs = "x" * 8_000_000

    def leave() -> None:
        line.send({"kind": "final_report", "logs": logs})
        line.finish(30)

    leaver = threading.Thread(target=leave)
    leaver.start()
    (final_report,) = poll_until(server, lambda found: len(found) == 1)
    poll_until(server, lambda _: server.gone(1e9) == [1])
    leaver.join()
    assert final_report["logs"] == logs
    assert not line.open
    server.broadcast({"kind": "stop"})  # to whoever is still there


def test_a_farewell_does_not_wait_for_ever_for_one_who_does_not_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        line = Connection(socket.create_connection(deaf.getsockname()[:2], timeout=10))
        line.send({"kind": "final_report"})
        line.finish(0.05)
        assert not line.open


def test_heartbeats_renew_the_line_and_are_no_messages(
    server: ControlServer, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "BEAT_S", 0.0)
    line = call()
    poll_until(server, lambda found: len(found) == 1)
    before = server.connections[1].received_at
    line.beat()
    assert poll_until(server, lambda _: server.connections[1].received_at > before) == []
    before = line.received_at

    def has_beaten() -> bool:
        assert server.poll(0.01) == line.receive() == []  # the server beats by itself while it is polled
        return line.received_at > before

    until(has_beaten)


def test_a_heart_does_not_beat_more_often_than_it_must(call: Any) -> None:
    line = call()
    line.beat()
    beaten = line.beat_at
    line.beat()
    assert line.beat_at == beaten > 0


def test_a_silent_line_is_noticed_and_a_speaking_one_is_not(server: ControlServer, call: Any) -> None:
    call(rank=1)
    speaking = call(rank=2)
    poll_until(server, lambda found: len(found) == 2)
    server.connections[1].received_at -= 100
    assert server.gone(50) == [1]
    assert server.gone(1e9) == []
    assert speaking.silence() < 50
    speaking.received_at -= 100
    assert speaking.silence() > 50


def test_rank_0_reaches_everybody_and_its_end_is_noticed_at_once(server: ControlServer, call: Any) -> None:
    lines = [call(rank=rank) for rank in (1, 2)]
    poll_until(server, lambda found: len(found) == 2)
    server.broadcast({"kind": "stop", "whole_logs": True})
    assert [hear(line) for line in lines] == [[{"kind": "stop", "whole_logs": True}]] * 2
    server.close()
    for line in lines:
        until(functools.partial(closed, line))


def test_the_hub_listens_on_the_given_address_only(server: ControlServer) -> None:
    assert server.host == "127.0.0.1"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=10)


def test_a_caller_that_never_names_itself_is_dropped(server: ControlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "HELLO_S", 0.5)
    monkeypatch.setattr(hubs, "BEAT_S", 0.1)
    with socket.create_connection((server.host, server.port)) as caller:
        caller.setblocking(False)

        def dropped(_: list[Message]) -> bool:
            try:
                caller.send(b"x")  # what it sends without a name doesn't prolong its stay
                return caller.recv(1) == b""
            except BlockingIOError:
                return False
            except ConnectionError:
                return True

        poll_until(server, dropped)
