"""``trend`` on campaigns: one a week, of which a later half ran on another kernel, and slower."""

import datetime as dt
import json
import re
from pathlib import Path

import pytest
from campaign_builder import START, Writer, begin, make_plan, variant

from tests.conftest import Run

SUITE = (("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 3, 0.41),)
WEEKS, STEP = 10, 5


@pytest.fixture
def weekly(tmp_path: Path) -> Path:
    for week in range(WEEKS):
        at = START + dt.timedelta(weeks=week)
        plan = make_plan((variant("1.17.0"), variant("1.19.0")), blocks=2, suite=SUITE, campaign=f"week-{week}")
        directory = tmp_path / "outputs" / f"week-{week}"
        campaign = begin(directory, plan.model_copy(update={"created_at": at.isoformat()}))
        writer = Writer(campaign, lambda *_, week=week: 1.3 if week >= STEP else 1.0, clock=at)
        for job, block, run in campaign.rows():
            if (week, block.block, run.variant) == (2, 1, "1.19.0"):
                writer.write(job, block, run, status="failed", reason="worker 1 died")
                continue
            path = writer.write(job, block, run) / "provenance.json"
            if week >= STEP:
                path.write_text(path.read_text().replace("6.1.0", "6.9.9"))
    return tmp_path / "outputs"


def test_every_campaign_is_a_line_that_says_how_many_of_its_runs_are_ok(gpubench: Run, weekly: Path) -> None:
    done = gpubench("trend", weekly, code=0)
    lines = [line for line in done.stdout.splitlines() if line.startswith("campaign week-")]
    assert [line.rpartition("; ")[2] for line in lines] == [
        f"{3 if week == 2 else 4} of 4 runs are ok" for week in range(WEEKS)
    ]


def test_the_page_over_time_draws_campaigns_and_their_changes(gpubench: Run, weekly: Path) -> None:
    gpubench("trend", weekly, "--html", "over-time.html", "--svg", "charts", code=0)
    page = (weekly.parent / "over-time.html").read_text()
    charts = dict(re.findall(r'id="chart-([^"]+)".*?(<svg.*?</svg>)', page, re.S))
    assert list(charts) == ["over-time-0"]
    assert ">2 workers on 1 node<" in charts["over-time-0"]
    points, marks = (
        re.findall(r"<path transform=[^>]*/>", layer)
        for layer in re.findall(r'<g class="mark-symbol role-mark [^>]*>(.*?)</g>', charts["over-time-0"])
        if layer
    )
    assert (len(points), len(marks)) == (2 * WEEKS, 2)
    assert all("var(--ink)" in mark for mark in marks)
    changes = page.partition('id="changes"')[2].partition("</section>")[0]
    assert changes.count("6.9.9") == 2
    assert "3 of 4 runs are ok" in page
    files = sorted((weekly.parent / "charts").iterdir())
    assert [svg.name for svg in files] == ["over-time-merge.svg"]
    assert not any("var(--" in svg.read_text() for svg in files)


A = {"cpu_model": "A"}
V100, H100 = ({**A, "gpu_model": f"4 x {model}"} for model in ("V100", "H100"))


@pytest.mark.parametrize(
    ("sites", "facts", "device", "machines"),
    [
        (("local", "local"), (A, A), "cpu", {("local", "2 x A")}),
        (("here", "there"), (A, A), "cpu", {("here", "2 x A"), ("there", "2 x A")}),
        (("local", "local"), (A, {"cpu_model": "B"}), "cpu", {("local", "2 x A"), ("local", "2 x B")}),
        (("local", "local"), (V100, H100), "gpu", {("local", "2 x A, 4 x V100"), ("local", "2 x A, 4 x H100")}),
        (("local", "local"), (V100, H100), "cpu", {("local", "2 x A")}),
    ],
    ids=["one-machine", "two-sites", "other-processors", "other-gpus", "other-gpus-not-used"],
)
def test_results_of_unlike_machines_are_never_pooled(
    gpubench: Run,
    tmp_path: Path,
    *,
    sites: tuple[str, str],
    facts: tuple[dict[str, str], dict[str, str]],
    device: str,
    machines: set[tuple[str, str]],
) -> None:
    for number, (site, of_node) in enumerate(zip(sites, facts, strict=True)):
        plan = make_plan((variant("1.17.0"), variant("1.19.0")), blocks=1, suite=SUITE, campaign=f"c{number}")
        at = START + dt.timedelta(days=number)
        own = plan.site.model_copy(update={"name": site})
        directory = tmp_path / "all" / f"c{number}"
        campaign = begin(
            directory, plan.model_copy(update={"site": own, "created_at": at.isoformat(), "device": device})
        )
        for job, block, run in campaign.rows():
            path = Writer(campaign, clock=at).write(job, block, run) / "provenance.json"
            written = json.loads(path.read_text())
            written["nodes"][0] |= of_node
            path.write_text(json.dumps(written))
    done = gpubench("trend", tmp_path / "all", "--json", code=0)
    series = json.loads(done.stdout)["series"]
    assert len(series) == 2 * len(machines)
    assert {(one["site"], one["processors"]) for one in series} == machines
    assert gpubench("trend", tmp_path / "all", "--html", "new/page.html").returncode == 0
