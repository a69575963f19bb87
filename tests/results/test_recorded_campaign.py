"""What the commands say of a recorded campaign, and of damaged copies of it: a snapshot of the whole way."""

import contextlib
import json
import os
import shutil
import sys
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.cli import main
from gpubench.files import write_atomically
from gpubench.store.campaign import Campaign
from tests.conftest import ROOT
from tests.in_process import invoked

DATA = ROOT / "tests" / "data"
SNAPSHOTS = DATA / "recorded"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign, unpacked."""
    directory = tmp_path_factory.mktemp("recorded") / "recorded"
    with zipfile.ZipFile(DATA / "recorded.zip") as archive:
        archive.extractall(directory)
    for path in directory.glob("jobs/*/submitted.json"):
        path.unlink()  # no scheduler of this machine knows its jobs
    return directory


def rounded(value: Any) -> Any:
    """Numbers of nine digits: the last ones differ between processors."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


def check(name: str, code: int, text: str, place: Path) -> None:
    """Hold a command's output against its snapshot."""
    text = text.replace(str(place), "RECORDED")
    with contextlib.suppress(ValueError):
        text = json.dumps(rounded(json.loads(text)), indent=1, ensure_ascii=False)
    path = SNAPSHOTS / f"{name}.txt"
    now = f"exit {code}\n{text.rstrip()}\n"
    if os.environ.get("GPUBENCH_UPDATE_GOLDEN"):
        path.write_text(now)
    assert path.read_text() == now, f"{path}: GPUBENCH_UPDATE_GOLDEN=1 rewrites it"


COMMANDS = {
    "compare": ["compare", "--json"],
    "compare-lines": ["compare"],
    "compare-mirrored": ["compare", "--baseline", "1.19.0", "--candidate", "1.17.0", "--json"],
    "compare-median-margin": ["compare", "--margin", "30%", "--json"],
    "scaling": ["report", "--only", "scaling", "--json"],
    "runs": ["report", "--only", "runs"],
    "markdown": ["report", "--markdown"],
    "trend": ["trend", "--json"],
    "fsck": ["results", "fsck"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_commands_say_what_they_said(recorded: Path, name: str) -> None:
    command, *options = COMMANDS[name]
    words = [command, options.pop(0)] if command == "results" else [command]
    done = invoked(*words, recorded, *options)
    check(name, done.exit_code, done.stdout, recorded)


def test_the_differences_between_its_variants_are_those_that_were_found(recorded: Path) -> None:
    done = invoked("diff", "1.17.0", "1.19.0", recorded)
    check("diff", done.exit_code, done.stdout, recorded)


def run_of(directory: Path, block: int, variant: str) -> Path:
    """The directory of one of its runs."""
    campaign = Campaign.open(directory)
    return next(
        campaign.runs_dir / f"{run.run}-1"
        for _, planned, run in campaign.rows()
        if (planned.block, run.variant) == (block, variant)
    )


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a JSON file."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def lose_and_fail(directory: Path) -> None:
    """A run without a record, and two that failed where the baseline ran."""
    (run_of(directory, 1, "1.19.0") / "run.json").unlink()
    for block in (10, 11):
        edit(
            run_of(directory, block, "1.19.0") / "run.json",
            lambda record: record.update(status="failed", reason="worker 1 was killed by signal 9"),
        )


def cut_and_answer_wrong(directory: Path) -> None:
    """A file of samples that ends within a line, and one with other answers: neither is what its run wrote."""
    cut = run_of(directory, 2, "1.17.0") / "samples.jsonl"
    cut.write_bytes(cut.read_bytes()[:-30])
    wrong = run_of(directory, 3, "1.17.0") / "samples.jsonl"
    wrong.write_text(wrong.read_text().replace('"answer":"ok"', '"answer":"wrong"'))


def change_the_kernel(directory: Path) -> None:
    """The candidate ran on another kernel in every block."""
    campaign = Campaign.open(directory)
    for _, _, run in campaign.rows():
        if run.variant == "1.19.0":
            path = campaign.runs_dir / f"{run.run}-1" / "provenance.json"
            edit(path, lambda document: [node.update(kernel="9.9.9") for node in document["nodes"]])


@pytest.mark.parametrize("damage", [lose_and_fail, cut_and_answer_wrong, change_the_kernel])
def test_damaged_copies_are_judged_by_what_is_left_and_fsck_names_what_was_touched(
    recorded: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    copy = shutil.copytree(recorded, tmp_path / "copy")
    damage(copy)
    name = damage.__name__.replace("_", "-")
    for words in (["compare"], ["results", "fsck"]):
        done = invoked(*words, copy)
        check(f"{name}.{words[-1]}", done.exit_code, done.stdout + done.stderr, copy)


def test_few_functions_stand_between_the_command_and_the_verdicts(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains: list[list[str]] = []

    def spied(path: Path, content: bytes, **options: bool) -> None:
        frames = [
            frame for frame in traceback.extract_stack() if Path(frame.filename).is_relative_to(ROOT / "gpubench")
        ]
        chains.append([f"{Path(frame.filename).relative_to(ROOT)}: {frame.name}" for frame in frames])
        write_atomically(path, content, **options)

    monkeypatch.setattr("gpubench.results.judging.write_atomically", spied)
    monkeypatch.setattr(sys, "argv", ["gpubench", "compare", str(recorded)])
    with pytest.raises(SystemExit):
        main()
    assert [len(chain) <= 10 for chain in chains] == [True, True], chains
