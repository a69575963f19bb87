"""What a command doesn't need it doesn't import: help comes at once, and a plan waits for no library."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.cli.application import PARTS
from tests.conftest import ROOT, own_queue, plain_environment

CAMPAIGN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"

# The modules that an application of ours has imported when it ends.
COMMAND = """
import json, sys
from gpubench.cli.entry_point import main
sys.argv = ["gpubench", *sys.argv[1:]]
try:
    main()
finally:
    with open("modules.json", "w") as out:
        json.dump(sorted(sys.modules), out)
"""
STATISTICS = {"numpy", "polars", "scipy", "vl_convert"}
FUNCTIONS = "scipy.special._ufuncs"
"""Where the statistics' functions stand; scipy's wrappers of other array libraries take nine times as long."""
WRAPPERS = {"numpy.f2py", "numpy.testing", "scipy.special", "scipy._lib._array_api"}
NETWORK = {"asyncio", "docker", "http", "requests", "ssl", "urllib3"}


def imported(directory: Path, *words: str | Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, words)],
        cwd=directory,
        env=plain_environment(own_queue(directory)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads((directory / "modules.json").read_text()))


def test_help_imports_no_library_but_typer(tmp_path: Path) -> None:
    found = imported(tmp_path, "--help")
    assert "typer" in found
    assert found & (STATISTICS | NETWORK | {"jinja2", "platformdirs", "pydantic", "rich", "tomllib", "uv"}) == set()


@pytest.mark.parametrize("command", ["bench", "compare"])
def test_help_of_a_command_imports_only_what_typer_reads_options_with_and_the_runtimes_that_it_names(
    tmp_path: Path, command: str
) -> None:
    found = imported(tmp_path, command, "--help")
    assert found & (STATISTICS | NETWORK | {"jinja2", "platformdirs", "rich", "uv"}) == set()
    assert ("gpubench.runtimes" in found) == (command == "bench")


@pytest.mark.parametrize("site", ["local", "draco"])
def test_plan_and_render_import_no_statistics_and_no_container_engine(tmp_path: Path, site: str) -> None:
    found = imported(tmp_path, "plan", "--site", site, "--ucx", "1.16.0 1.22.0", "--out", tmp_path / "rendered")
    assert "jinja2" in found
    assert found & (STATISTICS | NETWORK | {"rich"}) == set()


def test_a_verdict_waits_for_no_chart_and_not_for_every_distribution_there_is(tmp_path: Path) -> None:
    found = imported(tmp_path, "compare", "--fail-on", "regression", shutil.copytree(CAMPAIGN, tmp_path / "tiny"))
    assert {"polars", FUNCTIONS} <= found
    assert found & {"jinja2", "scipy.optimize", "scipy.stats", "statsmodels", "vl_convert"} == set()
    assert found & {"rich.console", "rich.table"} == set()  # a terminal's table, and this is none
    assert found & WRAPPERS == set()


def test_a_plan_that_says_what_it_finds_imports_of_scipy_the_functions_alone(tmp_path: Path) -> None:
    found = imported(tmp_path, "plan", "--site", "draco", "--ucx", "1.13.1 1.14.1")
    assert FUNCTIONS in found
    assert found & {"polars", "requests", "rich", "scipy.optimize", "scipy.stats"} == set()
    assert found & WRAPPERS == set()


def test_only_the_command_that_is_called_is_made(tmp_path: Path) -> None:
    found = imported(tmp_path, "sites", "list")
    assert found & {f"gpubench.cli.{module}" for module in PARTS} == {"gpubench.cli.sites"}


def test_the_first_run_of_bench_waits_for_no_library_of_the_report() -> None:
    text = "import sys, gpubench.campaign.lifecycle; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert "gpubench.campaign.local_jobs" in done.stdout.split()
    assert {*done.stdout.split()} & (STATISTICS | {"docker", "requests"}) == set()
