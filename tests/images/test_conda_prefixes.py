"""Conda prefixes by the real script: git, make, pip and UCX's libraries are real, `conda` is a stand-in.

UCX's repository is a small one whose `make install` installs a real build of UCX; so is ucx-py's, which loads it.
"""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpubench.model.images_lock import ImagesLock, LockRow
from tests.cli.campaigns import Front, until
from tests.conftest import ROOT, Run, need, own_queue, run_gpubench
from tests.images.conftest import Images, git, repository

pytestmark = pytest.mark.integration

CONFIGURE = """#!/bin/sh
for word in "$@"; do case $word in --prefix=*) prefix=${word#--prefix=} ;; esac; done
from=$(cat built)
printf 'all:\\ninstall:\\n\\tmkdir -p "%s"\\n\\tcp -r "%s/." "%s"\\n' "$prefix" "$from" "$prefix" >Makefile
printf '\\tcp -r "%s/../libucx_cu12.libs" "%s/.."\\n' "$from" "$prefix" >>Makefile # its modules need them
"""
BACKEND = """
import importlib.util, site, zipfile
def build_wheel(folder, settings=None, metadata=None):
    assert importlib.util.find_spec("planted") is None and not site.ENABLE_USER_SITE
    name = "ucx_py-0.29.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("ucp/__init__.py", "import ctypes; ctypes.CDLL('libucp.so.0')\\n")
        info = "ucx_py-0.29.0.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: ucx-py\\nVersion: 0.29.0\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return name
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
UCX_PY = "https://github.com/rapidsai/ucx-py.git"


class Cluster:
    """The profile deepops with a `conda` that records what it was asked for."""

    def __init__(self, folder: Path, ucx: str, ucx_py: str) -> None:
        self.folder, self.ucx = folder, ucx
        self.images, self.state = folder / "shared images", folder / "conda-state"
        self.state.mkdir(parents=True)
        (folder / "modules").mkdir()
        (folder / "modules" / "planted.py").touch()
        self.env = {
            **own_queue(folder),
            "PATH": f"{ROOT / 'tests' / 'stand_ins'}:{os.environ['PATH']}",
            "CONDA_EXE": "conda",
            "PYTHONPATH": str(folder / "modules"),
            "STAND_IN_CONDA_STATE": str(self.state),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{ucx_py}.insteadOf",
            "GIT_CONFIG_VALUE_0": UCX_PY,
        }

    def words(self, *arguments: str) -> list[str]:
        settings = [f"paths.images={self.images}", f"image.ucx_repository={self.ucx}"]
        return [*arguments, "--site", "deepops", *(word for setting in settings for word in ("--set", setting))]

    def __call__(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run_gpubench(self.words(*arguments), self.folder, {**self.env, **env})

    @property
    def rows(self) -> dict[str, LockRow]:
        return {row.spec: row for row in ImagesLock.parse((self.folder / "images.lock.toml").read_text(), "").image}

    @property
    def creations(self) -> list[str]:
        path = self.state / "creations"
        return path.read_text().splitlines() if path.exists() else []

    def manifest(self, row: LockRow) -> dict[str, Any]:
        return dict(json.loads((Path(row.python).parents[1] / "gpubench" / "manifest.json").read_text()))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, kept: Images) -> tuple[str, str]:
    """Addresses of UCX, which installs 1.19.0, and of ucx-py."""
    home = tmp_path_factory.mktemp("sources")
    libucx = str(Path(kept["1.19.0"][0].env["LD_LIBRARY_PATH"]).parent)
    ucx = {"autogen.sh": "#!/bin/sh\n", "contrib/configure-release": CONFIGURE, "built": libucx}
    ucx_py = repository(home / "ucx-py", {"pyproject.toml": PROJECT, "backend.py": BACKEND})
    git(ucx_py, "tag", "v0.29.00")
    return f"file://{repository(home / 'ucx', ucx)}", f"file://{ucx_py}"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, sources: tuple[str, str]) -> tuple[Cluster, str]:
    """A cluster with a prefix of UCX's master, and what its build said."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), *sources)
    need(any(Path("/root/.pyenv/versions").glob("3.9.*")) or bool(os.environ.get("CI")), "Python 3.9")
    done = cluster("images", "build", "master")
    assert done.returncode == 0, done.stdout + done.stderr
    return cluster, done.stdout


def test_a_prefix_is_what_its_manifest_says_and_the_lock_names_it(finished: tuple[Cluster, str], kept: Images) -> None:
    cluster, said = finished
    (row,) = cluster.rows.values()
    manifest = cluster.manifest(row)
    prefix = Path(row.python).parents[1]
    assert prefix.parent == cluster.images / "conda"
    assert (row.kind, row.stack, row.ucx_version, row.binding) == ("conda", "ucx-py-0.29", "1.19.0", "ucx-py")
    assert row.env["LD_LIBRARY_PATH"] == f"{prefix}/ucx/lib"
    assert row.ucx_commit == manifest["ucx"]["commit"] != ""
    assert (manifest["kind"], manifest["build_id"]) == ("conda", row.build_id)
    assert Path(manifest["ucx"]["libucp"]).parent == prefix / "ucx" / "lib"
    assert not [*(prefix / "lib").rglob("libuc*")]
    assert manifest["ucx"]["revision"] == kept["1.19.0"][1]["ucx"]["revision"]
    assert manifest["stack"]["packages"]["ucx-py"] == "0.29.0"
    assert manifest["stack"]["conda"]["cudf"].startswith("22.12 standin_0 ")
    steps = [line.removeprefix("master: ") for line in said.splitlines()]
    assert steps == [
        *("building master", "conda env create", "UCX master", "ucx-py 0.29.00", "manifest"),
        f"{row.digest} {row.python}",
    ]
    assert row.digest in cluster("images", "list", "master").stdout
    listing = run_gpubench(["images", "list", "--site", "deepops", "--json"], cluster.folder)
    (listed,) = (one for one in json.loads(listing.stdout)["images"] if one["kind"] == "conda")
    assert (listed["identity"], listed["where"]) == (row.digest, row.python)


def test_a_second_build_changes_nothing_and_needs_no_conda(finished: tuple[Cluster, str]) -> None:
    cluster, _ = finished
    (row,) = cluster.rows.values()
    lock, prefix = (cluster.folder / "images.lock.toml").read_text(), Path(row.python).parents[1]
    before = {path: path.stat().st_mtime_ns for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()}
    again = cluster("images", "build", "master", CONDA_EXE="/nowhere/conda", PATH="/usr/bin:/bin")
    assert again.returncode == 0, again.stderr
    after = {path: path.stat().st_mtime_ns for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()}
    assert (after, (cluster.folder / "images.lock.toml").read_text()) == (before, lock)
    assert len(cluster.creations) == 1


@pytest.fixture
def cluster(tmp_path: Path, sources: tuple[str, str]) -> Cluster:
    return Cluster(tmp_path, *sources)


def test_without_conda_the_scripts_are_written(cluster: Cluster) -> None:
    done = cluster("images", "build", "none", "--out", "scripts", CONDA_EXE="/nowhere/conda", PATH="/usr/bin:/bin")
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "neither conda nor mamba is on the PATH" in done.stderr
    assert "create.sh written to scripts/deepops-none" in done.stderr
    assert (
        f"run it on a machine with conda that sees {cluster.images}/conda: bash scripts/deepops-none/create.sh"
        in done.stderr
    )
    folder = cluster.folder / "scripts" / "deepops-none"
    assert {path.name for path in folder.iterdir()} == {"build.json", "create.sh", "describe.py", "environment.yml"}
    # By hand, then again: the prefix is taken as it is.
    by_hand = subprocess.run(
        ["bash", str(folder / "create.sh")],
        env={**os.environ, **cluster.env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert by_hand.returncode == 0, by_hand.stderr
    assert cluster("images", "build", "none", CONDA_EXE="/nowhere/conda", PATH="/usr/bin:/bin").returncode == 0
    assert (cluster.rows["none"].ucx_version, cluster.rows["none"].binding) == ("none", "none")


def test_a_killed_build_is_redone_and_the_one_beside_it_waits(cluster: Cluster) -> None:
    slow = cluster.state / "slow"
    slow.touch()
    first = Front(cluster.folder, *cluster.words("images", "build", "none"), env=cluster.env)
    until(lambda: cluster.creations, "conda to begin")
    second = Front(cluster.folder, *cluster.words("images", "build", "none"), env=cluster.env)
    until(lambda: "none: waiting for another builder" in second.output, "the second to wait")
    first.kill(signal.SIGKILL)
    assert first.end() == -signal.SIGKILL
    slow.unlink()
    assert (second.end(), cluster.creations) == (0, cluster.creations[:1] * 2)
    (prefix,) = {line.rpartition(" ")[0] for line in cluster.creations}
    assert Path(prefix, "gpubench-finished").read_text().strip() == cluster.rows["none"].build_id


def test_what_conda_refuses_is_one_line_and_the_log_keeps_it(cluster: Cluster) -> None:
    done = cluster("images", "build", "none", "master", STAND_IN_CONDA_STATE="/nonexistent")
    assert done.returncode == 5
    assert "2 of 2 images failed: none, master" in done.stderr
    assert "No such file or directory" in (cluster.images / "logs" / "conda-none.log").read_text()
    assert not (cluster.folder / "images.lock.toml").exists()


@pytest.mark.system
def test_a_cluster_runs_in_a_prefix_of_wheels(gpubench: Run, tmp_path: Path) -> None:
    # Here all but `conda` is real: stack and UCX come from the package index by the script's own pip.
    (tmp_path / "state").mkdir()
    env = {"CONDA_EXE": str(ROOT / "tests/stand_ins/conda"), "STAND_IN_CONDA_STATE": str(tmp_path / "state")}
    settings = ["--site", "local", "--set", "runtime=conda", "--set", f"paths.images={tmp_path / 'images'}"]
    gpubench("images", "build", "1.19.0", *settings, env=env, timeout=500, code=0)
    gpubench("measure", "message", "--ucx", "1.19.0", *settings, code=0)
    library = next((tmp_path / "images" / "conda").glob("ucxx-0.45.1-*/gpubench/manifest.json"))
    library.write_text(library.read_text().replace("standin_0", "another_0"))
    changed = gpubench("measure", "message", "--ucx", "1.19.0", *settings)
    assert (changed.returncode, "isn't the one of image 1.19.0" in changed.stderr) == (3, True)
