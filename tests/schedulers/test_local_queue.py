"""The local scheduler with real job scripts: one job at a time, and none outlives its front end."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from gpubench import resources
from gpubench.errors import DataError, MissingToolError, SchedulerError
from gpubench.schedulers import local
from tests.node.runners import until
from tests.plan.requests_by_hand import image, plan
from tests.rendering import render_jobs

FRONT_END = """
import os, sys
from pathlib import Path
from gpubench.schedulers import local
job_dir = Path(sys.argv[1])
with local.acquire_machine(job_dir, lambda holder: print("waiting", holder, flush=True)) as hold:
    job = local.submit(job_dir, dict(os.environ), hold)
    print("started", hold, job.process.pid, flush=True)
    sys.exit(job.close())
"""


@pytest.fixture(autouse=True)
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A queue of the test's own: other campaigns may be running here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return local.lock_path()


def job_dir(tmp_path: Path, script: str, name: str = "job") -> Path:
    directory = tmp_path / name
    directory.mkdir()
    (directory / "job.sh").write_text(script)
    return directory


def nobody(holder: str) -> None:
    pytest.fail(f"had to wait for {holder}")


def submit(directory: Path, **env: str) -> local.Job:
    with local.acquire_machine(directory, nobody) as hold:
        return local.submit(directory, {**os.environ, **env}, hold)


def test_a_second_start_appends_to_the_log(tmp_path: Path) -> None:
    directory = job_dir(tmp_path, "echo once\n")
    for _ in range(2):
        submit(directory).close()
    assert (directory / "job.log").read_text() == "once\nonce\n"


def test_a_job_that_can_not_start_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = job_dir(tmp_path, "true\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SchedulerError, match=r"can't start .*/job/job\.sh: .*bash"):
        submit(directory)


def test_the_job_holds_the_machine_until_it_has_ended(tmp_path: Path) -> None:
    first = job_dir(tmp_path, "read -r _\n", "first")
    running = submit(first)
    second = job_dir(tmp_path, "true\n", "second")
    holders: list[str] = []

    def waiting(holder: str) -> None:
        assert not running.ended()
        holders.append(holder)
        assert running.process.stdin
        running.process.stdin.close()

    waited_s, began = local.waited_s(), time.monotonic()
    with local.acquire_machine(second, waiting) as hold:
        assert 0.5 <= local.waited_s() - waited_s <= time.monotonic() - began, "it looks twice a second"
        assert running.close() == 1  # `read` came to the end of its input
        assert local.submit(second, os.environ, hold).close() == 0
    assert holders
    assert holders[0] == f"{first} (front end: process {os.getpid()})"


def test_who_came_first_has_the_machine_first_and_one_that_died_keeps_nobody_waiting(
    tmp_path: Path, queue: Path
) -> None:
    running = submit(job_dir(tmp_path, "read -r _\n", "first"))
    queue.with_name(f"{queue.name}.{0:020d}-1").touch()  # of a process that was killed
    order: list[str] = []

    def late() -> None:
        with local.acquire_machine(tmp_path, lambda _holder: None):
            order.append("late")

    latecomer = threading.Thread(target=late)

    def waiting(_holder: str) -> None:
        assert running.process.stdin
        running.process.stdin.close()
        running.close()  # from here on the machine is free
        latecomer.start()
        until(lambda: len([*queue.parent.glob(f"{queue.name}.*")]) == 2)

    with local.acquire_machine(tmp_path, waiting):
        order.append("early")
    latecomer.join(60)
    assert order == ["early", "late"]
    assert [path.name for path in queue.parent.iterdir()] == [queue.name]


def test_a_job_that_has_ended_is_never_named_as_the_one_that_is_waited_for(
    tmp_path: Path, queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(job_dir(tmp_path, "true\n")).close()
    looked, holders = threading.Semaphore(0), list[str]()
    is_held = local._is_held
    monkeypatch.setattr(local, "_is_held", lambda path: (is_held(path), looked.release())[0])
    before = queue.with_name(f"{queue.name}.{0:020d}-1")
    with before.open("w") as place, queue.open("r+") as lock:
        fcntl.flock(place, fcntl.LOCK_EX)  # who came before waits, and has not looked since the machine is free

        def come() -> None:
            with local.acquire_machine(tmp_path, holders.append):
                pass

        latecomer = threading.Thread(target=come)
        latecomer.start()
        assert all(looked.acquire(timeout=60) for _ in range(3))
        assert not holders
        until(lambda: not _taken(lock))  # the latecomer has it for a moment, as it looks
        os.pwrite(lock.fileno(), b"the one before".ljust(4096), 0)
        assert all(looked.acquire(timeout=60) for _ in range(2))
    latecomer.join(60)
    assert {*holders} == {"the one before"}


def _taken(lock: IO[str]) -> bool:
    """Whether somebody else has it; else it is ours."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def test_the_machine_is_free_again_after_a_wait_that_was_given_up(tmp_path: Path) -> None:
    running = submit(job_dir(tmp_path, "read -r _\n", "first"))

    def give_up(_holder: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), local.acquire_machine(tmp_path, give_up):
        pytest.fail("had the machine")
    assert running.process.stdin
    running.process.stdin.close()
    running.close()
    submit(job_dir(tmp_path, "true\n", "second")).close()


def orphaned_job(tmp_path: Path) -> tuple[Path, str]:
    """A rendered job of four runs whose front end was killed during the first of them, which ends when ``go`` is there.

    Returns its directory and the number of the lock's handle. Each start of a supervisor is a line in ``starts``.
    """
    supervisor = tmp_path / "python"
    supervisor.write_text(
        "#!/usr/bin/env bash\n"
        f"echo $$ >>{tmp_path}/starts; cat >/dev/null; echo x >{tmp_path}/eof\n"
        f"until [ -f {tmp_path}/go ]; do sleep 0.02; done; exit 40\n"
    )
    supervisor.chmod(0o755)
    stub = {ucx: image(ucx).model_copy(update={"python": str(supervisor)}) for ucx in ("1.17.0", "1.19.0")}
    made = plan(blocks=2, images=stub)
    script = render_jobs(made, made.jobs, resources.texts("templates", "**/*.sh.j2"), b"")["jobs/j001-n1/job.sh"]
    (tmp_path / "jobs").mkdir()
    directory = job_dir(tmp_path / "jobs", script.decode(), "j001-n1")

    front = subprocess.Popen([sys.executable, "-c", FRONT_END, str(directory)], stdout=subprocess.PIPE, text=True)
    assert front.stdout
    said, hold, _ = front.stdout.readline().split()
    assert said == "started"
    until((tmp_path / "starts").exists)
    assert not local.state(directory).orphaned
    front.send_signal(signal.SIGKILL)
    front.wait()
    front.stdout.close()
    until((tmp_path / "eof").exists)
    return directory, hold


def test_a_job_whose_front_end_is_dead_starts_no_supervisor_for_the_runs_that_remain(tmp_path: Path) -> None:
    directory, _ = orphaned_job(tmp_path)
    assert local.state(directory).orphaned
    (tmp_path / "go").touch()
    until(lambda: not local.state(directory).alive)
    assert len((tmp_path / "starts").read_text().split()) == 1


def test_a_job_whose_front_end_is_dead_can_be_ended_also_when_its_script_was_killed(tmp_path: Path) -> None:
    directory, _ = orphaned_job(tmp_path)
    os.kill(json.loads((directory / "local.json").read_text())["pid"], signal.SIGKILL)
    assert local.state(directory).alive, "its supervisor lives"
    local.cancel(directory)
    assert not local.state(directory).alive
    (supervisor,) = (tmp_path / "starts").read_text().split()
    assert not Path(f"/proc/{supervisor}").exists() or ") Z " in Path(f"/proc/{supervisor}/stat").read_text()


def test_a_script_that_is_killed_before_it_hands_a_cancel_on_leaves_its_supervisors_to_it(tmp_path: Path) -> None:
    supervisor = f"trap 'touch {tmp_path}/asked; exit' TERM; touch {tmp_path}/begun; while :; do sleep 0.02; done"
    directory = job_dir(tmp_path, f"trap 'kill -KILL $$' TERM\n(trap - TERM; {supervisor}) &\nwait\n")
    job = submit(directory)
    until((tmp_path / "begun").exists)
    local.cancel(directory)
    assert (tmp_path / "asked").exists(), "its supervisor was asked, not killed"
    assert not local.state(directory).alive
    job.close()


def test_a_job_has_ended_when_its_supervisors_have_also_where_its_script_was_killed(tmp_path: Path) -> None:
    there = f"touch {tmp_path}/begun; cat <&3; until [ -f {tmp_path}/go ]; do sleep 0.02; done; touch {tmp_path}/ended"
    directory = job_dir(tmp_path, f"({there}) 3<&0 &\nwait\n")
    job = submit(directory)
    until((tmp_path / "begun").exists)
    os.kill(job.process.pid, signal.SIGKILL)
    until(job.ended)
    assert local.state(directory).alive
    closing = threading.Thread(target=job.close)
    closing.start()
    (tmp_path / "go").touch()
    closing.join()
    assert (tmp_path / "ended").exists()
    assert local.state(directory).phase == "ended"


def test_a_job_whose_front_end_was_killed_sees_it_and_holds_the_machine_to_its_own_end(
    tmp_path: Path, queue: Path
) -> None:
    directory, hold = orphaned_job(tmp_path)
    assert local.state(directory).alive
    holders: list[str] = []

    def waiting(holder: str) -> None:
        holders.append(holder)
        (tmp_path / "go").touch()

    with local.acquire_machine(tmp_path, waiting):
        assert not local.state(directory).alive
    assert holders, f"the machine was free while the job was ending (the lock was handed over as {hold})"


def test_a_job_can_be_cancelled_by_who_started_it(tmp_path: Path) -> None:
    directory = job_dir(tmp_path, "trap 'exit 130' TERM\ntouch ready\nwhile true; do sleep 0.02; done\n")
    job = submit(directory)
    until((directory / "ready").exists)
    assert not job.ended()
    job.cancel()
    assert job.close() == 130
    job.cancel()


def test_a_script_that_does_not_end_is_killed_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "CANCEL_S", 0.2)
    directory = job_dir(tmp_path, "trap '' TERM\nsleep 600 &\necho $! >child\nwait\n")
    job = submit(directory)
    until(lambda: (directory / "child").exists() and (directory / "child").read_text().strip())
    child = int((directory / "child").read_text())
    local.cancel(directory)
    assert job.close() == -signal.SIGKILL
    until(lambda: not Path(f"/proc/{child}").exists() or ") Z " in Path(f"/proc/{child}/stat").read_text())


def test_a_state_that_is_cut_off_does_not_say_that_nothing_was_started(tmp_path: Path) -> None:
    assert local.state(tmp_path).phase == "unsubmitted"
    for text in ("", '{"pid"', '{"pid": 1, "started": ""}'):
        (tmp_path / "local.json").write_text(text)
        with pytest.raises(DataError, match=r"local\.json can't be read; if no such job runs, remove .*local\.json"):
            local.state(tmp_path)


def test_another_process_with_the_same_id_is_not_the_job(tmp_path: Path) -> None:
    directory = job_dir(tmp_path, "read -r _\n")
    job = submit(directory)
    assert local.state(directory).alive
    state = json.loads((directory / "local.json").read_text())
    (directory / "local.json").write_text(json.dumps({**state, "started": str(int(state["started"]) - 1)}))
    assert not local.state(directory).alive
    local.cancel(directory)
    assert not job.ended()
    assert job.process.stdin
    job.process.stdin.close()
    job.close()


def test_a_process_whose_name_is_no_ascii_is_looked_at_like_any_other(tmp_path: Path) -> None:
    directory = job_dir(tmp_path, "printf 'ger\\303\\244t) 1' > /proc/self/comm; read -r _\n")
    job = submit(directory)
    until(lambda: b"\303" in Path(f"/proc/{job.process.pid}/comm").read_bytes())
    assert local.state(directory).alive
    assert job.process.stdin
    job.process.stdin.close()
    job.close()
    assert not local.state(directory).alive


def test_a_queue_that_can_not_be_opened_is_one_line_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with (
        pytest.raises(MissingToolError, match=r"can't open the queue's lock .*; set XDG_STATE_HOME") as caught,
        local.acquire_machine(tmp_path, nobody),
    ):
        pytest.fail("had the machine")
    assert caught.value.exit_code == 5


def test_who_asks_while_the_state_is_written_anew_reads_the_old_or_the_new(tmp_path: Path) -> None:
    seen = set()

    def ask() -> None:
        while not done.is_set():
            seen.add(local.state(tmp_path).phase)

    done = threading.Event()
    local._remember(tmp_path, os.getpid(), None)
    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for number in range(500):
            local._remember(tmp_path, os.getpid(), number % 2 or None)
    finally:
        done.set()
        asking.join()
    assert seen <= {"running", "ended"}
    assert seen


def test_a_state_that_cannot_be_written_is_no_bug_s_report(tmp_path: Path) -> None:
    (tmp_path / local.STATE_FILE).mkdir()
    with pytest.raises(MissingToolError, match=r"can't write .*local\.json"):
        local._remember(tmp_path, os.getpid(), None)
