"""A campaign brought home by a real rsync while its original grows."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gpubench.store.campaign import Campaign
from tests.conftest import Run, need
from tests.store.campaign_builder import begin, finish

pytestmark = pytest.mark.system

# Stands before rsync in PATH, calls it, and before its second call of a fetch does what the test asks for.
BETWEEN = """#!/usr/bin/env bash
echo >>"$TIMES"
if [ "$(wc -l <"$TIMES")" = 2 ]; then eval "$THEN"; fi
exec {rsync} "$@"
"""


@pytest.fixture
def far(tmp_path: Path) -> Campaign:
    """A finished campaign at another place, whose name would not survive a shell."""
    need(bool(shutil.which("rsync")), "rsync (requirements/system.sh)")
    campaign = begin(tmp_path / "far" / "it's a $(campaign)")
    finish(campaign)
    return campaign


@pytest.fixture
def home(tmp_path: Path, far: Campaign) -> Path:
    return tmp_path / "outputs" / far.directory.name


def between(tmp_path: Path, shell: str) -> dict[str, str]:
    """Variables under which ``shell`` runs between the two steps of a fetch."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "rsync").write_text(BETWEEN.format(rsync=shutil.which("rsync")))
    (tools / "rsync").chmod(0o755)
    return {"PATH": f"{tools}:{os.environ['PATH']}", "TIMES": str(tmp_path / "times"), "THEN": shell}


def records(campaign: Path) -> set[str]:
    return {path.parent.name for path in campaign.glob("runs/*/run.json")}


def hide(campaign: Campaign, away: Path) -> str:
    """Take one finished run away, as if it were still to come; the shell words that bring it."""
    run = sorted(campaign.runs_dir.iterdir())[0]
    run.rename(away)
    return f"mv '{away}' \"{str(run).replace('$', chr(92) + '$')}\""


def test_a_growing_campaign_is_fetched_again_and_again_and_judged_in_between(
    gpubench: Run, tmp_path: Path, far: Campaign, home: Path
) -> None:
    run = sorted(far.runs_dir.iterdir())[0]
    away = run.rename(tmp_path / "away")
    first = gpubench("fetch", "local", far.directory)
    assert first.returncode == 0, first.stderr
    assert gpubench("compare", "--fail-on", "regression", home).returncode == 0
    merged = (home / "results.parquet").stat()
    kept = (home / "runs").iterdir()
    before = {path: path.stat().st_ino for path in kept for path in path.iterdir()}
    away.rename(run)
    second = gpubench("fetch", "local", far.directory)
    assert second.returncode == 0, second.stderr
    assert records(home) == records(far.directory)
    assert {path: path.stat().st_ino for path in before} == before, "what was there is not written again"
    assert (home / "results.parquet").stat() == merged, "what was made here stays"
    assert [path.name for path in home.iterdir() if path.name.startswith(".")] == []


def test_a_run_that_ends_while_it_is_fetched_comes_the_next_time(
    gpubench: Run, tmp_path: Path, far: Campaign, home: Path
) -> None:
    shell = hide(far, tmp_path / "away")
    there = records(far.directory)
    done = gpubench("fetch", "local", far.directory, env=between(tmp_path, shell))
    assert done.returncode == 0, done.stderr
    assert records(home) == there, "its record would stand beside samples that are still on their way"
    assert gpubench("fetch", "local", far.directory).returncode == 0
    assert records(home) == records(far.directory) > there


def test_a_broken_connection_leaves_no_record_without_its_samples(
    gpubench: Run, tmp_path: Path, far: Campaign, home: Path
) -> None:
    done = gpubench("fetch", "local", far.directory, env=between(tmp_path, "echo 'connection lost' >&2; exit 12"))
    assert done.returncode == 7, done.stderr
    assert "ended with 12: connection lost; the files that arrived are kept" in done.stderr
    assert not records(home)
    assert gpubench("fetch", "local", far.directory).returncode == 0
    assert records(home) == records(far.directory)


def test_another_campaign_of_that_name_is_left_alone(gpubench: Run, far: Campaign, home: Path) -> None:
    assert gpubench("fetch", "local", far.directory).returncode == 0
    plan = json.loads((home / "plan.json").read_text())
    (home / "plan.json").write_text(json.dumps({**plan, "campaign": "another"}))
    done = gpubench("fetch", "local", far.directory)
    assert done.returncode == 2, done.stderr
    assert "holds another campaign" in done.stderr
    assert json.loads((home / "plan.json").read_text())["campaign"] == "another"


def test_the_profile_says_where_campaigns_lie(gpubench: Run, far: Campaign, home: Path) -> None:
    place = f"fetch.path={far.directory.parent}"
    done = gpubench("fetch", "local", far.directory.name, "--set", place)
    assert done.returncode == 0, done.stderr
    assert records(home) == records(far.directory)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["draco", "some-campaign"], 2, "doesn't name the directory of its campaigns"),
        (["local", "/nowhere/at-all"], 2, "there is no campaign /nowhere/at-all"),
        (["local", "/usr/share"], 2, "/usr/share is no campaign: it has no plan.json"),
    ],
)
def test_a_wrong_place_is_one_line_and_nothing_stays(
    gpubench: Run, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    need(bool(shutil.which("rsync")), "rsync (requirements/system.sh)")
    done = gpubench("fetch", *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("outputs/*"))


def test_without_rsync_the_exit_code_is_5(gpubench: Run, tmp_path: Path, far: Campaign) -> None:
    done = gpubench("fetch", "local", far.directory, env={"PATH": str(tmp_path)})
    assert done.returncode == 5, done.stderr
    assert "there is no rsync on this machine" in done.stderr


@pytest.mark.parametrize("place", ["host:runs/.", "host:runs/..", "host:/", "host:."])
def test_a_path_that_ends_in_no_name_is_refused_before_anybody_is_asked(
    gpubench: Run, tmp_path: Path, place: str
) -> None:
    done = gpubench("fetch", "local", place, env={"RSYNC_RSH": "false"})
    assert done.returncode == 2, done.stderr
    assert f"{place} doesn't end in the name of a campaign; write it like HOST:PATH/NAME" in done.stderr
    assert list(tmp_path.iterdir()) == []
