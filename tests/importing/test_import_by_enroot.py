"""What of the import script isn't alike with Apptainer, or needs one program only; the command enroot is a stand-in."""

import os
import platform
import shutil
import sys
from pathlib import Path

import pytest

from gpubench.render.importing import link_name, squashfs_name
from tests.importing.nodes import DATE, REPOSITORY, SPEC, Importer, image_files, item, wait_for_blobs
from tests.importing.registry import Registry, proxy

pytestmark = pytest.mark.system


def push(registry: Registry, tag: str = "t", **more: object) -> str:
    return registry.push(REPOSITORY, tag, image_files(), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "by"), [("3.4.1", ":"), ("4.1.2", "@"), ("5.0.0", "@")])
def test_every_enroot_is_asked_for_the_digest(importer: Importer, registry: Registry, version: str, by: str) -> None:
    digest = push(registry)
    importer.says_it_is(version)
    assert importer.run(item(registry.host, digest))[0] == 0
    assert importer.imports == [f"{registry.host}#{REPOSITORY}{by}{digest}"]
    assert f'"enroot": "{version}"' in Path(f"{importer.check(digest).path}.json").read_text()


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
