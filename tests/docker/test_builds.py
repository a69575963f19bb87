"""Builds on the real engine."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpubench.errors import DataError, InterruptedByUserError, MissingToolError
from gpubench.images.docker import build
from gpubench.images.docker.build import BuildOutcome, build_all
from gpubench.images.docker.engine import Engine
from tests.conftest import ROOT, in_long_tests
from tests.docker.daemon import DockerDaemon, RegistryServer
from tests.docker.images import build_one, built, dockerfile, job, remove, sha256, tags, untagged

pytestmark = pytest.mark.system

LONG = f"300.{os.getpid():08d}"
"""Seconds that only steps of this test process sleep."""


def test_two_at_once_and_the_failing_one_leaves_the_other(
    engine: Engine, base: str, daemon: DockerDaemon, tmp_path: Path
) -> None:
    word = uuid.uuid4().hex  # else the engine's cache, which outlives a first try, has the step already
    good = job("v1.14.x", dockerfile(base, f"ARG WORD={word}", 'RUN echo "word $WORD"'))
    bad = job("topic/bad", dockerfile(base, "RUN echo said before >&2; echo the cause >&2; exit 3"))
    outcomes: list[BuildOutcome] = []
    build_all(engine, [good, bad], tmp_path, outcomes.append)
    ok, failed = sorted(outcomes, key=lambda one: one.job is bad)

    assert ok.error is None
    assert ok.digest == ok.image
    assert tags(daemon).count("gpubench:ucx-py-v1.14.x-20261121") == 1
    assert any(line.endswith(f" word {word}") for line in (tmp_path / "v1.14.x.log").read_text().splitlines())

    assert isinstance(failed.error, MissingToolError)
    assert str(failed.error).startswith("image topic/bad: its build failed (failed to solve: ")
    assert str(failed.error).endswith(f"exit code: 3); log: {tmp_path / 'topic-bad.log'}")
    assert (failed.image, failed.digest) == ("", "")
    assert any(line.endswith(" said before") for line in failed.lines)
    assert any(line.endswith(" the cause") for line in failed.lines)
    assert not any("bad" in tag for tag in tags(daemon))
    assert word not in (tmp_path / "topic-bad.log").read_text()


def test_a_build_is_told_when_it_ends_while_others_still_run(
    engine: Engine, base: str, daemon: DockerDaemon, tmp_path: Path
) -> None:
    slow = job("slow", dockerfile(base, f"RUN echo started; sleep {LONG}"))
    quick = job("quick", dockerfile(base, "RUN echo quick > /quick"))
    told = []

    def ended(outcome: BuildOutcome) -> None:
        told.append((outcome.job.name, outcome.error))
        raise InterruptedByUserError("interrupted")

    with pytest.raises(InterruptedByUserError):
        build_all(engine, [slow, quick], tmp_path, ended)
    assert told == [("quick", None)]
    wait_for(lambda: not sleeping())
    assert not any("slow" in tag for tag in tags(daemon))


def test_a_build_that_says_nothing_is_ended(
    engine: Engine, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "SILENCE_S", 5.0)
    outcome = build_one(job("waits", dockerfile(base, f"RUN echo waiting; exec sleep {LONG}")), tmp_path)
    assert "its build failed (nothing was printed for 5.0s)" in str(outcome.error)
    # Were lines held back until the step ends, there would be none.
    assert any(line.endswith(" waiting") for line in outcome.lines)
    wait_for(lambda: not sleeping())


def test_files_of_an_image_can_be_read(engine: Engine, base: str) -> None:
    image = built(engine, dockerfile(base, "ENV X=files"))
    assert engine.architecture(image) == "x86_64"
    assert engine.read_file(image, "/gpubench/manifest.json") == b'{"build_id": "b1"}'
    with pytest.raises(DataError, match=r"holds no .*nothing.json"):
        engine.read_file(image, "/gpubench/nothing.json")
    with pytest.raises(MissingToolError, match="could not read /x of image gpubench:nowhere"):
        engine.read_file("gpubench:nowhere", "/x")
    remove(engine, image)
    assert not engine.has(image)


def test_a_broken_credential_helper_is_one_line(
    engine: Engine, docker_home: Path, tmp_path: Path, locked_registry: RegistryServer
) -> None:
    (docker_home / "config.json").write_text('{"credsStore": "planted-nowhere"}')
    outcome = build_one(job("helper", {"Dockerfile": f"FROM {locked_registry.host}/a/b:c\n".encode()}), tmp_path)
    assert isinstance(outcome.error, MissingToolError)
    assert f"Docker's logins can't be read: {docker_home / 'config.json'} or" in str(outcome.error)


FRONT = """
import sys
from pathlib import Path
from gpubench.images.docker.build import build_all
from gpubench.images.docker.engine import Engine
from tests.docker.images import dockerfile, job
base, logs, seconds = sys.argv[1:]
steps = {name: ("RUN echo one > /one", f"RUN echo {name} started; sleep {seconds}") for name in "ab"}
jobs = [job(name, dockerfile(base, *commands)) for name, commands in steps.items()]
print("starting", flush=True)
build_all(Engine.connect(), jobs, Path(logs), print)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, *in_long_tests(signal.SIGTERM, signal.SIGINT)])
def test_a_killed_front_end_leaves_no_image_and_no_process(
    how: signal.Signals,
    engine: Engine,
    base: str,
    daemon: DockerDaemon,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, others = tags(daemon), {image.id for image in untagged(daemon)}
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", FRONT, base, str(tmp_path), LONG],
        cwd=ROOT,
        env={**os.environ, "DOCKER_HOST": daemon.host, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as front:
        wait_for(lambda: all(f" {name} started\n" in read(tmp_path / f"{name}.log") for name in "ab"))
        wait_for(lambda: len(sleeping()) == 2)
        front.send_signal(how)
        _, said = front.communicate(timeout=150)
    assert front.returncode != 0
    assert b"KeyboardInterrupt" in said or how is not signal.SIGINT

    wait_for(lambda: not sleeping())
    assert tags(daemon) == before
    assert {image.id for image in untagged(daemon)} == others

    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    again = build_one(job("a", dockerfile(base, "RUN echo one > /one", "RUN echo started")), tmp_path / "again")
    assert list(temporary.iterdir()) == []  # also what the killed one left
    assert again.error is None
    assert "gpubench:ucx-py-a-20261121" in tags(daemon)
    remove(engine, again.image)


def test_the_users_builders_and_build_settings_are_not_used(
    engine: Engine, docker_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"BUILDX_BUILDER": "elsewhere", "SOURCE_DATE_EPOCH": "1", "BUILDKIT_PROGRESS": "tty"}.items():
        monkeypatch.setenv(name, value)
    files = {"Dockerfile": b"FROM scratch\nCOPY Dockerfile /own-builder\n"}
    outcome = build_one(job("own-builder", files), tmp_path)
    assert outcome.error is None
    assert not engine._inspect(outcome.image)["Created"].startswith("1970")
    assert list(docker_home.iterdir()) == []
    remove(engine, outcome.image)


def test_without_buildx_it_is_said_what_to_install(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_PLUGINS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="docker buildx, which builds container images, is not installed; inst"):
        build_one(job("a", {"Dockerfile": b"FROM scratch\n"}), tmp_path)


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DockerDaemon(size="32m") as small:
        monkeypatch.setenv("DOCKER_HOST", small.host)
        files = {"Dockerfile": b"FROM scratch\nCOPY large /\n", "large": bytes(48 << 20)}
        outcome = build_one(job("large", files), tmp_path)
    assert str(outcome.error).startswith("image large: the disk of the container engine is full: could not build it (")
    assert "no space left on device" in str(outcome.error)
    assert outcome.error is not None
    assert outcome.error.exit_code == 5


@pytest.mark.usefixtures("sdk_leaks")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_docker_that_does_not_run_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(MissingToolError) as caught:
        build_one(job("a", {"Dockerfile": b""}), tmp_path)
    assert str(caught.value) == (
        "Docker doesn't answer at unix:///nonexistent/docker.sock (No such file or directory); "
        "start Docker, install Podman, or set DOCKER_HOST"
    )


@pytest.mark.usefixtures("sdk_leaks")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_context_of_the_docker_command_is_used(
    daemon: DockerDaemon, docker_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meta = docker_home / "contexts" / "meta" / sha256(b"there").partition(":")[2]
    meta.mkdir(parents=True)
    (meta / "meta.json").write_text(
        json.dumps({"Name": "there", "Metadata": {}, "Endpoints": {"docker": {"Host": daemon.host}}})
    )
    (docker_home / "config.json").write_text('{"currentContext": "there"}')
    with Engine.connect() as engine:
        assert not engine.has("no.such:image")
    (docker_home / "config.json").write_text('{"currentContext": "gone"}')
    with pytest.raises(MissingToolError, match="Docker doesn't answer"):
        Engine.connect()


@pytest.fixture
def sdk_leaks() -> Iterator[None]:
    """The SDK leaves sockets open that could not be connected: let them be found in the test that made them."""
    yield
    gc.collect()


def sleeping() -> list[int]:
    """Processes of steps that sleep for this test run, in whatever container."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f"sleep\0{LONG}\0".encode():
                found.append(int(path.parent.name))
    return found


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def wait_for(condition: Callable[[], bool], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
