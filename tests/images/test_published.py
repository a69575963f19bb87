"""A lock file that came by git is all that a plan needs; it is made again from a registry, without Docker."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.images.manifests import MANIFEST
from gpubench.model.images_lock import ImagesLock, LockRow
from gpubench.render.importing import SIDECAR, squashfs_name
from tests.conftest import Run, need
from tests.importing.nodes import row
from tests.importing.registry import Registry

pytestmark = pytest.mark.system

REPOSITORY = "team/bench"
INSIDE: dict[str, Any] = {
    "schema": MANIFEST,
    "kind": "docker",
    "build_id": "b1",
    "base": {"name": "debian:12"},
    "env": {},
    "ucx": {"spec": "1.22.0", "version": "1.22.0", "release": "1.22.0", "libucp": "/opt/gpubench/ucx/lib/libucp.so.0"},
    "stack": {"name": "ucxx-0.45.1", "python": "3.11.2", "packages": {"dask": "2025.7.0"}, "lock": "l"},
    "binding": {"name": "ucxx", "version": "0.45.1", "scheme": "ucxx"},
}
SAME = ("--variants", "a=1.22.0 b=1.22.0", "--blocks", "1", "--nodes", "1")


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    need(shutil.which("docker-registry") is not None, "docker-registry")
    with Registry() as registry:
        yield registry


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A machine without Docker and without logins, where nothing is kept yet."""
    return {
        "DOCKER_HOST": "unix:///nowhere/docker.sock",
        "DOCKER_CONFIG": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


def lock(directory: Path, registry: Registry, site: str) -> LockRow:
    """The row of an image that holds ``INSIDE``, as git brings it."""
    text = json.dumps(INSIDE).encode()
    digest = registry.push(REPOSITORY, "ucx-py-1.22.0-20261107", {"gpubench/manifest.json": text})
    place = {"registry": f"{registry.host}/{REPOSITORY}", "tag": "ucx-py-1.22.0-20261107", "digest": digest}
    about = {"spec": "1.22.0", "ucx_version": "1.22.0", "date": "20261107", "build_id": "b1", "document": INSIDE}
    locked = row(site=site, **about, **place)
    (directory / "images.lock.toml").write_text(ImagesLock().with_rows([locked]).dump())
    return locked


def imported(root: Path, locked: LockRow) -> None:
    """What ``import.sh`` leaves below ``paths.images``."""
    path = root / "squashfs" / squashfs_name(locked.digest)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"hsqs")
    facts = {
        "schema": SIDECAR,
        "ucx_spec": locked.spec,
        "size": 4,
        "squashfs_sha256": hashlib.sha256(b"hsqs").hexdigest(),
    }
    same = {key: getattr(locked, key) for key in ("digest", "date", "build_id", "architecture")}
    path.with_name("image.sqsh.json").write_text(json.dumps({**facts, **same}))


def test_a_login_node_plans_with_an_imported_image_that_another_machine_built(
    gpubench: Run, tmp_path: Path, env: dict[str, str], registry: Registry
) -> None:
    locked = lock(tmp_path, registry, "draco")
    root = tmp_path / "images"
    words = ("plan", "--site", "draco", "--set", f"paths.images={root}", *SAME)
    asked = len(registry.requests)
    assert "a: UCX 1.22.0, built, not imported yet" in gpubench(*words, env=env).stdout
    imported(root, locked)
    done = gpubench(*words, env=env)
    assert (done.returncode, "a: UCX 1.22.0 " in done.stdout) == (0, True), done.stdout + done.stderr
    assert len(registry.requests) == asked


def test_a_plan_without_docker_keeps_its_image_when_a_newer_one_is_locked_and_a_date_asks_for_the_old_one(
    gpubench: Run, tmp_path: Path, env: dict[str, str], registry: Registry
) -> None:
    locked = lock(tmp_path, registry, "local")
    shown = gpubench("images", "list", "1.22.0", env=env, code=0).stdout
    assert (locked.digest in shown, "  dask 2025.7.0" in shown.splitlines()) == (True, True)
    plan = ("plan", "--runtime", "docker", *SAME, "--images")
    campaign = tmp_path / "planned" / "c"
    assert "a: UCX 1.22.0 " in gpubench(*plan, "--out", campaign, env=env, code=0).stdout
    before = {path: path.read_bytes() for path in campaign.rglob("*") if path.is_file()}
    assert locked.digest in (campaign / "plan.json").read_text()

    newer = registry.push(
        REPOSITORY, "ucx-py-1.22.0-20261108", {"gpubench/manifest.json": json.dumps(INSIDE).encode(), "x": b"y"}
    )
    rows = [locked, locked.model_copy(update={"date": "20261108", "digest": newer})]
    (tmp_path / "images.lock.toml").write_text(ImagesLock().with_rows(rows).dump())
    gpubench("plan", "--out", campaign, env=env, code=0)
    assert {path: path.read_bytes() for path in campaign.rglob("*") if path.is_file()} == before

    for words, digest in (((), newer), (("--date", "20261107"), locked.digest)):
        outputs = tmp_path / digest[7:]
        gpubench(*plan, *words, "--out", outputs / "c", env=env, code=0)
        (script,) = outputs.glob("*/jobs/*/job.sh")
        assert f"{locked.registry}@{digest}" in script.read_text()


def test_a_lock_from_the_registry_leaves_out_what_is_another_sites_or_not_ours_and_says_so(
    gpubench: Run, tmp_path: Path, env: dict[str, str], registry: Registry
) -> None:
    place, text = "team/mixed", json.dumps(INSIDE).encode()
    ours = {"ucx-spec": "1.22.0", "stack": "ucxx-0.45.1", "python": "/p", "architecture": "x86_64"}
    labels = {"io.gpubench.build-id": "b1", "io.gpubench.site": "local"}
    full = {**labels, **{f"io.gpubench.{key}": value for key, value in ours.items()}}
    manifest = {"gpubench/manifest.json": text}
    digest = registry.push(place, "ucx-py-1.22.0-20261107", manifest, labels=full)
    registry.push(place, "ucx-py-1.21.0-20261107", manifest, labels={**full, "io.gpubench.site": "draco"})
    registry.push(place, "ucx-py-old-20200101", manifest, labels=labels)
    registry.push(place, "ucx-py-empty-20200101", {"x": b""}, labels=full)
    registry.push(place, "latest", manifest, labels=full)
    words = ("images", "list", "--registry", "--json", "--set", f"image.registry={registry.host}/{place}")
    done = gpubench(*words, env=env, code=0)
    assert [one["identity"] for one in json.loads(done.stdout)["images"]] == [digest]
    (locked,) = ImagesLock.parse((tmp_path / "images.lock.toml").read_text(), "lock").image
    assert (locked.spec, locked.date, locked.digest, locked.document) == ("1.22.0", "20261107", digest, INSIDE)
    assert [line.split(":")[1] for line in done.stderr.splitlines()] == [
        " ucx-py-empty-20200101 left out",
        " ucx-py-old-20200101 left out",
    ]
