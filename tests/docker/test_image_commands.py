"""Images by the public commands: built, pushed, locked, verified, and a whole campaign inside them."""

from __future__ import annotations

import contextlib
import grp
import json
import os
import re
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.campaigns import cluster_processes, nothing_left, until
from tests.conftest import plain_environment
from tests.docker.daemon import DockerDaemon, RegistryServer
from tests.docker.site import Site, processes

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
VERSIONS = ("1.16.0", "1.22.0")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, daemon: DockerDaemon, registry: RegistryServer, base: str) -> Site:
    """Two versions, built and pushed by one command."""
    made = Site(tmp_path_factory.mktemp("site"), daemon, registry, base)
    done = made.run("images", "build", *VERSIONS, "--base", base, "--push", *made.settings)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return made


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that others may pass. Those of pytest are closed, again whenever another pytest starts."""
    with tempfile.TemporaryDirectory(prefix="gpubench-open-", dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_two_versions_are_locked_by_the_digests_that_the_registry_knows(site: Site) -> None:
    assert set(site.rows) == set(VERSIONS)
    for row in site.rows.values():
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", row["digest"])
        assert row["tag"] == f"ucx-py-{row['spec']}-{row['date']}"
    before = (site.directory / "images.lock.toml").read_text()
    done = site.run("images", "list", "--registry", *site.settings, env={"DOCKER_HOST": "unix:///nowhere/docker.sock"})
    assert done.returncode == 0, done.stderr
    assert tomllib.loads((site.directory / "images.lock.toml").read_text()) == tomllib.loads(before)


def test_list_and_show_tell_which_image_is_which(site: Site) -> None:
    images = json.loads(site.run("images", "list", "--json").stdout)["images"]
    assert {one["spec"]: one["identity"] for one in images if one["kind"] == "docker"} == {
        spec: row["digest"] for spec, row in site.rows.items()
    }
    shown = site.run("images", "list", "1.16.0").stdout
    assert site.rows["1.16.0"]["build_id"] in shown
    assert re.search(r"^  distributed 2025\.7\.0$", shown, re.MULTILINE)


def test_a_branch_that_nobody_can_resolve_leaves_the_other_version(site: Site) -> None:
    silent = ["--set", "image.ucx_repository=file:///no/such/repository", "--no-push", "--date", "20260102"]
    done = site.run("images", "build", "v1.18.x", "1.16.0", "--base", site.base, *silent, *site.settings)
    assert (done.returncode, "doesn't say which commit v1.18.x is" in done.stderr) == (5, True), done.stdout[-2000:]
    locked = tomllib.loads((site.directory / "images.lock.toml").read_text())["image"]
    assert [row["spec"] for row in locked if row["date"] == "20260102"] == ["1.16.0"]


def test_a_build_that_fails_shows_the_end_of_its_log_and_names_it(site: Site) -> None:
    before = (site.directory / "images.lock.toml").read_text()
    package = ["--set", 'image.packages=["no-such-package"]', "--no-push", "--date", "20260103"]
    done = site.run("images", "build", "1.16.0", "--base", site.base, *package, *site.settings)
    assert done.returncode == 5, done.stdout + done.stderr
    assert re.search(r"^1\.16\.0: #\d+ .*Unable to locate package no-such-package", done.stdout, re.MULTILINE)
    failure, summary = done.stderr.splitlines()
    assert failure.startswith("gpubench: image 1.16.0: its build failed (")
    assert failure.endswith(f"log: {site.directory / 'cache' / 'gpubench' / 'logs' / '1.16.0.log'}")
    assert summary == "gpubench: 1 of 1 images failed: 1.16.0"
    assert (site.directory / "images.lock.toml").read_text() == before


def test_a_whole_campaign_runs_inside_the_containers_by_digest(site: Site) -> None:
    done = site.run(*site.bench("--ucx", " ".join(VERSIONS), "--blocks", "1"))
    assert done.returncode == 0, done.stdout + done.stderr
    (campaign,) = (site.directory / "outputs").glob("local-verify-*")
    script = next(campaign.glob("jobs/*/job.sh")).read_text()
    for row in site.rows.values():
        assert f"{row['registry']}@{row['digest']}" in script
    seen = {(one["ucx"]["loaded"], one["ucx"]["path"], one["build_id"]) for one in processes(campaign)}
    assert seen == {(spec, "/opt/gpubench/ucx/lib/libucp.so.0", row["build_id"]) for spec, row in site.rows.items()}
    assert re.search(r"^message \| 1\.22\.0 vs 1\.16\.0 \|.* 1 block \| inconclusive", done.stdout, re.MULTILINE)


def test_containers_of_an_interleaved_block_take_turns(site: Site) -> None:
    words = ["--variants", "a=1.22.0 b=1.16.0", "--blocks", "1", "--outputs", "turns"]
    done = site.run(*site.bench(*words, "--set", "layout.arrangement=interleaved"))
    assert done.returncode == 0, done.stdout + done.stderr
    (campaign,) = (site.directory / "turns").iterdir()
    ran = [json.loads(path.read_text()) for path in campaign.glob("runs/*/run.json")]
    assert [run["status"] for run in ran] == ["ok", "ok"]
    assert max(run["started_at"] for run in ran) < min(run["ended_at"] for run in ran)
    assert {process["ucx"]["loaded"] for process in processes(campaign)} == {"1.22.0", "1.16.0"}
    nothing_left(lambda: containers(site))


def test_ctrl_c_leaves_no_container_behind(site: Site) -> None:
    front = site.front(*site.bench("--variants", "a=1.22.0 b=1.22.0", "--blocks", "3", "--outputs", "stopped"))
    until(lambda: bool(list((site.directory / "stopped").glob("*/runs/*/samples.jsonl"))), "the first sample")
    front.process.send_signal(signal.SIGINT)
    assert front.end() == 130, front.output
    nothing_left(lambda: containers(site))  # the engine removes them by itself, when they have ended


@pytest.mark.long
def test_a_killed_front_end_leaves_no_container_behind(site: Site) -> None:
    front = site.front(*site.bench("--variants", "a=1.22.0 b=1.22.0", "--blocks", "3", "--outputs", "killed"))
    until(lambda: bool(list((site.directory / "killed").glob("*/runs/*/samples.jsonl"))), "the first sample")
    os.kill(front.process.pid, signal.SIGKILL)
    front.end()
    until(lambda: not containers(site) and not cluster_processes(site.directory), "the end of every container")


def test_what_containers_write_belongs_to_the_caller(site: Site, daemon: DockerDaemon, open_place: Path) -> None:
    somebody, group = 4711, grp.getgrnam("docker").gr_gid  # the engine's socket is its group's
    campaign = site.planned(str(open_place / "of-somebody"))
    for path in (campaign, *campaign.rglob("*")):
        os.chown(path, somebody, group)
    daemon.home.chmod(0o711)  # its socket is the group's, its directory was nobody else's
    (script,) = campaign.glob("jobs/*/job.sh")
    # By hand, as the script's head says: the Python of these tests may lie where only root may read.
    env = {"PATH": os.environ["PATH"], "DOCKER_HOST": site.env["DOCKER_HOST"], "HOME": str(campaign)}
    done = subprocess.run(
        ["bash", str(script)],
        check=False,
        env=env,
        user=somebody,
        group=group,
        extra_groups=[],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.run("status", str(campaign)).returncode == 0
    written = [path for path in campaign.glob("runs/*/*") if path.is_file()]
    assert written
    assert {path.stat().st_uid for path in written} == {somebody}


def test_versions_are_built_on_one_image_of_their_stack(site: Site, daemon: DockerDaemon) -> None:
    with contextlib.closing(daemon.client()) as client:
        stack, *versions = (
            client.images.get(name).attrs["RootFS"]["Layers"]
            for name in (
                "gpubench:stack-ucxx-0.45.1",
                *(f"{one['registry']}:{one['tag']}" for one in site.rows.values()),
            )
        )
    assert [layers[: len(stack)] for layers in versions] == [stack, stack]


def containers(site: Site) -> str:
    listed = subprocess.run(
        ["docker", "ps", "--all", "--quiet"],
        env=plain_environment(site.env),
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout
