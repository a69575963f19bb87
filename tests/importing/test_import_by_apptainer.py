"""The import script with the real Apptainer and a real registry: what differs from enroot. The rest is common."""

from __future__ import annotations

import base64
import json
import os
import platform
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gpubench.render.importing import link_name, squashfs_name
from tests.conftest import free_port, need
from tests.docker.daemon import PASSWORD, USER
from tests.importing.nodes import BUILD, DATE, REPOSITORY, SPEC, Importer, image_files, item
from tests.importing.registry import Registry, proxy

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


def test_a_failing_image_leaves_the_others(importer: Importer, registry: Registry) -> None:
    good, missing = push(registry), f"sha256:{'0' * 64}"
    code, said = importer.run(item(plain(registry.host), missing, spec="1.0"), item(plain(registry.host), good))
    assert code == 7
    assert f"1.0: http://{registry.host}/{REPOSITORY} by {missing} can't be imported" in said
    assert "manifest unknown" in said
    assert importer.check(good)
    assert importer.left_over() == []


def test_another_build_under_the_digest_is_refused(importer: Importer, registry: Registry) -> None:
    code, said = importer.run(item(plain(registry.host), push(registry), build_id="planned"))
    assert code == 3
    assert f"{SPEC}: the image holds build '{BUILD}', planned was 'planned'" in said
    assert list(importer.folder.iterdir()) == []


def test_an_interrupted_import_leaves_nothing(importer: Importer, registry: Registry) -> None:
    digest = push(registry)
    with proxy(registry.host, slow_s=3) as slow, importer.start([item(plain(slow.host), digest)]) as started:
        wait_for_blobs(slow.paths)
        os.killpg(started.pid, signal.SIGTERM)
        _, said = started.communicate(timeout=150)
    assert (started.returncode, "import: interrupted" in said) == (130, True)
    assert list(importer.folder.iterdir()) == []
    assert importer.left_over() == []


def test_after_kill_9_the_next_importer_removes_what_is_left(importer: Importer, registry: Registry) -> None:
    digest = push(registry)
    with proxy(registry.host, slow_s=1) as slow:
        with importer.start([item(plain(slow.host), digest)]) as started:
            wait_for_blobs(slow.paths)
            os.killpg(started.pid, signal.SIGKILL)
        assert [path.suffix for path in (importer.home / "tmp").iterdir() if path.is_dir()] == [".d"]
        code, said = importer.run(item(plain(slow.host), digest))
    assert (code, "took over from an importer that died" in said) == (0, True), said
    assert importer.check(digest)
    assert importer.left_over() == []


def wait_for_blobs(paths: list[str]) -> None:
    deadline = time.monotonic() + 150
    while not any("/blobs/" in path for path in paths):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_registry_that_is_down_is_one_line_after_the_tries(importer: Importer) -> None:
    host = plain(f"127.0.0.1:{free_port()}")
    code, said = importer.run(item(host, f"sha256:{'1' * 64}"))
    assert (code, said.count("trying again"), len(importer.imports)) == (7, 2, 3)
    assert f"{SPEC}: {host} doesn't deliver, 3 times in a row: FATAL: " in said
    assert "connection refused" in said
    assert importer.left_over() == []


def test_a_registry_without_tls_is_named(importer: Importer, registry: Registry) -> None:
    code, said = importer.run(item(registry.host, push(registry)))
    assert (code, len(importer.imports)) == (7, 1)
    assert f"{SPEC}: {registry.host} doesn't speak https: FATAL: " in said
    assert f"image.registry = http://{registry.host}/REPOSITORY" in said


@pytest.mark.parametrize(("status", "what"), [(429, "429"), (503, "503"), (0, "unexpected EOF")])
def test_a_busy_registry_is_asked_again(importer: Importer, registry: Registry, status: int, what: str) -> None:
    digest, answered = push(registry), []

    def answer(path: str, _: int) -> int | None:
        answered.extend([path] if "/blobs/" in path else [])
        return status if "/blobs/" in path and len(answered) < 6 else None

    with proxy(registry.host, answer) as busy:
        code, said = importer.run(item(plain(busy.host), digest), GPUBENCH_IMPORT_TRIES="9")
    assert code == 0, said
    assert "trying again" in said
    assert what in said
    assert importer.check(digest)


def test_a_registry_that_hangs_is_given_up(importer: Importer, registry: Registry) -> None:
    digest = push(registry)
    with proxy(registry.host, slow_s=20) as slow:
        code, said = importer.run(item(plain(slow.host), digest), GPUBENCH_IMPORT_LIMIT="1", GPUBENCH_IMPORT_TRIES="2")
    assert (code, "doesn't deliver, 2 times in a row: no end within 1 s" in said) == (7, True)
    assert importer.left_over() == []


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


def test_a_full_disk_is_one_line_and_leaves_nothing(importer: Importer, registry: Registry) -> None:
    need(os.geteuid() == 0, "root, to mount a small disk")
    small, big = push(registry), registry.push(REPOSITORY, "big", image_files(size=3_000_000))
    importer.folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", importer.folder], check=True)
    try:
        assert importer.run(item(plain(registry.host), small))[0] == 0
        code, said = importer.run(item(plain(registry.host), big, spec="big"))
        assert code == 5, said
        (line,) = [line for line in said.splitlines() if "no space left" in line]
        assert line.startswith(f"import: big: can't write into {importer.folder}, or where apptainer")
        assert importer.check(small)
        assert importer.left_over() == []
    finally:
        subprocess.run(["umount", importer.folder], check=True)
