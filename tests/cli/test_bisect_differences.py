"""``gpubench bisect --over settings`` and ``packages``: whole searches, whose runs are written instead of run."""

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.campaign.bisection import open_search
from gpubench.campaign.bisection_differences import Difference, Differences, DifferenceSpace, difference_ends
from gpubench.errors import EXIT_INCONCLUSIVE, BuildError, UsageError
from gpubench.images.kinds import venvs
from gpubench.model.image import manifest_id
from gpubench.model.variant import ImageSpec
from gpubench.report.bisection_differences import DifferenceResult
from gpubench.stats.setting_search import FIRST, LAST, point_of
from tests.cli.campaigns import write_suite
from tests.cli.searches import Env
from tests.conftest import Run

CAUSE, BROKEN = "UCX_TCP_KEEPIDLE", "UCX_MAX_RNDV_RAILS"
SETTINGS = {"DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "20s", BROKEN: "3", CAUSE: "20s", "UCX_ZCOPY_THRESH": "64k"}
TYPED = "".join(f",{name}={value}" for name, value in SETTINGS.items())
SETTING_ENDS = f"fast=1.22.0 slow=1.22.0{TYPED}"
PACKAGES = "1.22.0 1.22.0,toolz==1.0.0,click==8.1.8,zict==2.2.0,fsspec==2026.2.0"


@pytest.fixture
def bisect(gpubench: Run, tmp_path: Path) -> Any:
    suite = ("--suite", write_suite(tmp_path), "--protocol", "ucx", "--workers", "1", "--seed", "1", "--margin", "10%")

    def run(*words: str | Path, ends: str = SETTING_ENDS) -> Any:
        over = () if "--over" in words else ("--over", "settings")
        return gpubench("bisect", "--variants", ends, *over, *suite, *words)

    return run


@pytest.fixture
def pretended_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images of other packages are the image without them, with another manifest: a stack takes 20 s to build."""
    ensure = venvs.ensure

    def pretend(specs: Sequence[str], *arguments: Any, **options: Any) -> Any:
        plain = {spec: spec.partition(",")[0] for spec in specs}
        built = ensure(list(plain.values()), *arguments, **options)
        images = {}
        for spec in specs:
            if "click==9" in spec and "zict==2" in spec:
                raise BuildError("could not install stack: click 9 and zict 2 exclude each other", spec=spec)
            image, manifest = built[plain[spec]]
            packages = {**manifest["stack"]["packages"], **ImageSpec.parse(spec).packages}
            document = {**manifest, "stack": {**manifest["stack"], "packages": packages}}
            update = {"ucx_spec": spec, "manifest": manifest_id(document)}
            images[spec] = (image.model_copy(update=update), document)
        return images

    monkeypatch.setattr(venvs, "ensure", pretend)


@pytest.mark.integration
def test_one_package_among_harmless_ones_is_named_also_by_a_search_that_was_interrupted(
    runs: Any, bisect: Any, gpubench: Run, pretended_packages: None, tmp_path: Path
) -> None:
    written = runs(lambda env: 1.5 if env.get("toolz") == "1.0.0" else 1.0, stop_after=5)
    stopped = bisect("--over", "packages", "--json", ends=PACKAGES)
    assert stopped.returncode == 130, stopped.stderr
    answer = json.loads(gpubench("bisect", search_of(tmp_path), "--json").stdout)
    assert answer == json.loads(gpubench("bisect", search_of(tmp_path), "--json").stdout)
    assert (answer["over"], answer["answer"], answer["named"]) == ("packages", "named", ["toolz"])
    assert answer["ends"] == {
        "1.22.0": "1.22.0",
        "last": "1.22.0,click==8.1.8,fsspec==2026.2.0,toolz==1.0.0,zict==2.2.0",
    }
    assert {item["name"]: item["slow"] for item in answer["packages"]} == {
        "toolz": "1.0.0",
        "click": "8.1.8",
        "zict": "2.2.0",
        "fsspec": "2026.2.0",
    }
    assert written.steps[1] == ["1.22.0", "last", "last:1-4"]
    assert "toolz==1.0.0" in shlex.split(answer["command"])[-1]


@pytest.mark.integration
def test_a_mixture_of_packages_that_the_installer_refuses_is_unknown(
    runs: Any, bisect: Any, pretended_packages: None
) -> None:
    runs(lambda env: 1.5 if env.get("toolz") == "1.0.0" else 1.0)
    ends = "a=1.22.0,click==9.0.0,zict==3.0.0 b=1.22.0,toolz==1.0.0,zict==2.2.0,click==8.1.8"
    answer = json.loads(bisect("--over", "packages", "--json", ends=ends).stdout)
    assert (answer["answer"], answer["named"]) == ("named", ["toolz"])
    assert "click 9 and zict 2 exclude each other" in "".join(answer["unbuilt"].values())
    assert {*answer["unbuilt"]} <= {*answer["unknown"]}


@pytest.mark.integration
def test_a_package_that_the_stack_holds_only_with_another_one_is_not_searched(
    runs: Any, bisect: Any, pretended_packages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gpubench.campaign.bisection_packages.is_locked", lambda name, *_stack, **_options: name != "click"
    )
    runs(lambda env: 1.5 if env.get("toolz") == "1.0.0" else 1.0)
    answer = json.loads(bisect("--over", "packages", "--json", ends="1.22.0 1.22.0,toolz==1.0.0,click==8.1.8").stdout)
    assert (answer["answer"], answer["named"]) == ("named", ["toolz"])
    (left_out,) = answer["not_searched"]
    assert left_out["name"] == "click"
    assert left_out["reason"].startswith("no variant can choose it: stack ")


def with_cause(env: Env) -> float:
    return 1.5 if CAUSE in env else 1.0


def search_of(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "outputs").glob("*-bisect-*")
    return found


@pytest.mark.integration
def test_one_setting_among_harmless_ones_is_named_also_where_no_version_reads_one_of_them(
    runs: Any, bisect: Any, gpubench: Run, tmp_path: Path
) -> None:
    unread = {"warnings": ["UCX reads no variable UCX_IB_TX_QUEUE_LEN: what was set changes nothing"]}
    written = runs(with_cause, overrides=lambda _env: unread, stop_after=7)
    stopped = bisect()
    assert stopped.returncode == 130, stopped.stderr
    done = gpubench("bisect", search_of(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    sentence = done.stdout.split("\n\n")[1] if done.stdout.startswith("search") else done.stdout
    assert f"on fast, {CAUSE}=20s takes +" in sentence
    assert ": it is the setting." in sentence
    assert "% [" in sentence.splitlines()[1]
    assert "in at most 5 of 100" in sentence
    assert written.steps[:2] == [["fast", "slow"], ["fast", "slow", "slow:1-4"]]
    assert all(len(step) <= 4 for step in written.steps)
    row = next(line for line in done.stdout.splitlines() if CAUSE in line and "named" in line)
    assert "unset" in row
    assert sum("not needed" in line for line in done.stdout.splitlines()) == 3
    command = shlex.split(done.stdout.rpartition("To measure this again: ")[2])
    assert command[:2] == ["gpubench", "bench"]
    assert len(command[command.index("--variants") + 1].split()) == 4
    assert command[command.index("--workloads") + 1] == "tasks"


@pytest.mark.integration
def test_a_slow_version_is_not_a_setting(runs: Any, bisect: Any) -> None:
    runs(lambda env: 1.5 if env["version"] == "1.19.0" else 1.0)
    done = bisect(ends="1.17.0 1.19.0")
    assert done.returncode == EXIT_INCONCLUSIVE
    none = r"It is none of the \d+ settings that could be reverted: reverting all restores less than the margin\."
    assert re.search(rf"{none} 1\.19\.0 takes \S+ % \[\S+, \S+\] \(at 90 %\) against itself with that\.", done.stdout)
    left_out = dict(line.split(": ") for line in done.stdout.splitlines() if line.startswith("Not searched, "))
    assert left_out["Not searched, another name of UCX_RNDV_FRAG_MEM_TYPES"] == "UCX_RNDV_FRAG_MEM_TYPE"
    not_taken = left_out["Not searched, 1.19.0 doesn't take the value of 1.17.0 as it is"]
    assert {"UCX_POSIX_RECV_OVERHEAD", "UCX_PROTO_OVERHEAD"} <= {*not_taken.split(", ")}
    assert "UCX_MAX_PRIORITY_EPS" in left_out["Not searched, new in 1.19.0, and no switch that is on"].split(", ")
    assert "UCX_DYNAMIC_TL_PROGRESS_FACTOR" in done.stdout  # not as derived where two calls print the same by chance


@pytest.mark.integration
def test_what_the_binding_sets_at_one_end_alone_is_searched_and_can_be_the_cause_with_the_code_of_one_version(
    runs: Any, bisect: Any, tmp_path: Path
) -> None:
    def factor(env: Env) -> float:
        return 1.5 if env["version"] == "1.19.0" and env.get("UCX_PROTO_ENABLE") != "n" else 1.0

    runs(factor)
    done = bisect(ends="1.17.0 1.19.0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "With UCX_PROTO_ENABLE=n, 1.19.0 takes " in done.stdout
    assert (
        "on 1.17.0, UCX_PROTO_ENABLE=y makes no difference: it is the setting with the code of 1.19.0." in done.stdout
    )
    space = open_search(search_of(tmp_path)).space
    assert isinstance(space, DifferenceSpace)
    assert next(setting.origin for setting in space.searched) == "binding"
    switch = next(setting for setting in space.searched if setting.name == "UCX_MEMTYPE_COPY_ENABLE")
    assert (switch.values, switch.origin, switch.applicable) == (("n", "y"), "new", False)


@pytest.mark.integration
@pytest.mark.parametrize(
    "overrides",
    [{"transport": ["cma", "tcp"]}, {"warnings": ["UCX reads no variable UCX_X: what was set changes nothing"]}],
)
def test_a_run_with_another_transport_or_an_unread_variable_tells_nothing(
    runs: Any, bisect: Any, overrides: Mapping[str, Any]
) -> None:
    def is_odd(env: Env) -> bool:
        return BROKEN in env and CAUSE in env

    # If these runs were counted, BROKEN would be named: with it, the slow end would be the fastest of all.
    runs(lambda env: 0.8 if is_odd(env) else with_cause(env), overrides=lambda env: overrides if is_odd(env) else {})
    answer = json.loads(bisect("--json", ends=f"fast=1.22.0,{BROKEN}=3 slow=1.22.0,{CAUSE}=20s").stdout)
    assert (answer["answer"], answer["named"]) == ("named", [CAUSE])


@pytest.mark.integration
def test_where_nothing_starts_reverted_the_answer_is_undecided_and_keeps_the_effect(runs: Any, bisect: Any) -> None:
    runs(with_cause, fails=lambda env: env["version"] == "1.22.0" and CAUSE not in env)
    done = bisect(ends=f"fast=1.21.0 slow=1.22.0,{CAUSE}=20s")
    assert done.returncode == EXIT_INCONCLUSIVE, done.stdout + done.stderr
    assert "undecided: +" in done.stdout
    assert "; no setting was reverted with a figure." in done.stdout


@pytest.mark.integration
@pytest.mark.parametrize("silent", ["1.17.0", "1.19.0"])
def test_without_an_answer_of_one_ucx_no_default_is_searched(runs: Any, bisect: Any, silent: str) -> None:
    runs(lambda env: 1.5 if env["version"] == "1.19.0" else 1.0, silent=silent)
    answer = json.loads(bisect("--json", ends="1.17.0 1.19.0").stdout)
    assert [setting["name"] for setting in answer["settings"]] == ["UCX_PROTO_ENABLE"]
    reason = "its ucx_info gives no answer"
    assert {"name": f"defaults of {silent}", "reason": reason} in answer["not_searched"]


@pytest.mark.integration
def test_where_both_ends_have_the_same_packages_nothing_is_measured(runs: Any, bisect: Any, tmp_path: Path) -> None:
    runs(with_cause)
    done = bisect("--over", "packages", ends="1.21.0 1.22.0")
    assert (done.returncode, "the images of both ends have the same packages; search" in done.stderr) == (2, True)
    assert not list(tmp_path.glob("outputs/*/*/plan.json"))


def test_a_point_is_called_by_the_numbers_of_its_settings_and_typed_as_a_variant() -> None:
    settings = tuple(Difference(f"UCX_{name}", (None, str(at)), "typed") for at, name in enumerate("ABCDE"))
    typed = "".join(f",{setting.name}={setting.values[1]}" for setting in settings)
    space = dataclasses.replace(
        difference_ends("settings", ("old=1.22.0", f"1.22.0{typed}")), differences=Differences(settings)
    )
    assert space.label(LAST) == "last"
    assert space.label(point_of(LAST, {4})) == "last:5"
    assert space.label(point_of(FIRST, {0, 1, 2, 4})) == "old:1-3+5"
    assert space.variant(point_of(FIRST, {0, 4})) == "old:1+5=1.22.0,UCX_A=0,UCX_E=4"
    assert space.variant(FIRST) == "old=1.22.0"
    assert space.variant(point_of(LAST, {0, 1, 2, 4})) == "last:1-3+5=1.22.0,UCX_D=3"


@pytest.mark.integration
def test_the_largest_regression_of_the_newest_campaign_is_the_question(
    runs: Any, gpubench: Run, tmp_path: Path
) -> None:
    runs(with_cause)
    options = ("--workers", "1", "--reps", "4", "--blocks", "8", "--seed", "1", "--set", "limits.start=90s")
    done = gpubench("bench", "--suite", "quick", "--variants", f"fast=1.22.0 slow=1.22.0,{CAUSE}=20s", *options, code=0)
    done = gpubench("bisect", "--workload", "tasks", code=0)
    assert re.search(r"^the largest regression of \S+: tasks, \+\d", done.stdout + done.stderr, re.MULTILINE)
    told = [line for line in done.stderr.splitlines() if "give its --set again" in line]
    assert told == ["gpubench: the site's limits.start is 120.0, and was 90.0 in the campaign: give its --set again"]
    search = open_search(search_of(tmp_path))
    assert (search.workload, search.options.suite, search.options.workers) == ("tasks", "quick", "1")
    done = gpubench("bisect", "--workload", "message")
    assert done.returncode == UsageError.exit_code
    assert "has no regression of message to search; name two variants" in done.stderr
    done = gpubench("bisect", "--workload", "merge", "--suite", "full")
    assert (done.returncode, done.stdout) == (UsageError.exit_code, "")
    assert "--suite full: the campaign has quick; leave it out" in done.stderr


@pytest.mark.parametrize(
    ("ends", "searched", "rest"),
    [
        (("a=1.22.0", "b=1.22.0,UCX_A=1"), 1, ""),
        (("a=1.22.0", "b=1.22.0,UCX_A=1,UCX_B=1"), 2, "the other settings of b"),
        (("a=1.21.0", "b=1.22.0,UCX_A=1"), 1, "the code of b"),
    ],
)
def test_ends_of_one_image_have_no_code_that_could_be_a_part_of_the_cause(
    ends: tuple[str, str], searched: int, rest: str
) -> None:
    """Seen: of one version with and without a setting, "maybe a part of it with the code of b"."""
    space: Any = SimpleNamespace(points=ends, searched=range(searched), over="settings", label="ab".__getitem__)
    answer: Any = SimpleNamespace(chosen=(0,), slow=LAST)
    search: Any = SimpleNamespace()
    assert DifferenceResult(search, space, [], answer).rest_of_the_difference == rest
