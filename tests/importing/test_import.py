"""What the import script does alike with enroot (a stand-in) and with the real Apptainer, against a real registry."""

import base64
import json
import os
import platform
import signal
import subprocess
from pathlib import Path

import pytest

from gpubench.render.importing import link_name, squashfs_name
from tests.conftest import free_port, in_long_tests, need
from tests.docker.daemon import PASSWORD, USER
from tests.importing.nodes import BUILD, DATE, REPOSITORY, SPEC, Importer, image_files, item, wait_for_blobs
from tests.importing.registry import Registry, proxy

pytestmark = pytest.mark.system

MISSING = {"enroot": "404", "apptainer": "manifest unknown"}
DOWN = {"enroot": "curl: (7)", "apptainer": "connection refused"}
CUT_OFF = {"enroot": "curl: (18)", "apptainer": "unexpected EOF"}
NO_TLS = {"enroot": "curl: (35)", "apptainer": "FATAL: "}
"""What each says of an image that isn't there, of a registry that is down, of missing bytes, and of one without TLS."""
LOG_IN = {
    "enroot": "machine 127.0.0.1 login USER password $TOKEN",
    "apptainer": "log in first: apptainer registry login --username USER docker://127.0.0.1:",
}


@pytest.fixture(params=["enroot", "apptainer"])
def importer(request: pytest.FixtureRequest, tmp_path: Path) -> Importer:
    return Importer(tmp_path / "a node", tmp_path / "squash files", request.param)


@pytest.fixture
def digest(registry: Registry) -> str:
    """A small image in the registry."""
    return registry.push(REPOSITORY, "either", image_files())


def plain(host: str) -> str:
    return f"http://{host}"


def read(path: Path, inside: str) -> str:
    words = ["unsquashfs", "-no-progress", "-cat", str(path), inside]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_an_image_is_imported_under_its_digest_with_a_sidecar_and_a_link_and_asked_for_once(
    importer: Importer, registry: Registry
) -> None:
    lower = {"gone": b"x", "kept": b"below", "folder/old": b"x"}
    files = {**image_files(), ".wh.gone": b"", "folder/.wh..wh..opq": b"", "folder/new": b"y"}
    digest = registry.push(REPOSITORY, "layers", files, lower=lower, labels={"io.gpubench.ucx-spec": SPEC})
    code, said = importer.run(item(plain(registry.host), digest))
    assert (code, said.splitlines()[-1]) == (0, f"import: {SPEC}: {importer.folder}/{squashfs_name(digest)}"), said
    found = importer.check(digest)
    assert found.path.read_bytes()[:4] == b"hsqs"
    sidecar = json.loads(Path(f"{found.path}.json").read_text())
    image = {"digest": digest, "registry": f"http://{registry.host}/{REPOSITORY}", "tag": f"ucx-py-{SPEC}-{DATE}"}
    image |= {"build_id": BUILD, "ucx_spec": SPEC, "date": DATE, "architecture": "x86_64"}
    of_file = {name: sidecar[name] for name in ("squashfs_sha256", "imported_at", importer.program)}
    of_file |= {"size": found.path.stat().st_size, "host": platform.node()}
    assert sidecar == {"schema": "gpubench/squashfs/1", **image, **of_file}
    assert (importer.folder / link_name(SPEC, DATE)).resolve() == found.path
    listed = subprocess.run(["unsquashfs", "-ls", found.path], capture_output=True, text=True, check=True).stdout
    assert {"squashfs-root/folder/new", "squashfs-root/kept"} <= set(listed.split())
    assert not {"squashfs-root/gone", "squashfs-root/folder/old"} & set(listed.split())
    if importer.program == "enroot":
        assert read(found.path, "etc/environment") == "STACK=of the image\n"
        assert f"# io.gpubench.ucx-spec {SPEC}" in read(found.path, "etc/rc")
    assert importer.left_over() == []
    assert not (importer.home / ".apptainer" / "cache").exists()
    requests = len(registry.requests)
    assert importer.run(item(plain(registry.host), digest))[0] == 0
    assert (importer.check(digest), len(registry.requests), len(importer.imports)) == (found, requests, 1)


def test_marks_of_a_dead_importer_of_a_finished_image_are_removed_and_those_of_a_living_one_stay(
    importer: Importer, registry: Registry, digest: str
) -> None:
    image = item(plain(registry.host), digest)
    assert importer.run(image)[0] == 0
    dead, lease, living = (
        importer.folder / f".{squashfs_name(digest).partition('/')[0]}.{name}" for name in ("a.beat", "lease", "b.beat")
    )
    for mark in (dead, lease, living):
        mark.write_text("somebody\n")
    for mark in (dead, lease):
        os.utime(mark, (0, 0))
    assert importer.run(image)[0] == 0
    assert importer.left_over() == [living.name]


def test_a_registry_without_tls_is_named_and_asked_over_http_where_the_lock_says_so(
    importer: Importer, registry: Registry, digest: str
) -> None:
    code, said = importer.run(item(registry.host, digest), ENROOT_ALLOW_HTTP="")
    assert (code, len(importer.imports)) == (7, 1)
    assert f"{SPEC}: {registry.host} doesn't speak https: {NO_TLS[importer.program]}" in said
    assert f"image.registry = http://{registry.host}/REPOSITORY" in said
    assert importer.run(item(plain(registry.host), digest), ENROOT_ALLOW_HTTP="")[0] == 0


def test_without_a_login_the_way_to_it_is_said_and_no_password_is(importer: Importer) -> None:
    with Registry(password=True) as locked:
        digest = locked.push(REPOSITORY, "locked", image_files())
        image = item(plain(locked.host), digest)
        code, said = importer.run(image)
        assert (code, "trying again" in said, LOG_IN[importer.program] in said) == (7, False, True), said
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        credentials = importer.home / "config" / ".credentials"
        credentials.write_text(f"machine 127.0.0.1 login {USER} password wrong-{PASSWORD}\n")
        code, said = importer.run(image)
        assert (code, PASSWORD in said) == (7, False)
        credentials.write_text(f"machine 127.0.0.1 login {USER} password $TOKEN\n")
        (importer.home / ".apptainer").mkdir(exist_ok=True)
        auths = {"auths": {locked.host: {"auth": login}}}
        (importer.home / ".apptainer" / "docker-config.json").write_text(json.dumps(auths))
        code, said = importer.run(image, TOKEN=PASSWORD)
    assert (code, PASSWORD in said, login in said) == (0, False, False), said
    assert importer.check(digest)


def test_a_failing_image_leaves_the_others(importer: Importer, registry: Registry, digest: str) -> None:
    missing = f"sha256:{'0' * 64}"
    code, said = importer.run(item(plain(registry.host), missing, spec="1.0"), item(plain(registry.host), digest))
    assert code == 7
    assert f"1.0: http://{registry.host}/{REPOSITORY} by {missing} can't be imported" in said
    assert MISSING[importer.program] in said
    assert importer.check(digest)
    assert importer.left_over() == []


def test_another_build_under_the_digest_is_refused(importer: Importer, registry: Registry, digest: str) -> None:
    code, said = importer.run(item(plain(registry.host), digest, build_id="planned"))
    assert code == 3
    assert f"{SPEC}: the image holds build '{BUILD}', planned was 'planned'" in said
    assert list(importer.folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, *in_long_tests(signal.SIGINT, signal.SIGHUP)])
def test_an_interrupted_import_leaves_nothing(
    importer: Importer, registry: Registry, digest: str, number: signal.Signals
) -> None:
    with proxy(registry.host, slow_s=3) as slow, importer.start([item(plain(slow.host), digest)]) as started:
        wait_for_blobs(slow.paths)
        os.killpg(started.pid, number)
        _, said = started.communicate(timeout=150)
    assert (started.returncode, "import: interrupted" in said) == (130, True)
    assert list(importer.folder.iterdir()) == []
    assert importer.left_over() == []


def test_after_kill_9_the_next_importer_takes_over_and_cleans_up(
    importer: Importer, registry: Registry, digest: str
) -> None:
    with proxy(registry.host, slow_s=1) as slow:
        with importer.start([item(plain(slow.host), digest)]) as started:
            wait_for_blobs(slow.paths)
            os.killpg(started.pid, signal.SIGKILL)
        assert {".beat", ".lease"} <= {path.suffix for path in importer.folder.iterdir()}
        assert importer.left_over() != []
        code, said = importer.run(item(plain(slow.host), digest))
    assert (code, "waiting for" in said, "took over from an importer that died" in said) == (0, True, True), said
    assert importer.check(digest)
    assert importer.left_over() == []  # nor the log of the killed one


def test_a_registry_that_is_down_is_one_line_after_the_tries(importer: Importer) -> None:
    host = plain(f"127.0.0.1:{free_port()}")
    code, said = importer.run(item(host, f"sha256:{'1' * 64}"))
    assert (code, said.count("trying again"), len(importer.imports)) == (7, 2, 3)
    assert f"{SPEC}: {host} doesn't deliver, 3 times in a row: " in said
    assert DOWN[importer.program] in said
    assert importer.left_over() == []


@pytest.mark.parametrize("status", [429, *in_long_tests(503, 0)])
def test_a_busy_registry_is_asked_again(importer: Importer, registry: Registry, digest: str, status: int) -> None:
    answered: list[str] = []

    def answer(path: str, _: int) -> int | None:
        answered.extend([path] if "/blobs/" in path else [])
        return status if "/blobs/" in path and len(answered) < 6 else None

    with proxy(registry.host, answer) as busy:
        code, said = importer.run(item(plain(busy.host), digest), GPUBENCH_IMPORT_TRIES="9")
    assert code == 0, said
    assert "trying again" in said
    assert (str(status) if status else CUT_OFF[importer.program]) in said
    assert importer.check(digest)


def test_a_registry_that_hangs_is_given_up(importer: Importer, registry: Registry, digest: str) -> None:
    with proxy(registry.host, slow_s=20) as slow:
        code, said = importer.run(item(plain(slow.host), digest), GPUBENCH_IMPORT_LIMIT="1", GPUBENCH_IMPORT_TRIES="2")
    assert (code, "doesn't deliver, 2 times in a row: no end within 1 s" in said) == (7, True)
    assert importer.left_over() == []


def test_a_full_disk_is_one_line_and_leaves_nothing(importer: Importer, registry: Registry, digest: str) -> None:
    need(os.geteuid() == 0, "root, to mount a small disk")
    big = registry.push(REPOSITORY, "big", image_files(size=3_000_000))
    importer.folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", importer.folder], check=True)
    try:
        assert importer.run(item(plain(registry.host), digest))[0] == 0
        code, said = importer.run(item(plain(registry.host), big, spec="big"))
        assert code == 5, said
        (line,) = [line for line in said.splitlines() if "no space left" in line.lower()]
        assert line.startswith(f"import: big: can't write into {importer.folder}, or where {importer.program}")
        assert importer.check(digest)
        assert importer.left_over() == []
    finally:
        subprocess.run(["umount", importer.folder], check=True)
