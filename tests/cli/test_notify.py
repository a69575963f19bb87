"""``--notify``: who is told a verdict, what with, and what becomes of a command that fails."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from gpubench.cli import notify
from tests.cli.campaigns import Front, until
from tests.conftest import Run
from tests.store.campaign_builder import QUICK, begin, finish, make_plan


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Finished; the candidate is a third slower."""
    made = begin(tmp_path / "c", make_plan(suite=QUICK[2:4], blocks=6))
    finish(made, lambda variant, _workload: 1.3 if variant == "1.19.0" else 1.0)
    return made.directory


def test_a_command_is_told_the_verdicts(gpubench: Run, campaign: Path, tmp_path: Path) -> None:
    words = "$GPUBENCH_CAMPAIGN $GPUBENCH_VERDICT $GPUBENCH_EXIT_CODE"
    tell = f'cat > {tmp_path}/told; echo "{words}" > {tmp_path}/words; echo x'
    done = gpubench("compare", campaign, "--notify", tell, "--json")
    assert (done.returncode, done.stderr) == (20, "")
    assert json.loads((tmp_path / "told").read_text()) == json.loads(done.stdout)
    assert (tmp_path / "words").read_text() == "c regression 20\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo no route >&2; exit 7", "--notify ended with exit code 7: no route"),
        ("exit 1", "--notify ended with exit code 1: no output"),
        ("kill -9 $$", "--notify ended with exit code -9: no output"),
        ("no-such-program", "--notify ended with exit code 127: sh: 1: no-such-program: not found"),
        ("head -c 9000000 /dev/zero | tr '\\0' '\\n' >&2; exit 3", "--notify ended with exit code 3: no output"),
        ("head -c 9000000 /dev/zero | tr '\\0' x >&2; exit 3", f"--notify ended with exit code 3: {'x' * 199}…"),
        ("printf '\\033[31mred' >&2; exit 3", r"--notify ended with exit code 3: \u001b[31mred"),
    ],
)
def test_a_command_that_fails_is_one_warning_and_changes_no_exit_code(
    gpubench: Run, campaign: Path, command: str, said: str
) -> None:
    done = gpubench("compare", campaign, "--notify", command)
    assert done.returncode == 20
    assert done.stderr.splitlines() == [f"gpubench: {said}"]


def test_nobody_is_told_of_a_campaign_that_goes_on(gpubench: Run, tmp_path: Path) -> None:
    made = begin(tmp_path / "c", make_plan(suite=QUICK[2:3], blocks=3))
    done = gpubench("compare", made.directory, "--notify", f"touch {tmp_path}/told")
    assert done.returncode == 21
    assert "--notify needs final verdicts: 6 planned runs have not ended, so it isn't run" in done.stderr
    assert not (tmp_path / "told").exists()


def test_a_dry_run_has_no_verdicts_to_tell(gpubench: Run) -> None:
    done = gpubench("bench", "--dry-run", "--notify", "true")
    assert done.returncode == 2
    assert "--notify needs verdicts" in done.stderr


def has_ended(number: Path) -> bool:
    """Whether no process has the number in the file; a zombie is none."""
    status = Path("/proc", number.read_text().strip(), "status")
    return not status.exists() or "State:\tZ" in status.read_text()


def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(
    gpubench: Run, campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "LIMIT_S", 1.0)
    done = gpubench("compare", campaign, "--notify", f"sleep 1000 & echo $! > {tmp_path}/pid; wait")
    assert done.returncode == 20
    assert done.stderr.splitlines() == ["gpubench: --notify was ended after 1 s"]
    assert until(lambda: has_ended(tmp_path / "pid"), "the end of sleep")


def test_a_command_may_leave_a_process_behind(gpubench: Run, campaign: Path, tmp_path: Path) -> None:
    done = gpubench("compare", campaign, "--notify", f"sleep 1000 & echo $! > {tmp_path}/pid")
    assert (done.returncode, done.stderr) == (20, "")
    assert not has_ended(tmp_path / "pid")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_an_interruption_ends_the_command_too(campaign: Path, tmp_path: Path) -> None:
    command = f"sleep 1000 & echo $! > {tmp_path}/pid; kill -INT $PPID; wait"
    front = Front(tmp_path, "compare", str(campaign), "--notify", command)
    assert front.end() == 130
    assert "Traceback" not in front.output
    assert until(lambda: has_ended(tmp_path / "pid"), "the end of sleep")


def test_an_interruption_while_the_command_starts_counts_when_it_has_started() -> None:
    started = []

    def start() -> None:
        with notify._interrupted_later():
            signal.raise_signal(signal.SIGINT)
            started.append(True)

    with pytest.raises(KeyboardInterrupt):
        start()
    assert started
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
