"""Pushes and pulls between the real engine and real registries."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
from pathlib import Path

import pytest

from gpubench.errors import SchedulerError
from gpubench.images.docker import engine as engine_module
from gpubench.images.docker.engine import Engine
from gpubench.images.docker.registry import Registry
from tests.conftest import free_port
from tests.docker.daemon import PASSWORD, USER, DockerDaemon, RegistryServer
from tests.docker.images import build_one, built, dockerfile, job, log_in, remove, tags
from tests.docker.proxy import Fault, Proxy

pytestmark = pytest.mark.system


def push(engine: Engine, image: str, place: str, tag: str = "v1") -> str:
    return engine.push(image, place, tag)


def small(engine: Engine, word: str, size: int = 0) -> str:
    """An image of a single file, and one of ``size`` bytes that don't compress."""
    content = random.Random(word).randbytes(size) if size else b""
    files = {"Dockerfile": b"FROM scratch\nCOPY large manifest.json /gpubench/\n", "large": content}
    return built(engine, {**files, "manifest.json": word.encode()})


def test_the_digest_of_a_push_is_what_the_registry_says_and_what_is_pulled(
    engine: Engine, base: str, registry: RegistryServer, daemon: DockerDaemon, tmp_path: Path
) -> None:
    place = f"{registry.host}/team/ucx"
    outcome = build_one(job("v1.14.x", dockerfile(base), push=place), tmp_path)
    assert outcome.error is None
    found = Registry(place).resolve("ucx-py-v1.14.x-20261121", "x86_64")
    assert outcome.digest == found.digest
    assert found.config == outcome.image
    assert found.labels["io.gpubench.test.name"] == "v1.14.x"
    assert Registry(place).last_layer_file(found, "/gpubench/manifest.json") == b'{"build_id": "b1"}'

    remove(engine, outcome.image)
    assert not any(place in tag for tag in tags(daemon))
    assert engine.pull(found.reference) == outcome.image


def test_a_digest_that_the_engine_does_not_know_is_not_believed(
    engine: Engine, registry: RegistryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "digests", lambda _engine, _image: [f"docker.io/team/ucx@sha256:{'a' * 64}"])
    files = {"Dockerfile": b"FROM scratch\nCOPY x /\n", "x": b"moved meanwhile"}
    outcome = build_one(job("believed", files, push=f"{registry.host}/team/ucx"), tmp_path)
    assert isinstance(outcome.error, SchedulerError)
    assert "doesn't say which digest" in str(outcome.error)


def test_a_tag_that_moved_leaves_the_digest_where_it_was(engine: Engine, registry: RegistryServer) -> None:
    place = f"{registry.host}/team/moved"
    first, second = small(engine, "first"), small(engine, "second")
    old, new = push(engine, first, place), push(engine, second, place)
    assert old != new
    assert Registry(place).resolve("v1", "x86_64").digest == new
    remove(engine, first)
    remove(engine, second)
    pulled = engine.pull(f"{place}@{old}")
    assert pulled == first
    assert engine.read_file(pulled, "/gpubench/manifest.json") == b"first"
    assert engine.read_file(engine.pull(f"{place}:v1"), "/gpubench/manifest.json") == b"second"


def test_a_registry_that_is_down_is_one_line_and_the_image_stays_in_the_engine(
    engine: Engine, daemon: DockerDaemon, tmp_path: Path
) -> None:
    place = f"127.0.0.1:{free_port()}/team/ucx"
    files = {"Dockerfile": b"FROM scratch\nCOPY x /\n", "x": b"down"}
    outcome = build_one(job("down", files, push=place), tmp_path)
    assert isinstance(outcome.error, SchedulerError)
    line = str(outcome.error)
    assert "doesn't answer: could not push" in line
    assert "connection refused" in line
    assert line.endswith(f"log: {tmp_path / 'down.log'}")
    assert (outcome.image, outcome.digest, outcome.lines) == ("", "", ())
    assert f"{place}:ucx-py-down-20261121" in tags(daemon)
    with pytest.raises(SchedulerError, match="doesn't answer: could not pull"):
        engine.pull(f"{place}:v2")


def test_a_login_is_needed_and_never_told(  # noqa: PLR0917 - fixtures
    engine: Engine,
    locked_registry: RegistryServer,
    docker_home: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    caplog.set_level(logging.DEBUG)
    place = f"{locked_registry.host}/team/ucx"
    image = small(engine, "locked")
    with pytest.raises(SchedulerError) as without:
        push(engine, image, place)
    assert str(without.value) == (
        f"registry {locked_registry.host} refuses to push {place}:v1 (no basic auth credentials); "
        f"check the login in {docker_home / 'config.json'}: docker login {locked_registry.host}"
    )
    log_in(docker_home, locked_registry.host, password="wrong-" + PASSWORD)
    with pytest.raises(SchedulerError, match="refuses to push") as wrong:
        push(engine, image, place)
    log_in(docker_home, locked_registry.host)
    files = {"Dockerfile": b"FROM scratch\nCOPY x /\n", "x": b"locked"}
    outcome = build_one(job("locked", files, push=place), tmp_path)
    assert outcome.digest.startswith("sha256:")
    assert Registry(place).tags() == ["ucx-py-locked-20261121"]
    assert engine.pull(f"{place}@{outcome.digest}") == outcome.image
    out, err = capfd.readouterr()
    everything = (out, err, caplog.text, (tmp_path / "locked.log").read_text(), repr(without.value), repr(wrong.value))
    assert not any(PASSWORD in text for text in everything)
    assert caplog.text


@pytest.mark.long
def test_a_full_registry_is_one_line(engine: Engine, tmp_path: Path) -> None:
    files = {"Dockerfile": b"FROM scratch\nCOPY large /\n", "large": random.Random("full").randbytes(6 << 20)}
    with RegistryServer(size="3m") as own:
        place = f"{own.host}/ucx"
        outcome = build_one(job("full", files, push=place), tmp_path)
    assert "is out of order or its disk is full: could not push" in str(outcome.error)


def test_a_registry_that_stops_answering_is_not_waited_for(
    engine: Engine, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "SILENCE_S", 2)
    image = small(engine, "slow", size=1 << 20)
    with Proxy(registry.host) as proxy:
        proxy.faults = [Fault(path="/blobs/uploads", silent=30)] * 20
        with pytest.raises(SchedulerError) as caught:
            push(engine, image, f"{proxy.host}/ucx")
    assert "doesn't answer: could not push" in str(caught.value)
    assert "timed out" in str(caught.value)


def test_the_engine_s_full_disk_is_not_the_registry_s(
    engine: Engine, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{registry.host}/team/large"
    digest = push(engine, small(engine, "large", size=40 << 20), place)
    with DockerDaemon(size="24m") as tiny:
        monkeypatch.setenv("DOCKER_HOST", tiny.host)
        with Engine.connect() as other, pytest.raises(Exception, match="engine is full: could not pull"):
            other.pull(f"{place}@{digest}")
        with contextlib.closing(tiny.client()) as client:
            assert client.images.list() == []


HELPER = f"""#!/bin/sh
read -r host
echo "$1 $host" >> "$0.log"
case "$host" in
  broken) echo "secret {PASSWORD}" >&2; exit 3 ;;
  *) printf '{{"ServerURL": "%s", "Username": "{USER}", "Secret": "{PASSWORD}"}}' "$host" ;;
esac
"""


def test_a_credential_helper_is_asked(
    engine: Engine, locked_registry: RegistryServer, docker_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    helper = tmp_path / "bin" / "docker-credential-planted"
    helper.parent.mkdir()
    helper.write_text(HELPER)
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{helper.parent}:{os.environ['PATH']}")
    config = {"credHelpers": {locked_registry.host: "planted"}}
    (docker_home / "config.json").write_text(json.dumps(config))
    place = f"{locked_registry.host}/team/helped"
    digest = push(engine, small(engine, "helped"), place)
    assert Registry(place).resolve("v1", "x86_64").digest == digest
    assert f"get {locked_registry.host}" in Path(f"{helper}.log").read_text()
