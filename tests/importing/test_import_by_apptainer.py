"""The import script with the real Apptainer and a real registry: what differs from enroot. The rest is common."""

from __future__ import annotations

import base64
import json
import platform
import subprocess
from pathlib import Path

import pytest

from gpubench.render.importing import link_name, squashfs_name
from tests.docker.daemon import PASSWORD, USER
from tests.importing.nodes import BUILD, DATE, REPOSITORY, SPEC, Importer, image_files, item
from tests.importing.registry import Registry

pytestmark = pytest.mark.system


@pytest.fixture
def importer(tmp_path: Path) -> Importer:
    return Importer(tmp_path / "a node", tmp_path / "squash files", "apptainer")


def push(registry: Registry, tag: str = "apptainer") -> str:
    return registry.push(REPOSITORY, tag, image_files())


def plain(host: str) -> str:
    return f"http://{host}"


def test_an_image_is_imported_as_a_squashfs_file_that_apptainer_and_others_read(
    importer: Importer, registry: Registry
) -> None:
    lower = {"gone": b"x", "kept": b"below", "folder/old": b"x"}
    files = {**image_files(), ".wh.gone": b"", "folder/.wh..wh..opq": b"", "folder/new": b"y"}
    digest = registry.push(REPOSITORY, "layers", files, lower=lower)
    code, said = importer.run(item(plain(registry.host), digest))
    assert (code, said.splitlines()[-1]) == (0, f"import: {SPEC}: {importer.folder}/{squashfs_name(digest)}"), said
    assert importer.imports == [f"docker://{registry.host}/{REPOSITORY}@{digest}"]
    found = importer.check(digest)
    assert found.path.read_bytes()[:4] == b"hsqs"
    sidecar = json.loads(Path(f"{found.path}.json").read_text())
    assert (sidecar["apptainer"], sidecar["build_id"], sidecar["host"]) == (version(), BUILD, platform.node())
    assert "enroot" not in sidecar
    assert (importer.folder / link_name(SPEC, DATE)).resolve() == found.path
    listed = subprocess.run(["unsquashfs", "-ls", found.path], capture_output=True, text=True, check=True).stdout
    assert "squashfs-root/folder/new" in listed
    assert not {"squashfs-root/gone", "squashfs-root/folder/old"} & set(listed.split())
    assert importer.left_over() == []
    assert not (importer.home / ".apptainer" / "cache").exists()
    before, requests = found, len(registry.requests)
    assert importer.run(item(plain(registry.host), digest))[0] == 0
    assert (importer.check(digest), len(registry.requests), len(importer.imports)) == (before, requests, 1)


def version() -> str:
    said = subprocess.run(["apptainer", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[-1]


def test_a_registry_without_tls_is_named(importer: Importer, registry: Registry) -> None:
    code, said = importer.run(item(registry.host, push(registry)))
    assert (code, len(importer.imports)) == (7, 1)
    assert f"{SPEC}: {registry.host} doesn't speak https: FATAL: " in said
    assert f"image.registry = http://{registry.host}/REPOSITORY" in said


def test_without_a_login_the_command_to_log_in_is_said(importer: Importer) -> None:
    with Registry(password=True) as locked:
        digest = push(locked)
        code, said = importer.run(item(plain(locked.host), digest))
        assert (code, "trying again" in said) == (7, False)
        assert f"log in first: apptainer registry login --username USER docker://{locked.host}" in said
        config = importer.home / ".apptainer" / "docker-config.json"
        config.parent.mkdir(exist_ok=True)
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        config.write_text(json.dumps({"auths": {locked.host: {"auth": login}}}))
        code, said = importer.run(item(plain(locked.host), digest))
    assert (code, login in said, PASSWORD in said) == (0, False, False), said
    assert importer.check(digest)
