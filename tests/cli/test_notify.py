"""``--notify``: who is told a verdict, what with, and what becomes of a command that fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
