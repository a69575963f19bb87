"""Two of everything at once: each waits, is refused in one line, or succeeds; no file is torn."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gpubench.schedulers import local
from tests.cli.campaigns import SIGINT, Front, campaign_in, until, words, write_suite
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.system

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"


def test_of_two_resumes_the_second_is_refused_while_the_first_waits_for_the_machine(
    gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = words(write_suite(tmp_path, reps=2, count=20), "--blocks", "1")
    assert gpubench("plan", *planned[1:], "--out", "outputs/planned", "--images").returncode == 0
    campaign = campaign_in(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with local.acquire_machine(tmp_path, lambda _holder: None):
        first = Front(tmp_path, "bench", "--campaign", str(campaign))
        until(lambda: "waiting for this machine" in first.output, "the first one to wait")
        for again in (["submit", "--campaign", campaign], ["bench", "--campaign", campaign], ["submit", campaign]):
            done = gpubench(*again)
            assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
            assert f"another gpubench is at work on {campaign}; wait until it ends" in done.stderr
        assert gpubench("report", campaign).returncode == 0, "who reads isn't refused"
        first.kill(SIGINT)
        assert first.end() == 130


def test_two_reports_at_once_both_succeed_and_their_files_are_whole(gpubench: Run, tmp_path: Path) -> None:
    campaign = Path(shutil.copytree(GOLDEN, tmp_path / "tiny"))
    fronts = [Front(tmp_path, "report", str(campaign)) for _ in range(2)]
    assert [front.end() for front in fronts] == [0, 0], [front.output for front in fronts]
    assert (campaign / "report.html").read_text().rstrip().endswith("</html>")
    checked = gpubench("results", "fsck", campaign)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    "name", ["run.json", *(pytest.param(name, marks=pytest.mark.long) for name in ("samples.jsonl", "provenance.json"))]
)
def test_a_campaign_that_is_moved_while_its_report_is_made_is_one_line_and_does_not_come_back(
    gpubench: Run, tmp_path: Path, name: str
) -> None:
    campaign = Path(shutil.copytree(GOLDEN, tmp_path / "tiny"))
    first = sorted((campaign / "runs").iterdir())[0]
    pipe = first / name
    content = pipe.read_bytes()
    pipe.unlink()
    os.mkfifo(pipe)  # whoever reads it waits for us
    reporting = Front(tmp_path, "report", str(campaign))
    with pipe.open("wb") as writer:  # opens when the reader has come
        campaign.rename(tmp_path / "moved")
        writer.write(content)
    assert reporting.end() in (3, 5), reporting.output
    said = [line for line in reporting.output.splitlines() if line.startswith("gpubench: ")]
    assert said[-1].endswith("name it where it is now"), reporting.output
    assert "Traceback" not in reporting.output
    assert not campaign.exists()
