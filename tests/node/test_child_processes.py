"""Children of a supervisor, for real: none outlives it, however it ends."""

import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.node import forked
from gpubench.node.process import Child, Planned, command, describe_exit, role_words, stop_all
from gpubench.node.run_node import maps_anywhere
from gpubench.node.workloads.process_reaper import marked
from tests.node.runners import until
from tests.node.specs_by_hand import quiet_environment

SUPERVISOR = """
import os, sys
from pathlib import Path
from gpubench.node.process import Child
role = '''
import os, sys, time
from gpubench.node.process import die_with_parent
die_with_parent(int(sys.argv[1]))
open("ready", "w").close()
time.sleep(600)
'''
child = Child("worker", [sys.executable, "-c", role, str(os.getpid())], dict(os.environ), Path(sys.argv[1]))
print(child.process.pid, flush=True)
child.process.wait()
"""
ORPHAN = """
from gpubench.node.process import die_with_parent
die_with_parent(1)  # whose child this process is not
print("lives")
"""


def gone(pid: int) -> bool:
    """Dead, and at most waiting for whoever inherited it to notice."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def shell(tmp_path: Path, text: str, name: str = "worker") -> Child:
    return Child(name, ["bash", "-c", text], quiet_environment(), tmp_path)


def test_a_child_dies_with_its_supervisor_also_when_that_is_killed(tmp_path: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert supervisor.stdout
    pid = int(supervisor.stdout.readline())
    until((tmp_path / "ready").exists)
    assert not gone(pid)
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    supervisor.stdout.close()
    until(lambda: gone(pid))


def test_a_child_whose_supervisor_died_before_it_could_ask_ends_by_itself() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_child_has_the_given_environment_directory_and_log_and_no_input(tmp_path: Path) -> None:
    child = Child("worker", ["bash", "-c", 'echo "$PWD $A"; echo wrong >&2; cat; exit 3'], {"A": "b"}, tmp_path)
    child.process.wait(150)
    assert (tmp_path / "worker.log").read_text() == f"{tmp_path} b\nwrong\n"
    assert child.cause() == {"process": "worker", "how": "exit code 3: wrong", "last_lines": [f"{tmp_path} b", "wrong"]}


RAISED = """
Traceback (most recent call last):
  File "nvml.py", line 299, in get_device_index_and_uuid
pynvml.NVMLError_NotFound: Not Found

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "core.py", line 517, in start
RuntimeError: Scheduler failed to start.
"""
"""The end of a scheduler's log on a node whose job was given no GPU (distributed 2026.7.1), shortened."""


LATER = f"""{RAISED}
2026-11-27 09:19:06,637 - distributed.worker - INFO - goes on
Traceback (most recent call last):
  File "worker.py", line 1, in run
MemoryError: out of memory
"""

UNREACHABLE = """
2026-11-29 21:20:52,395 - distributed.worker - INFO - Stopping worker at ucxx://127.0.0.1:51589.
2026-11-29 21:20:53,156 - distributed.dask_worker - INFO - Timed out starting worker
2026-11-29 21:20:53,156 - distributed.dask_worker - INFO - End worker
"""
"""The end of a worker's log with UCX_TLS=self (distributed 2025.7.0), shortened."""


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (RAISED, "pynvml.NVMLError_NotFound: Not Found"),
        (LATER, "MemoryError: out of memory"),
        (f"{RAISED}goodbye\n", "goodbye"),
        (UNREACHABLE, "Timed out starting worker"),
        ("", ""),
        ("  \nlast\n\n", "last"),
    ],
)
def test_an_error_that_another_one_caused_is_said_by_its_cause_and_an_older_error_is_none(
    tmp_path: Path, log: str, said: str
) -> None:
    child = shell(tmp_path, f"cat <<'END'\n{log}END\nexit 1")
    child.process.wait(150)
    assert child.cause()["how"] == f"exit code 1{': ' if said else ''}{said}"


def test_the_cause_holds_the_last_lines_only(tmp_path: Path) -> None:
    child = shell(tmp_path, "seq 1 100000; printf 'last \\xff line'; kill -KILL $$")
    child.process.wait(150)
    cause = child.cause()
    assert cause["how"] == "killed by SIGKILL"
    assert child.tail(3) == ["99999", "100000", "last \ufffd line"]
    assert len(child.tail()) == 20
    child.log.unlink()
    assert child.tail() == []


@pytest.mark.parametrize(
    ("counts", "end", "said"),
    [
        ([2, 3], "kill -KILL $$", "killed by SIGKILL by the kernel, for lack of memory"),
        ([2, 2], "kill -KILL $$", "killed by SIGKILL"),
        ([2, 3], "exit 3", "exit code 3"),
    ],
)
def test_a_kill_that_the_kernel_counts_meanwhile_was_for_lack_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: list[int], end: str, said: str
) -> None:
    monkeypatch.setattr("gpubench.node.process.killed_for_memory", lambda: counts.pop(0))
    child = shell(tmp_path, end)
    child.process.wait(150)
    assert child.cause()["how"] == said


def test_how_a_process_ended_in_words() -> None:
    ended = {None: "still running", 40: "exit code 40", -15: "killed by SIGTERM", -40: "killed by signal 40"}
    assert {code: describe_exit(code) for code in ended} == ended


def test_stopping_ends_the_willing_and_the_deaf_and_all_that_they_started(tmp_path: Path) -> None:
    script = "{trap}sleep 600 & echo $! >{name}.child; touch {name}.ready; wait; touch {name}.willing"
    willing = shell(
        tmp_path, script.format(trap="trap 'touch willing.asked; exit 0' TERM; ", name="willing"), "willing"
    )
    deaf = shell(tmp_path, script.format(trap="trap '' TERM; ", name="deaf"), "deaf")
    for name in ("willing", "deaf"):
        until((tmp_path / f"{name}.ready").exists)
    stop_all([willing, deaf], grace_s=2.0)
    assert (tmp_path / "willing.asked").exists()
    assert (willing.code, deaf.code) == (0, -signal.SIGKILL)
    for name in ("willing", "deaf"):
        grandchild = int((tmp_path / f"{name}.child").read_text())
        until(lambda pid=grandchild: gone(pid))


def test_stopping_does_not_wait_for_the_grace_when_all_have_ended(tmp_path: Path) -> None:
    quick = shell(tmp_path, "exit 0")
    quick.process.wait(150)
    stop_all([quick], grace_s=1e6)
    assert quick.code == 0
    stop_all([], grace_s=1e6)


def test_a_role_is_started_from_the_very_file_that_the_supervisor_runs_and_never_by_m(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["../node.pyz", "run"])
    monkeypatch.chdir(tmp_path)
    words = role_words("worker", Path("/c/specs/1.json"), "--name", "w")
    assert command(*words) == [
        *(sys.executable, f"{tmp_path.parent}/node.pyz", "run", "--role", "worker"),
        *("--spec", "/c/specs/1.json", "--parent", str(os.getpid()), "--name", "w"),
    ]


def test_processes_are_found_by_a_mark_in_their_environment(tmp_path: Path) -> None:
    name = "GPUBENCH_TEST_MARK"
    children = {
        mark: Child(mark, ["sleep", "600"], {**quiet_environment(), name: mark}, tmp_path)
        for mark in ("mine:1", "mine:2", "other:1")
    }
    children["prefix"] = Child("prefix", ["sleep", "600"], {**quiet_environment(), f"X{name}": "mine:3"}, tmp_path)
    try:
        # Between fork and exec a child still has its parent's environment.
        until(lambda: len(marked(name, bool)) == 3)
        found = marked(name, lambda mark: mark.startswith("mine:"))
        assert found == {children[mark].process.pid: mark for mark in ("mine:1", "mine:2")}
    finally:
        stop_all(children.values(), grace_s=5)
    assert marked(name, bool) == {}


def test_files_that_some_process_has_in_its_memory_are_found(tmp_path: Path) -> None:
    used, unused = tmp_path / "used", tmp_path / "unused"
    for path in (used, unused):
        path.write_bytes(b"x" * 4096)
    with used.open("r+b") as handle, mmap.mmap(handle.fileno(), 4096):
        assert maps_anywhere([str(used), str(unused)]) == {str(used)}
    assert maps_anywhere([str(used), str(unused)]) == set()
    assert maps_anywhere([]) == set()


FORKS_LATE = """
import json, os, sys, time
report = json.load(open(sys.argv[-1]))["report"]
us = os.getpid()
if os.fork() == 0:
    os.setsid()
    open("stands-alone", "w").close()
    while os.getppid() == us:
        time.sleep(0.001)
    os.write(report, b"worker %d\\n" % os.getpid())
    os.close(report)
time.sleep(600)
"""


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A child that is forked, and whose number nobody has been told."""
    script = tmp_path / "forks.py"
    script.write_text(FORKS_LATE)
    monkeypatch.setattr(sys, "argv", [str(script)])
    (child,) = forked.ForkingProcess([], [Planned("worker", [])], dict(os.environ), tmp_path).children
    until((tmp_path / "stands-alone").exists)
    return child


def test_a_process_that_is_forked_and_not_yet_known_when_all_are_killed_does_not_live_on(unknown: Any) -> None:
    stop_all([unknown], grace_s=0.1)
    assert unknown.code == -signal.SIGTERM


def test_a_process_that_ends_while_it_gets_what_was_sent_before_keeps_its_exit_code(unknown: Any) -> None:
    unknown._sent += [signal.SIGTERM] * 2000  # it ends at the first, and the others find it ended
    unknown.signal(signal.SIGTERM)
    until(lambda: unknown.code is not None)
    assert unknown.code == -signal.SIGTERM
