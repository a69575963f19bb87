"""Plan and submit for a cluster that this machine knows only by its profile."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Run, need

DRACO = ["--site", "draco", "--ucx", "v1.12.x master", "--suite", "quick"]


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH without any scheduler, git, Docker or network tool."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("bash", "make", "test", "env"):
        found = shutil.which(name)
        need(bool(found), name)
        (folder / name).symlink_to(found or "")
    return folder


def test_render_gives_the_same_bytes_in_every_directory_on_every_day(
    gpubench: Run, tmp_path: Path, tools: Path
) -> None:
    first = gpubench("plan", *DRACO, "--nodes", "1 8", "--out", "a", env={"PATH": str(tools)}, code=0)
    assert first.stdout.splitlines()[0] == "campaign a"
    assert "script a/jobs/j001-n1/job.sh" in first.stdout.splitlines()
    deep = tmp_path / "another" / "place"
    env = {"TZ": "Asia/Tokyo", "LANG": "C", "PYTHONHASHSEED": "7"}
    assert gpubench("plan", *DRACO, "--nodes", "1 8", "--out", deep, env=env).returncode == 0
    assert files(tmp_path / "a") == files(deep)
    plan = json.loads((deep / "plan.json").read_text())
    assert plan["campaign"] == "draco-quick"
    assert [variant["image"] for variant in plan["variants"]] == [None, None]
    assert plan["jobs"][0]["memory_limit"] == 0, "how much memory this machine has says nothing of a node's"
    gpubench("plan", *DRACO, "--nodes", "1 8", "--out", "a", code=0)
    assert files(tmp_path / "a") == files(deep)


def test_the_date_and_the_seed_are_words_too(gpubench: Run, tmp_path: Path) -> None:
    dated = [*DRACO, "--nodes", "2", "--date", "20221107"]
    assert gpubench("plan", *dated, "--seed", "5", "--out", "a").returncode == 0
    plan = json.loads((tmp_path / "a" / "plan.json").read_text())
    assert (plan["campaign"], plan["created_at"], plan["seed"]) == (
        "draco-quick-20221107",
        "2022-11-07T00:00:00+00:00",
        5,
    )
    other = gpubench("plan", *dated, "--seed", "6", "--out", "a")
    assert other.returncode == 2
    assert "a already holds another campaign" in other.stderr
    assert json.loads((tmp_path / "a" / "plan.json").read_text()) == plan


def test_a_plan_without_images_is_planned_and_refused_by_submit(gpubench: Run, tmp_path: Path, tools: Path) -> None:
    campaign = tmp_path / "outputs" / "c"
    words = (*DRACO, "--nodes", "2", "--seed", "7")
    refused = gpubench("plan", *words, "--images", "--out", campaign, env={"PATH": str(tools)})
    assert (refused.returncode, "no image yet for variant v1.12.x, master" in refused.stderr) == (6, True)
    build, import_ = refused.stderr.strip().partition("plan again: ")[2].split(" && ")
    assert build.endswith(" --push --set image.registry=HOST/NAME")  # draco's profile names no registry
    assert import_.endswith(" --set image.registry=HOST/NAME")
    assert not campaign.exists()
    done = gpubench("plan", *words, "--out", campaign, env={"PATH": str(tools)}, code=0)
    script = campaign / "jobs" / "j001-n2" / "job.sh"
    *lines, last = done.stdout.splitlines()
    assert f"script {script}" in lines
    assert last.startswith("these scripts are for reading: there is no image for v1.12.x, master")
    assert script.read_text().splitlines()[1].startswith("# For reading only: it stops at once.")
    stopped = subprocess.run(["bash", "job.sh"], cwd=script.parent, capture_output=True, text=True, check=False)
    assert (stopped.returncode, stopped.stderr) == (2, "job.sh is for reading: variant v1.12.x has no image\n")
    refused = gpubench("submit", campaign, env={"PATH": str(tools)})
    assert refused.returncode == 6, "the same without sbatch"
    subprocess.run(["bash", "-n", script], check=True)
    assert "#SBATCH --nodes=2" in script.read_text()
    (tools / "sbatch").symlink_to("/bin/false")
    refused = gpubench("submit", campaign, env={"PATH": str(tools)})
    assert refused.returncode == 6, refused.stderr
    assert "gpubench images build --site draco --ucx 'v1.12.x master'" in refused.stderr
    shown = gpubench("plan", campaign.relative_to(tmp_path))
    assert "master: UCX master, not built" in shown.stdout
    before = files(tmp_path)
    for command in ("submit", "bench"):
        refused = gpubench(command, *words, env={"PATH": str(tools)})
        assert refused.returncode == 6, refused.stderr
        assert "gpubench images build --site draco --ucx 'v1.12.x master'" in refused.stderr
        assert files(tmp_path) == before, "no campaign that cannot be run is left behind"
    foreseen = gpubench("plan", *words, env={"PATH": str(tools)}, code=0)
    first, *lines = foreseen.stdout.splitlines()
    assert first == "plan of draco-quick: nothing is written or run"
    assert lines == shown.stdout.splitlines()[1:]
    assert files(tmp_path) == before


def test_without_sbatch_and_images_submit_says_what_to_run_where_and_leaves_nothing(
    gpubench: Run, tmp_path: Path, tools: Path
) -> None:
    done = gpubench("submit", *DRACO, "--nodes", "8", env={"PATH": str(tools)})
    assert done.returncode == 5, done.stderr
    assert not [*(tmp_path / "outputs").glob("*")]
    (line,) = done.stderr.splitlines()
    assert "there is no sbatch on this machine, and no image yet for variant v1.12.x, master; on a machine" in line
    words = "--site draco --ucx 'v1.12.x master'"
    registry = "--set image.registry=HOST/NAME"
    there = f"on a login node of draco: gpubench images import {words} {registry}, then the same"
    assert f"on a machine with Docker: gpubench images build {words} --push {registry}; {there}" in line


def test_a_site_that_charges_every_job_gets_none_without_an_account(gpubench: Run, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("qsub", "qstat"):
        (tools / name).symlink_to("/bin/false")
    env = {"PATH": f"{tools}:/usr/bin:/bin"}
    for words in (["submit", "--site", "polaris"], ["sites", "check", "polaris", "--live"]):
        done = gpubench(*words, env=env)
        message = "site polaris charges every job to an account, and batch.account is empty; name your project: --set b"
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "outputs").exists()


def test_images_that_campaigns_build_themselves_are_not_to_be_built_by_name(gpubench: Run) -> None:
    assert gpubench("plan", "--ucx", "1.17.0 1.19.0", "--out", "a").returncode == 0
    refused = gpubench("submit", "a")
    assert refused.returncode == 6
    assert "no image yet for variant 1.17.0, 1.19.0; plan again with --images" in refused.stderr
    assert "images build" not in refused.stderr
