"""What is shown while a campaign runs: a line per run, and a bar on a terminal."""

import io
import itertools
import re
import shutil
import types
from pathlib import Path

import pytest
import rich.live

from gpubench.campaign.status_lines import status_lines
from gpubench.cli.progress import Progress
from gpubench.cli.terminal import Terminal
from gpubench.model.quantities import format_seconds
from gpubench.store.accounting import account
from gpubench.store.rundirs import read_record, record_seconds
from tests.store.campaign_builder import Writer, begin, make_plan


def test_a_run_took_as_long_as_its_record_says_whenever_it_was_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen on Kubernetes 1.36.2: results come home when a run has ended, and each was "ok  0.0s", 0.0s left."""
    campaign = begin(tmp_path / "c", make_plan(blocks=1))
    progress = Progress(campaign, None)
    for row in campaign.rows():
        Writer(campaign).write(*row)
    progress.look()
    times = [record_seconds(record) for one in campaign.runs_dir.iterdir() if (record := read_record(one))]
    assert times[0] > 1
    shown = re.findall(r": ok  (\S+)  \(", capsys.readouterr().out)
    assert sorted(shown) == sorted(map(format_seconds, times))


def test_what_is_waited_for_the_machine_is_not_elapsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("gpubench.cli.progress.time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    progress = Progress(begin(tmp_path / "c", make_plan()), None)
    for _ in range(3):
        clock[0] += 100
        progress.waiting("another")
    clock[0] += 5
    progress.look()
    assert clock[0] - progress.began == 100


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (None, ["1m10s", "1m00s", "50s", "40s", "30s", "20s", "10s"]),
        (55.0, ["35s", "35s", "15s", "15s", "0.0s", "0.0s", "0.0s"]),
    ],
)
def test_the_time_left_of_an_interleaved_campaign_counts_each_block_once_and_ends_with_the_budget(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    limit: float | None,
    shown: list[str],
) -> None:
    """Seen: 23 s for a first block whose runs took 14 s each, and "about 5m33s left" of a budget of 4 minutes."""
    clock = [1000.0]
    monkeypatch.setattr("gpubench.cli.progress.time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    plan = make_plan(blocks=4)
    plan = plan.model_copy(update={"site": plan.site.with_layout(arrangement="interleaved")})
    campaign = begin(tmp_path / "c", plan)
    progress = Progress(campaign, None)
    if limit is not None:
        progress.limited(limit)
    for block in itertools.groupby(campaign.rows(), key=lambda row: row[1].block):
        rows = list(block[1])
        begun = [Writer(campaign).write(*row, record=False) for row in rows]
        progress.look()
        clock[0] += 20
        for path, row in zip(begun, rows, strict=True):
            shutil.rmtree(path)
            Writer(campaign).write(*row)
        progress.look()
    left = re.findall(r"about (\S+) left", capsys.readouterr().out)
    assert left == shown


@pytest.mark.parametrize(("runtime", "tells"), [("pyxis", True), ("enroot", True), ("venv", False)])
def test_while_a_job_removes_its_containers_a_line_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], runtime: str, tells: bool
) -> None:
    """A stack for GPUs takes minutes; until then nothing came for 90 s (seen with pyxis 0.24)."""
    plan = make_plan(blocks=4)
    plan = plan.model_copy(update={"site": plan.site.model_copy(update={"runtime": runtime})})
    campaign = begin(tmp_path / "c", plan)
    progress = Progress(campaign, None)
    for row in campaign.rows():
        Writer(campaign).write(*row)
        progress.look()
    last = capsys.readouterr().out.splitlines()[-1]
    assert (last == "every run has ended; the job removes its containers from its nodes") == tells


def test_the_bar_says_how_many_blocks_are_complete_and_what_is_left(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=4))
    rows = list(campaign.rows())
    for row in rows[:5]:
        Writer(campaign).write(*row)
    out = io.StringIO()
    console = Terminal(file=out, force_terminal=True, width=80, color_system=None)
    progress = Progress(campaign, rich.live.Live(console=console))
    progress.began -= 600
    console.print(progress.picture("block 3  1.19.0  starting"))
    bar, below = out.getvalue().splitlines()
    assert "2 of 4 blocks  10m00s elapsed, about " in bar
    assert bar.startswith("━" * 15)
    assert below == "block 3  1.19.0  starting"


def test_a_damaged_record_of_an_earlier_start_stops_nobody_who_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=1))
    first, second = campaign.rows()
    Writer(campaign).write(*first)
    record = next(campaign.runs_dir.glob("*/run.json"))
    record.write_bytes(record.read_bytes()[:50])
    progress = Progress(campaign, None)
    Writer(campaign).write(*first, attempt=2)
    Writer(campaign).write(*second)
    progress.look()
    assert [line.partition("]")[0] for line in capsys.readouterr().out.splitlines()] == ["[1/2", "[2/2"]


def test_blocks_that_the_budget_left_no_time_for_have_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=12))
    progress = Progress(campaign, None)
    for number, row in enumerate(campaign.rows()):
        late = {"status": "skipped", "reason": "no time left in the budget: 65 s"} if number >= 6 else {}
        Writer(campaign).write(*row, **late)
        progress.look()
    *ran, line = capsys.readouterr().out.splitlines()
    block = list(campaign.rows())[6][1].block
    assert (len(ran), line) == (6, f"block {block} and those after it are not begun: no time left in the budget: 65 s")
    lines = list(status_lines(campaign, account(campaign)))
    assert lines[0] == f"9 blocks not begun, from block {block} on: no time left in the budget: 65 s"
    assert lines[1] == f"{campaign.directory}: 6 ok, 18 skipped (18 of them by the budget) of 24 runs"
    assert len(lines) == 2
