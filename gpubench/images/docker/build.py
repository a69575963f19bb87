"""Several versions at once, each by one ``docker buildx build`` or ``podman build``: a process and a log each."""

import dataclasses
import datetime as dt
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpubench.errors import GpubenchError, MissingToolError, SchedulerError
from gpubench.files import temporary_directory, writing
from gpubench.images.docker.engine import Engine, find_podman
from gpubench.images.docker.failures import as_one_line, disk_full, engine_failure, is_full
from gpubench.images.docker.names import Repository, broken_logins, config_file, docker_architecture
from gpubench.images.process import die_with_parent, kill_group
from gpubench.model.quantities import format_seconds
from gpubench.model.text import cut_inside

SILENCE_S = 3600.0
"""Between two lines of a build: a compiler may be quiet for long."""
AT_ONCE = 2
"""Builds at once: they share the engine's disk and the network; more of them don't end sooner."""
LAST_LINES = 20
"""Of a log, which say why a build failed."""
LOCAL_REPOSITORY = "gpubench"
"""Of images that are pushed nowhere."""

_BUILDX = "docker-buildx"
# Where the docker command looks for its plugins, after the user's own folder.
_PLUGINS = (
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
)
# The user's own builders may keep what they build to themselves; a time of the sources would change every image.
_FOREIGN = re.compile(r"(?:BUILDX|BUILDKIT|EXPERIMENTAL_BUILDKIT)_\w+|SOURCE_DATE_EPOCH|DOCKER_DEFAULT_PLATFORM")
_BY_ID = re.compile(rb"^(FROM\s+)(sha256:([0-9a-f]{64}))\b", re.MULTILINE)
_ERROR = re.compile(r"(?:ERROR|Error): (.+)")
_PUSHING = re.compile(r"#\d+ pushing ")
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LOOK_S = 0.1
_LONGEST = 300


@dataclasses.dataclass(frozen=True)
class BuildJob:
    """One version to build.

    Args:
        name: the version as typed; names its log.
        files: the build context, ``Dockerfile`` among them.
        labels: of the finished image.
        tag: of the finished image.
        architecture: that the image must have, as ``uname -m`` says it.
        network: Docker's network mode of the build's steps; empty: the engine's default.
        target: the stage to build; empty: the whole Dockerfile.
        push: the repository to push to, ``HOST[:PORT]/REPOSITORY``; empty: the image stays in the engine.
    """

    name: str
    files: Mapping[str, bytes]
    labels: Mapping[str, str]
    tag: str
    architecture: str
    network: str = ""
    push: str = ""
    target: str = ""

    @property
    def reference(self) -> str:
        """The name of the finished image, ``REPOSITORY:TAG``."""
        return f"{Repository.parse(self.push).name if self.push else LOCAL_REPOSITORY}:{self.tag}"


@dataclasses.dataclass(frozen=True)
class BuildOutcome:
    """What became of a version.

    Args:
        job: what was asked for.
        image: id in the engine, ``sha256:…``; empty where the build or its push failed.
        digest: of the registry's manifest; the image's id where nothing was pushed.
        error: why it failed, with the log's path; None: it didn't.
        lines: the last ones of the log, where nothing shorter says why.
    """

    job: BuildJob
    image: str = ""
    digest: str = ""
    error: GpubenchError | None = None
    lines: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Builder:
    """The program that builds.

    Args:
        command: its first words.
        is_buildx: whether it pushes what it built, and tells the digest in a file.
    """

    command: Sequence[str]
    is_buildx: bool = False


def find_builder(engine: Engine) -> Builder:
    """Podman's own for its engine; buildx for Docker's, and ``docker build`` where buildx isn't installed.

    Raises:
        MissingToolError: there is none.
    """
    if engine.is_podman():
        # Its service goes on with a build whose client is gone. The program has the images of the user's own service;
        # root's has others.
        socket = Path(engine.address.removeprefix("unix://"))
        is_own = socket.is_absolute() and socket.stat().st_uid == os.getuid()
        remote = [] if is_own else [f"--url={engine.address}"]
        # By default it writes OCI's format, which old releases of enroot don't read. Without containers of their own,
        # steps are in its process group, and need no runtime and no control groups of a user's own.
        options = ["--format=docker", "--force-rm", "--isolation=chroot"]
        return Builder([find_podman(), *remote, "build", *options])
    folders = [str(config_file().parent / "cli-plugins"), *_PLUGINS, os.environ.get("PATH", os.defpath)]
    if buildx := shutil.which(_BUILDX, path=os.pathsep.join(folders)):
        return Builder([buildx, "build", "--progress=plain"], is_buildx=True)
    if docker := shutil.which("docker"):
        return Builder([docker, "build"])
    raise MissingToolError(
        "docker buildx, which builds container images, is not installed",
        then="install the package docker-buildx-plugin (Docker's own) or docker-buildx (Debian, Ubuntu)",
    )


def build_all(engine: Engine, jobs: Sequence[BuildJob], logs: Path, ended: Callable[[BuildOutcome], None]) -> None:
    """Build every job, AT_ONCE of them side by side; ``ended`` gets each outcome as soon as it is there.

    One failing version leaves the others. ``logs`` is the folder of the versions' logs. Whoever is interrupted or
    killed ends the builds that still run, and none of them leaves a tag.

    Raises:
        MissingToolError: the engine doesn't answer, there is no program that builds, or a log can't be written.
        UsageError: a name that no image can have.
    """
    waiting, running, builder = list(jobs), list[_Build](), find_builder(engine)
    with temporary_directory("build") as folder:
        try:
            while waiting or running:
                while waiting and len(running) < AT_ONCE:
                    running.append(
                        _Build(engine, builder, waiting.pop(0), folder=folder / str(len(waiting)), logs=logs)
                    )
                for build in [build for build in running if build.has_ended()]:
                    running.remove(build)
                    ended(build.outcome())
                time.sleep(_LOOK_S)
        finally:
            for build in running:
                build.kill()


class _Build:
    """A process group that builds. Docker ends a build when its client is gone; Podman's steps are in the group."""

    def __init__(self, engine: Engine, builder: Builder, job: BuildJob, *, folder: Path, logs: Path) -> None:
        self._engine, self._builder, self._job, self._folder = engine, builder, job, folder
        self._log = logs / f"{_ODD.sub('-', job.name)}.log"  # a branch may have slashes
        _write_context(folder / "context", {**job.files, "Dockerfile": self._dockerfile()})
        with writing(self._log):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            log = self._log.open("ab", buffering=0)
            log.write(f"== {job.reference} {dt.datetime.now(dt.UTC).isoformat(timespec='seconds')}\n".encode())
        self._size = self._begin = log.tell()
        self._heard = time.monotonic()
        with log:
            self._process = subprocess.Popen(
                die_with_parent([*builder.command, *self._arguments()], starts_others=True),
                env=_environment(os.environ, folder / "state"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def _dockerfile(self) -> bytes:
        """With a name for each base that is named by its id, which BuildKit doesn't take."""
        dockerfile = self._job.files["Dockerfile"]
        if not self._builder.is_buildx:
            return dockerfile
        for _, image, digits in _BY_ID.findall(dockerfile):
            self._engine.tag(image.decode(), f"gpubench-base:{digits.decode()}")
        return _BY_ID.sub(rb"\1gpubench-base:\3", dockerfile)

    def _arguments(self) -> list[str]:
        job = self._job
        arguments = [f"--tag={job.reference}", f"--iidfile={self._folder / 'id'}"]
        arguments += [f"--platform=linux/{docker_architecture(job.architecture)}"]
        arguments += [f"--label={name}={value}" for name, value in job.labels.items()]
        # Podman takes "default" for the name of a network.
        arguments += [f"--network={job.network}"] if job.network not in ("", "default") else []
        arguments += [f"--target={job.target}"] if job.target else []
        if self._builder.is_buildx:
            arguments += [f"--metadata-file={self._folder / 'metadata.json'}", *(["--push"] if job.push else [])]
        return [*arguments, str(self._folder / "context")]

    def has_ended(self) -> bool:
        """Whether the process has ended, by itself or because it was silent for too long."""
        size = self._log.stat().st_size
        if size != self._size:
            self._size, self._heard = size, time.monotonic()
        if time.monotonic() - self._heard > SILENCE_S:
            self.kill()
            with self._log.open("a") as log:
                log.write(f"ERROR: nothing was printed for {format_seconds(SILENCE_S)}\n")
        return self._process.poll() is not None

    def kill(self) -> None:
        kill_group(self._process)
        self._process.wait()

    def outcome(self) -> BuildOutcome:
        """What became of it, once it has ended."""
        try:
            if self._process.returncode:
                return self._failed()
            image = (self._folder / "id").read_text().strip()
            return BuildOutcome(self._job, image, self._digest(image) if self._job.push else image)
        except GpubenchError as error:
            return self._explained(error)

    def _digest(self, image: str) -> str:
        if not self._builder.is_buildx:
            return self._engine.push(image, self._job.push, self._job.tag)
        metadata = json.loads((self._folder / "metadata.json").read_text())
        digest = str(metadata.get("containerimage.digest", ""))
        # That the engine has it too, under whatever name: a tag that somebody else moved meanwhile has another one.
        if digest not in {name.rpartition("@")[2] for name in self._engine.digests(self._job.reference)}:
            raise SchedulerError(f"the registry doesn't say which digest {self._job.reference} has", then="push again")
        return digest

    def _failed(self) -> BuildOutcome:
        with self._log.open("rb") as log:
            log.seek(self._begin)
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line]
        last = lines[-LAST_LINES:]
        errors = [match[1] for match in map(_ERROR.match, last) if match] or last[-1:]
        message = cut_inside(errors[-1] if errors else "it ended without an image", _LONGEST)
        if "error getting credentials" in message:
            return self._explained(broken_logins())
        if any(map(_PUSHING.match, lines)):
            what, host = f"push {self._job.reference}", Repository.parse(self._job.push).host
            return self._explained(engine_failure(what, message, host))
        if full := next(filter(is_full, last), ""):
            return self._explained(disk_full("build it", as_one_line(full)))
        return self._explained(MissingToolError(f"its build failed ({message})"), last)

    def _explained(self, error: GpubenchError, lines: Sequence[str] = ()) -> BuildOutcome:
        then = "; ".join(part for part in (error.then, f"log: {self._log}") if part)
        what = f"image {self._job.name}: {error.what}"
        return BuildOutcome(self._job, error=type(error)(what, then=then), lines=lines)


def _write_context(folder: Path, files: Mapping[str, bytes]) -> None:
    """Files that look the same at every build, so that the engine finds its cache."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if content.startswith(b"#!") else 0o644)
        os.utime(path, (0, 0))


def _environment(shell: Mapping[str, str], state: Path) -> dict[str, str]:
    """The user's engine, proxies and logins; builders, and what buildx remembers of builds, are this build's own."""
    kept = {name: value for name, value in shell.items() if not _FOREIGN.fullmatch(name)}
    ours = {"BUILDX_CONFIG": str(state), "BUILDX_NO_DEFAULT_ATTESTATIONS": "1", "NO_COLOR": "1"}
    return {**kept, **ours, "DOCKER_BUILDKIT": "0"}  # of ``docker build``, which has no BuildKit without buildx
