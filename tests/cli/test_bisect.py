"""``gpubench bisect``: whole searches, whose runs are written instead of run, and one that is run for real."""

import dataclasses
import itertools
import json
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.campaign.bisection_points import versions_between
from gpubench.errors import EXIT_INCONCLUSIVE, DataError, GpubenchError, IncompleteError, UsageError
from tests.cli.campaigns import write_suite
from tests.cli.searches import Runs, write_runs
from tests.conftest import Run, own_queue, run_gpubench

SLOW = 1.4
TWO_CHANGES = {"d": 1.4, "e": 1.4, "f": 2.0, "g": 2.0, "h": 2.0}


@pytest.fixture
def runs(runs: Any) -> Any:
    """Points are slow (by as much as a mapping says), or crash, by their labels."""

    def use(slow: Sequence[str] | Mapping[str, float], crash: Sequence[str] = "", **options: Any) -> Runs:
        factors = slow if isinstance(slow, Mapping) else dict.fromkeys(slow, SLOW)
        written: Runs = runs(
            lambda env: factors.get(env["label"], 1.0), fails=lambda env: env["label"] in crash, **options
        )
        return written

    return use


def points(labels: str = "abcdefgh") -> str:
    return " ".join(f"{label}=1.22.0" for label in labels)


@pytest.fixture
def bisect(gpubench: Run, tmp_path: Path) -> Any:
    suite = ("--suite", write_suite(tmp_path), "--protocol", "tcp", "--workers", "1", "--seed", "1")

    def run(*words: str | Path, labels: str = "abcdefgh") -> Any:
        return gpubench("bisect", "--points", points(labels), *suite, *words)

    return run


def directory(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "outputs").iterdir()
    return found


@dataclasses.dataclass(frozen=True)
class Ended:
    """A search that has ended: from e on points are slow, and c and d crash."""

    folder: Path
    written: Runs
    printed: str


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("ended")
    options = ["--suite", write_suite(folder), "--protocol", "tcp", "--workers", "1", "--seed", "1"]
    with pytest.MonkeyPatch.context() as monkeypatch:
        slow, crash = frozenset("efgh"), frozenset("cd")
        written = write_runs(
            monkeypatch, lambda env: SLOW if env["label"] in slow else 1.0, fails=lambda env: env["label"] in crash
        )
        done = run_gpubench(["bisect", "--points", points(), *map(str, options)], folder, own_queue(folder))
    assert done.returncode == 0, done.stderr
    return Ended(folder, written, done.stdout)


@pytest.fixture
def search(ended: Ended, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(ended.folder / "outputs", tmp_path / "outputs")
    return directory(tmp_path)


@pytest.mark.integration
def test_the_first_slow_point_is_named_and_a_point_that_crashes_is_none(ended: Ended) -> None:
    assert "tasks became slower between b and e: +" in ended.printed
    assert "name a wrong change in at most 5 of 100" in ended.printed
    assert "Between them, without a class: c (" in ended.printed
    assert "failed" in ended.printed
    outlook = r"^6 points between the ends: 3 further steps for one change, 44 runs or more, .+ of the first step$"
    assert re.search(outlook, ended.printed, re.M)
    assert (ended.written.steps[0], ended.written.blocks[0]) == (["a", "h"], 3)
    assert ended.written.steps[-1] == ["a", "b", "e", "h"]


@pytest.mark.integration
def test_a_search_whose_budget_ends_at_the_second_change_has_named_the_first_and_goes_on(
    runs: Any, bisect: Any, gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = runs(TWO_CHANGES)
    clock = itertools.count(0, 10)
    with monkeypatch.context() as patched:
        patched.setattr("gpubench.campaign.bisection.time", SimpleNamespace(monotonic=lambda: next(clock)))
        done = bisect("--budget", "90s")
    assert done.returncode == 0, done.stderr
    assert "tasks became slower between c and d: +" in done.stdout
    assert "Not searched: d to f, which differ too." in done.stdout
    assert f"To go on: gpubench bisect outputs/{directory(tmp_path).name}" in done.stdout
    assert written.steps[-1] == ["a", "c", "d", "h"]
    again = gpubench("bisect", directory(tmp_path), code=0)
    assert "It also became slower between e and f: +" in again.stdout
    assert "Not searched" not in again.stdout


@pytest.mark.integration
@pytest.mark.parametrize("crash", ["a", "ah"])
def test_an_end_that_crashes_ends_the_search_at_its_first_look(runs: Any, bisect: Any, crash: str) -> None:
    written = runs("h", crash=crash)
    done = bisect()
    assert done.returncode == EXIT_INCONCLUSIVE
    assert f"no answer: no run of {' and '.join(crash)} gave a figure (step 0, 3 blocks)" in done.stdout
    assert (written.steps, written.blocks) == ([["a", "h"]], [3])


@pytest.mark.integration
@pytest.mark.parametrize("waits", [False, True])
def test_a_budget_stops_a_search_but_does_not_pay_for_the_time_in_which_another_job_has_the_machine(
    runs: Any, bisect: Any, gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    written = runs("cd")
    clock = itertools.count(0, 10)
    with monkeypatch.context() as patched:
        patched.setattr("gpubench.campaign.bisection.time", SimpleNamespace(monotonic=lambda: next(clock)))
        if waits:
            patched.setattr("gpubench.campaign.bisection.waited_s", itertools.count(0, 10).__next__)
        done = bisect("--budget", "50s", labels="abcd")  # a measurement takes 10 s, and as much passes between two
    if not waits:
        assert done.returncode == 4
        assert "may not end in --budget; to go on: gpubench bisect " in done.stderr
        assert len(written.steps) == 2
        done = gpubench("bisect", directory(tmp_path), "--budget", "1h")
    assert done.returncode == 0, done.stderr
    assert "between b and c" in done.stdout


@pytest.mark.integration
def test_without_an_effect_nothing_is_searched_and_the_exit_code_says_so(runs: Any, bisect: Any) -> None:
    written = runs("")
    done = bisect()
    assert done.returncode == EXIT_INCONCLUSIVE
    assert "no effect beyond the margin" in done.stdout
    assert all(step == ["a", "h"] for step in written.steps)


@pytest.mark.integration
def test_an_interrupted_search_has_no_page_yet_goes_on_and_gives_the_same_answer(
    runs: Any, bisect: Any, gpubench: Run, tmp_path: Path
) -> None:
    runs("cd", stop_after=4)
    stopped = bisect("--json", labels="abcd")
    assert stopped.returncode == 130, stopped.stderr
    assert "step 0: 3 blocks of a, d" in stopped.stderr
    search = directory(tmp_path)
    assert f"to go on: gpubench bisect outputs/{search.name}" in stopped.stderr
    for words, code, message in (
        (("report", search), IncompleteError.exit_code, f"has no answer yet; to go on: gpubench bisect {search}"),
        (("bisect", search, "--suite", "quick"), 2, f"{search} has its options already; leave them out"),
        (("report", search, "--only", "runs"), 2, "is a search, which has one answer; name a step: "),
    ):
        done = gpubench(*words)
        assert (done.returncode, done.stdout, message in done.stderr) == (code, "", True), done.stderr
    resumed = json.loads(gpubench("bisect", search, "--json").stdout)
    again = json.loads(gpubench("bisect", search, "--json").stdout)
    assert resumed == again
    assert (resumed["schema"], resumed["answer"]) == ("gpubench/bisection/1", "named")
    assert (resumed["low"], resumed["high"]) == ("b", "c")
    assert resumed["effect"]["ratio"] == pytest.approx(SLOW - 1, abs=0.05)
    assert [point["label"] for point in resumed["points"]] == list("abcd")


@pytest.mark.integration
def test_a_search_of_files_named_by_relative_paths_goes_on_from_any_directory(
    runs: Any, gpubench: Run, tmp_path: Path
) -> None:
    suite, site = write_suite(tmp_path), tmp_path / "mine.toml"
    site.write_text('inherits = "local"\nname = "mine"\n')
    runs("b", stop_after=0)
    given = ("--suite", suite.name, "--site", site.name, "--protocol", "tcp", "--workers", "1", "--seed", "1")
    stopped = gpubench("bisect", "--points", points("ab"), *given)
    assert stopped.returncode == 130, stopped.stderr
    (elsewhere := tmp_path / "else where").mkdir()
    done = run_gpubench(["bisect", directory(tmp_path)], elsewhere, own_queue(tmp_path), timeout=100)
    assert done.returncode == 0, done.stderr
    assert f"--suite {suite}" in done.stdout


@pytest.mark.integration
def test_commands_take_no_step_as_the_newest_campaign_and_of_a_search_its_last(
    gpubench: Run, search: Path, tmp_path: Path
) -> None:
    assert gpubench("status").returncode == UsageError.exit_code
    for words in (("status",), ("logs",), ("cancel",)):
        done = gpubench(*words, search, code=0)
        assert re.search(r"of its \d+ steps the last, step-0[1-9]$", done.stderr, re.MULTILINE)
    assert gpubench("status", search / "step-00").returncode == 0
    done = gpubench("bench", "--campaign", search / "step-00", "--blocks", "+1", code=UsageError.exit_code)
    assert "step-00 is a step of a search, which decides how many blocks it has; go on with the search: " in done.stderr
    (search / "step-00").rename(tmp_path / "away")
    done = gpubench("report", search)
    assert done.returncode == DataError.exit_code
    assert re.search(r"step-00 is missing, and \S+step-01 is there; restore it$", done.stderr, re.MULTILINE)
    (tmp_path / "away").rename(search / "step-00")
    done = gpubench("compare", search)
    assert done.returncode == UsageError.exit_code
    assert "is a search, which has one answer: gpubench report " in done.stderr


@pytest.mark.integration
def test_the_end_of_a_search_and_report_write_the_same_page(
    gpubench: Run, ended: Ended, search: Path, tmp_path: Path
) -> None:
    first = (search / "report.html").read_text(), (search / "report.md").read_text()
    sentence = next(line for line in ended.printed.splitlines() if "became slower between b and e: +" in line)
    assert ended.printed.rstrip().splitlines()[-1].startswith("To measure this again: gpubench bench ")
    assert ended.printed.rstrip().endswith("--workloads tasks --variants 'b=1.22.0 e=1.22.0'")
    for name in ("report.html", "report.md"):
        (search / name).unlink()
    done = gpubench("report", search, "--svg", "charts")
    assert (done.returncode, sentence in done.stdout) == (0, True), done.stderr
    assert ((search / "report.html").read_text(), (search / "report.md").read_text()) == first
    assert (
        first[0].index("<h1>tasks became slower between b and e: +") < first[0].index("<svg") < first[0].index("<table")
    )
    assert not re.search(r'(src|href)="?https?:', first[0])
    assert first[1].startswith(f"**{sentence.replace('[', chr(92) + '[')}**")
    assert [path.name for path in (tmp_path / "charts").iterdir()] == ["search-tasks.svg"]
    assert gpubench("report", search, "--markdown").stdout == first[1]


@pytest.mark.integration
def test_a_damaged_search_is_named(gpubench: Run, search: Path) -> None:
    path = search / "bisect.json"
    text = path.read_text()
    path.write_text(text.replace("a=1.22.0", "z=1.22.0"))
    done = gpubench("bisect", search)
    assert (done.returncode, "is no step of" in done.stderr) == (3, True)
    path.write_text(text[:100])
    done = gpubench("bisect", search)
    assert (done.returncode, "bisect.json is damaged" in done.stderr) == (3, True)


def test_the_points_of_a_search_over_versions_are_the_releases_between() -> None:
    assert versions_between(["1.16.0", "1.18.1"]) == ["1.16.0", "1.17.0", "1.18.0", "1.18.1"]
    assert versions_between(["new=1.18.1,UCX_TLS=tcp", "old=1.17.0,UCX_TLS=tcp"]) == [
        "new=1.18.1,UCX_TLS=tcp",
        "1.18.0,UCX_TLS=tcp",
        "old=1.17.0,UCX_TLS=tcp",
    ]


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (["1.16.0", "1.17.0", "1.18.0"], "needs two ends, and --variants has 3"),
        (["a=1.16.0", "b=1.17.0,UCX_TLS=tcp"], "differ in stack, packages or settings too"),
        (["a=1.16.0", "b=1.16.0"], "both ends are UCX 1.16.0"),
        (["a=master", "b=1.16.0"], "master"),
    ],
)
def test_ends_without_releases_between_are_refused(ends: list[str], message: str) -> None:
    with pytest.raises(GpubenchError, match=re.escape(message)):
        versions_between(ends)


@pytest.mark.integration
def test_a_setting_of_the_binding_at_one_neighbour_is_said(runs: Any, gpubench: Run, tmp_path: Path) -> None:
    runs(("1.18.0", "1.18.1", "1.19.0"))
    suite = ("--suite", write_suite(tmp_path), "--protocol", "ucx", "--workers", "1")
    done = gpubench("bisect", "--ucx", "1.17.0 1.19.0", "--over", "versions", *suite, code=0)
    assert "tasks became slower between 1.17.0 and 1.18.0" in done.stdout
    (note,) = (line for line in done.stdout.splitlines() if "1.17.0 alone has UCX_PROTO_ENABLE=n, set by" in line)
    command = note.partition("this tells: ")[2]
    words = shlex.split(command)
    for option, value in zip(suite[::2], suite[1::2], strict=True):
        assert words[words.index(str(option)) + 1] == str(value), "it would be measured on another cluster"
    assert command.endswith("--workload tasks --variants '1.17.0 1.18.0'")
