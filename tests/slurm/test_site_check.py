"""`gpubench sites check --live` on real hosts: right where the site is right; every untruth of a profile is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench import resources
from gpubench.model.image import Image
from gpubench.plan.node_checks import check_images, parse_facts
from gpubench.render.check import INSIDE, render_check
from gpubench.resources.profiles import load_site
from tests.slurm.campaigns import UCX, Login
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.system
BARE = ["batch.queue=batch", "batch.account=''", "batch.options=[]", "node.cores=0", "node.gpus=0"]
"""What differs here from draco."""
CHECK = ("sites", "check", "local-slurm", "--live", "--nodes", "2")


def left(login: Login) -> list[Path]:
    """Directories of checks."""
    return list(login.directory.glob("outputs/checks/*"))


def test_a_right_profile_is_confirmed_down_to_what_ucx_sees_inside_the_image(login: Login) -> None:
    shared = f"paths.shared=['{login.directory}']"
    said = login.run(*CHECK, "--ucx", UCX, "--set", shared, "--set", "batch.queue=debug").splitlines()
    findings = [line for line in said if not line.startswith(("job ", "building", "image"))]
    assert all(line.startswith("ok: ") for line in findings), said
    assert any(line.startswith("ok: partition debug: job ") and "ran on n[1-2]" in line for line in said)
    for words in (
        "srun: 2 of 2 nodes left a file: n1, n2",
        "a file of this machine is read on every node",
        "interface eth0 is on every node",
        "interface eth0 has an address",
        "cores for 2 worker threads",
        "venv: the image started on 2 of 2 nodes",
        "UCX sees tcp/eth0",
    ):
        assert f"ok: {words}" in said
    assert left(login) == []


def test_every_untruth_of_a_profile_is_named_with_what_the_nodes_have(login: Login) -> None:
    said = login.run(
        *CHECK,
        *("--set", "interface=ib0", "--set", "image.fabric=['verbs']", "--set", "layout.workers=999"),
        *("--set", "setup.modules=['none/1.0']"),
        code=6,
    )
    for words in (
        "wrong: interface ib0 is on every node: n1 has eth0, lo; n2 has eth0, lo",
        "wrong: interface ib0 has an address: n1 has nothing; n2 has nothing",
        "wrong: memlock is unlimited, as NICs need it: n1 has ",
        "wrong: NICs in /dev/infiniband on every node: n1 has nothing; n2 has nothing",
        "wrong: module none/1.0 is loaded: n1 has nothing; n2 has nothing",
        "wrong: cores for 999 worker threads: n1 has ",
        "not checked: what UCX sees",
        "isn't as its profile says in 6 of these lines",
    ):
        assert words in said, said
    (directory,) = left(login)
    assert str(directory.relative_to(login.directory)) in said


def test_a_directory_of_the_login_nodes_own_is_found_out(login: Login, tmp_path: Path) -> None:
    """Hosts have a ``/tmp`` of their own."""
    said = login.run(*CHECK, "--outputs", tmp_path, code=6)
    assert "wrong: srun: 0 of 2 nodes left a file" in said


def test_a_check_looks_inside_a_squashfs_image_too(slurm: SlurmCluster, shared: Path, squashfs: Path) -> None:
    where = load_site("draco", [*BARE, "interface=eth0"])
    image = Image(
        kind="squashfs",
        id=f"sha256:{1:064d}",
        ucx_spec="v1.14.x",
        ucx_version="v1.14.x",
        binding="",
        python="/usr/bin/python3",
        env={},
        manifest="",
        reference=str(squashfs),
    )
    files = render_check(
        where,
        2,
        image,
        resources.texts("templates", "**/*.sh.j2"),
        inside=(resources.root() / "templates" / "common" / INSIDE).read_text(),
        node_pyz=b"",
        gpubench="test",
    )
    for name, data in files.items():
        path = shared / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (shared / "facts").mkdir()
    (shared / "jobs/check/from-login").write_text("token")
    done = slurm.run(["sbatch", "--wait", "job.sh"], cwd=shared / "jobs" / "check", pyxis=True)
    log = "".join(path.read_text() for path in shared.glob("jobs/check/slurm-*.log"))
    assert done.returncode == 0, done.stderr + log
    hosts, inside = (
        [parse_facts(path.read_text()) for path in sorted(shared.glob(f"facts/*.{kind}"))]
        for kind in ("host", "inside")
    )
    assert [str(finding) for finding in check_images(where, hosts, inside)] == [
        "ok: pyxis: the image started on 2 of 2 nodes",
        "wrong: NICs in /dev/infiniband inside the image: n1 has nothing; n2 has nothing",
        "wrong: the GPU driver's libraries inside the image: n1 has nothing; n2 has nothing",
        "not checked: what UCX sees: the image has no ucx_info",
    ], log
