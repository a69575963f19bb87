"""The import script with enroot, against a real registry and real mksquashfs; only the command enroot is a stand-in."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.render.importing import link_name, squashfs_name
from tests.docker.daemon import PASSWORD, USER
from tests.importing.nodes import BUILD, DATE, REPOSITORY, SPEC, Importer, image_files, item, wait_for_blobs
from tests.importing.registry import Registry, proxy

pytestmark = pytest.mark.system


def push(registry: Registry, tag: str = "t", **more: object) -> str:
    return registry.push(REPOSITORY, tag, image_files(), **more)  # type: ignore[arg-type]


def read(path: Path, inside: str) -> str:
    words = ["unsquashfs", "-no-progress", "-cat", str(path), inside]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_an_image_is_imported_under_its_digest_with_a_sidecar_and_a_link(
    importer: Importer, registry: Registry
) -> None:
    lower = {"gone": b"x", "kept": b"below", "folder/old": b"x"}
    files = {**image_files(), ".wh.gone": b"", "folder/.wh..wh..opq": b"", "folder/new": b"y"}
    digest = registry.push(REPOSITORY, "layers", files, lower=lower, labels={"io.gpubench.ucx-spec": SPEC})
    code, said = importer.run(item(registry.host, digest))
    assert (code, said.splitlines()[-1]) == (0, f"import: {SPEC}: {importer.folder}/{squashfs_name(digest)}")
    found = importer.check(digest)
    sidecar = json.loads(Path(f"{found.path}.json").read_text())
    assert sidecar == {
        "schema": "gpubench/squashfs/1",
        "digest": digest,
        "registry": f"{registry.host}/{REPOSITORY}",
        "tag": f"ucx-py-{SPEC}-{DATE}",
        "build_id": BUILD,
        "ucx_spec": SPEC,
        "date": DATE,
        "architecture": "x86_64",
        "squashfs_sha256": sidecar["squashfs_sha256"],
        "size": found.path.stat().st_size,
        "imported_at": sidecar["imported_at"],
        "host": platform.node(),
        "enroot": "4.1.2",
    }
    link = importer.folder / link_name(SPEC, DATE)
    assert link.resolve() == found.path
    assert importer.left_over() == []
    assert read(found.path, "kept") == "below"
    assert read(found.path, "etc/environment") == "STACK=of the image\n"
    assert f"# io.gpubench.ucx-spec {SPEC}" in read(found.path, "etc/rc")
    listed = subprocess.run(["unsquashfs", "-ls", found.path], capture_output=True, text=True, check=True).stdout
    assert "squashfs-root/folder/new" in listed
    assert "gone" not in listed
    assert "folder/old" not in listed


def test_a_second_import_asks_the_registry_nothing(importer: Importer, registry: Registry) -> None:
    digest = push(registry)
    assert importer.run(item(registry.host, digest))[0] == 0
    before = importer.check(digest)
    requests = len(registry.requests)
    code, said = importer.run(item(registry.host, digest))
    assert (code, len(registry.requests), importer.check(digest)) == (0, requests, before)
    assert len(importer.imports) == 1
    assert "importing" not in said


@pytest.mark.parametrize(("version", "by"), [("3.4.1", ":"), ("4.1.2", "@"), ("5.0.0", "@")])
def test_every_enroot_is_asked_for_the_digest(importer: Importer, registry: Registry, version: str, by: str) -> None:
    digest = push(registry)
    importer.says_it_is(version)
    assert importer.run(item(registry.host, digest))[0] == 0
    assert importer.imports == [f"{registry.host}#{REPOSITORY}{by}{digest}"]
    assert f'"enroot": "{version}"' in Path(f"{importer.check(digest).path}.json").read_text()


def test_a_tag_that_moves_changes_nothing(importer: Importer, registry: Registry) -> None:
    first = push(registry, "moving")
    second = registry.push(REPOSITORY, "moving", image_files("another build"))
    assert first != second
    importer.says_it_is("3.4.1")
    assert importer.run(item(registry.host, first))[0] == 0
    assert BUILD in read(importer.check(first).path, "gpubench/manifest.json")


def test_the_link_moves_to_the_newer_build_of_a_day_and_the_old_file_stays(
    importer: Importer, registry: Registry
) -> None:
    first, second = push(registry, "one"), push(registry, "two")
    assert importer.run(item(registry.host, first))[0] == 0
    assert importer.run(item(registry.host, second))[0] == 0
    assert (importer.folder / link_name(SPEC, DATE)).resolve() == importer.check(second).path
    assert importer.check(first)


def test_an_image_of_another_architecture_is_refused(importer: Importer, registry: Registry) -> None:
    digest = push(registry, architecture="arm64")
    code, said = importer.run(item(registry.host, digest))
    assert code == 3
    assert f"{SPEC}: the image is built for another architecture than x86_64 (enroot: arm64 != amd64)" in said
    assert importer.run(item(registry.host, digest, architecture="aarch64"))[0] == 0


def test_an_architecture_that_enroot_does_not_know_is_one_line(importer: Importer, registry: Registry) -> None:
    code, said = importer.run(item(registry.host, push(registry), architecture="riscv64"))
    assert (code, "Unsupported architecture: riscv64" in said) == (7, True)


def test_a_damaged_file_is_imported_again(importer: Importer, registry: Registry) -> None:
    digest = push(registry)
    assert importer.run(item(registry.host, digest))[0] == 0
    os.truncate(importer.folder / squashfs_name(digest), 1000)
    code, said = importer.run(item(registry.host, digest))
    assert (code, "is damaged, it is replaced" in said) == (0, True)
    assert importer.check(digest)
    assert importer.left_over() == []


def test_a_living_import_is_waited_for_and_done_once(importer: Importer, registry: Registry, tmp_path: Path) -> None:
    digest = push(registry)
    nodes = [importer, *(Importer(tmp_path / f"node {number}", importer.folder) for number in range(7))]
    # 2 blobs of 7 s each: longer than it takes a lease to become stale, which is 12 s.
    with proxy(registry.host, slow_s=7) as slow:
        started = [node.start([item(slow.host, digest)], GPUBENCH_IMPORT_BEAT="2") for node in nodes]
        ended = [each.communicate(timeout=300) for each in started]
        blobs = [path for path in slow.paths if "/blobs/" in path]
    assert [each.returncode for each in started] == [0] * 8, ended
    assert len(blobs) == len(set(blobs)) == 2
    assert sum(len(node.imports) for node in nodes) == 1
    assert importer.check(digest)
    assert [node.left_over() for node in nodes] == [[]] * 8


def test_who_waited_long_enough_imports_without_the_lease(
    importer: Importer, registry: Registry, tmp_path: Path
) -> None:
    digest = push(registry)
    other = Importer(tmp_path / "other", importer.folder)
    with proxy(registry.host, slow_s=6) as slow, other.start([item(slow.host, digest)]) as first:
        wait_for_blobs(slow.paths)
        code, said = importer.run(item(registry.host, digest), GPUBENCH_IMPORT_LIMIT="5")
        assert (code, "not waiting any longer for" in said) == (0, True)
        mine = importer.check(digest)
        first.communicate(timeout=150)
    assert first.returncode == 0
    assert importer.check(digest) == mine
    assert importer.left_over() == []


def test_a_registry_without_tls_is_asked_over_http_where_the_site_says_so_and_else_named(
    importer: Importer, registry: Registry
) -> None:
    digest = push(registry)
    code, said = importer.run(item(registry.host, digest), ENROOT_ALLOW_HTTP="")
    assert (code, len(importer.imports)) == (7, 1)
    assert f"{SPEC}: {registry.host} doesn't speak https: curl: (35)" in said
    assert f"image.registry = http://{registry.host}/REPOSITORY" in said
    code, said = importer.run(item(f"http://{registry.host}", digest), ENROOT_ALLOW_HTTP="")
    assert code == 0, said
    assert importer.check(digest)


def test_without_credentials_the_line_to_add_is_said(importer: Importer) -> None:
    with Registry(password=True) as locked:
        digest = push(locked)
        code, said = importer.run(item(locked.host, digest))
        assert code == 7
        assert "machine 127.0.0.1 login USER password $TOKEN" in said
        assert str(importer.home / "config" / ".credentials") in said
        assert "trying again" not in said
        path = importer.home / "config" / ".credentials"
        path.write_text(f"machine 127.0.0.1 login {USER} password wrong-{PASSWORD}\n")
        code, said = importer.run(item(locked.host, digest))
        assert (code, PASSWORD in said) == (7, False)
        path.write_text(f"machine 127.0.0.1 login {USER} password $TOKEN\n")
        code, said = importer.run(item(locked.host, digest), TOKEN=PASSWORD)
    assert (code, PASSWORD in said) == (0, False)
    assert importer.check(digest)


def test_a_folder_that_may_not_be_written_is_one_line(importer: Importer) -> None:
    importer.folder.parent.mkdir(exist_ok=True)
    importer.folder.write_text("a file")
    code, said = importer.run(item("127.0.0.1:1", f"sha256:{'1' * 64}"))
    assert (code, f"{importer.folder}" in said) == (5, True)


def test_without_hard_links_everybody_imports_for_himself(importer: Importer, registry: Registry) -> None:
    # As on a file system that has none; no such file system can be made on every machine that runs this.
    ln = importer.home / "bin" / "ln"
    ln.write_text('#!/bin/bash\n[ "$1" = -s ] && exec /usr/bin/ln "$@"\necho "Operation not permitted" >&2\nexit 1\n')
    ln.chmod(0o755)
    digest = push(registry)
    code, said = importer.run(item(registry.host, digest))
    assert (code, "takes no hard links, so everybody imports for himself" in said) == (0, True)
    assert importer.check(digest)
    assert importer.left_over() == []


@pytest.mark.parametrize("tool", ["enroot", "mksquashfs"])
def test_a_missing_tool_is_one_line(importer: Importer, tool: str) -> None:
    tools = importer.home / "few"
    tools.mkdir()
    for name in ("bash", "hostname", "env", "python3", "mksquashfs", "unsquashfs", "sha256sum", "timeout", "enroot"):
        if name != tool:
            (tools / name).symlink_to(shutil.which(name, path=importer.env["PATH"]) or sys.executable)
    code, said = importer.run(item("127.0.0.1:1", f"sha256:{'1' * 64}"), PATH=str(tools))
    assert (code, said.count("\n")) == (5, 1)
    assert said.startswith(f"import: {tool} isn't on the PATH of {platform.node()}")
