"""Several versions at once: build, check, tag, push; a log each.

Each is built by ``docker buildx build``, run as a process: what it prints, and what of that explains a failure.
"""

import concurrent.futures
import dataclasses
import datetime as dt
import os
import queue
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from gpubench.errors import GpubenchError, InterruptedByUserError, MissingToolError
from gpubench.files import temporary_directory
from gpubench.images.docker import archive
from gpubench.images.docker.engine import Cancelled, Engine, PushProgress, ending, never
from gpubench.images.docker.failures import disk_full, is_full, one_line
from gpubench.images.docker.names import (
    Repository,
    broken_logins,
    config_file,
    docker_architecture,
    require_architecture,
)
from gpubench.images.process import Log, die_with_parent, kill_group, started
from gpubench.model.quantities import format_seconds

SILENCE_S = 3600.0
"""Between two lines of a build: a compiler may be quiet for long."""

_PROGRAM = "docker-buildx"
_CONTEXT = "context.tar"
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
_INSTRUCTION = re.compile(rb"^\s*(?:RUN|COPY|ADD|WORKDIR)\s", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"#(\d+) (.*)")
_PRINTED = re.compile(r"\d+\.\d+ (.*)")
_STEP = re.compile(r"\[(?:(\S+) +)?(\d+)/(\d+)\] (.*)")
_METADATA = "[internal] load metadata for "
# The layers through which an error of the Dockerfile's reader comes.
_WRAPPED = re.compile(
    r"(?:failed to solve(?: with frontend \S+)?|rpc error: code = \w+ desc =|failed to create LLB definition):? "
)
_EXIT_CODE = re.compile(r"exit code: (\d+)$")


@dataclasses.dataclass(frozen=True)
class BuildStep:
    """One instruction of a Dockerfile, counted from 1 in its ``stage``; the last stage may have no name."""

    stage: str
    number: int
    of: int
    instruction: str

    def __str__(self) -> str:
        return f"step {self.position} {self.instruction}"

    @property
    def position(self) -> str:
        """Which of how many, of which stage."""
        return f"{self.stage} {self.number}/{self.of}".lstrip()


OnStep = Callable[[BuildStep, float], None]


class BuildLines:
    """Reads the plain progress of buildx line by line.

    ``on_line`` gets every line without its colours, ``on_step`` a step that begins and the share of those before it.
    """

    def __init__(self, dockerfile: bytes, on_line: Callable[[str], None], on_step: OnStep) -> None:
        self._steps = 1 + len(_INSTRUCTION.findall(dockerfile))
        self._begun = 0
        self._on_line = on_line
        self._on_step = on_step
        self._names: dict[str, str] = {}
        self._printed: dict[str, str] = {}
        self._failed = ""
        self._message = ""

    def feed(self, raw: str) -> None:
        """The next line."""
        line = _COLOUR.sub("", raw).rstrip()
        if not line:
            return
        self._on_line(line)
        if line.startswith("ERROR: "):
            self._message = line.removeprefix("ERROR: ")
        if not (match := _LINE.fullmatch(line)):
            return
        number, text = match.groups()
        if number not in self._names:
            self._names[number] = text
            if step := _step(text):
                self._on_step(step, min(self._begun / self._steps, 1.0))
                self._begun += 1
        elif printed := _PRINTED.fullmatch(text):
            self._printed[number] = printed[1].strip() or self._printed.get(number, "")
        elif text.startswith("ERROR: ") and not self._failed and not text.endswith("context canceled"):
            self._failed = number

    @property
    def missing_base(self) -> str:
        """The base image at which the build failed, if it did so there."""
        name = self._names.get(self._failed, "")
        return name.removeprefix(_METADATA) if name.startswith(_METADATA) else ""

    def failure(self) -> GpubenchError:
        """One line: the step, the last line that it printed, and what BuildKit says."""
        name = self._names.get(self._failed, "")
        step = _step(name)
        what = f"{step.position} ({one_line(step.instruction)[:80]})" if step else name.removeprefix("[internal] ")
        what = f"build step {what}" if what else "read the Dockerfile"
        printed = one_line(self._printed.get(self._failed, ""))
        message = one_line(_WRAPPED.sub("", self._message)) or "buildx ended without an image"
        if is_full(message) or is_full(printed):
            return disk_full(f"run {what}", printed if is_full(printed) else message)
        if "error getting credentials" in message:
            return broken_logins()
        code = _EXIT_CODE.search(message)
        message = f"exit code {code[1]}" if code and printed else message
        return MissingToolError(f"{what} failed: {': '.join(part for part in (printed, message) if part)}")


def _step(name: str) -> BuildStep | None:
    match = _STEP.fullmatch(name)
    return BuildStep(match[1] or "", int(match[2]), int(match[3]), match[4].strip()) if match else None


def find_buildx() -> str:
    """The path of buildx. Raises MissingToolError: it isn't installed."""
    folders = [str(config_file().parent / "cli-plugins"), *_PLUGINS, os.environ.get("PATH", os.defpath)]
    path = shutil.which(_PROGRAM, path=os.pathsep.join(folders))
    if path is None:
        raise MissingToolError(
            "docker buildx, which builds container images, is not installed",
            then="install the package docker-buildx-plugin (Docker's own) or docker-buildx (Debian, Ubuntu)",
        )
    return path


def build_image(
    engine: Engine,
    job: "BuildJob",
    on_line: Callable[[str], None],
    on_step: OnStep = lambda _step, _share: None,
    cancelled: Cancelled = never,
) -> str:
    """Build a job in ``engine``; returns the image's id, ``sha256:…``. It has no tag: no failed build leaves one.

    Raises:
        MissingToolError: buildx isn't installed, a step failed, or the disk is full.
        PlanRefusedError: the base image is of another architecture.
        InterruptedByUserError: ``cancelled`` said so.
    """
    with temporary_directory("buildx") as folder:
        identity = folder / "id"
        dockerfile = _named_bases(engine, job.files["Dockerfile"])
        (folder / _CONTEXT).write_bytes(archive.context({**job.files, "Dockerfile": dockerfile}).read())
        arguments = ["build", "--progress=plain", f"--iidfile={identity}"]
        arguments += [f"--label={name}={value}" for name, value in job.labels.items()]
        arguments += [f"--network={job.network}"] if job.network else []
        arguments += [f"--platform=linux/{docker_architecture(job.architecture)}"] if job.architecture else []
        arguments += [f"--target={job.target}"] if job.target else []
        lines = BuildLines(dockerfile, on_line, on_step)
        if _run([*arguments, "-"], folder, lines, cancelled):
            if job.architecture and lines.missing_base and engine.has(lines.missing_base):
                architecture = engine.architecture(lines.missing_base)
                require_architecture(architecture, job.architecture, f"base image {lines.missing_base}")
            raise lines.failure()
        return identity.read_text().strip()


def _named_bases(engine: Engine, dockerfile: bytes) -> bytes:
    """The Dockerfile with a name for each base that it names by its id, which BuildKit doesn't take."""
    for _, image, digits in _BY_ID.findall(dockerfile):
        engine.tag(image.decode(), f"gpubench-base:{digits.decode()}")
    return _BY_ID.sub(rb"\1gpubench-base:\3", dockerfile)


def _run(arguments: list[str], folder: Path, lines: BuildLines, cancelled: Cancelled) -> int:
    """The exit code of buildx. The engine ends a build when buildx is gone."""
    heard = time.monotonic()
    with (
        (folder / _CONTEXT).open("rb") as stdin,
        started(
            die_with_parent([find_buildx(), *arguments]), env=_environment(os.environ, folder / "state"), stdin=stdin
        ) as process,
        ending(lambda: kill_group(process), lambda: cancelled() or time.monotonic() - heard > SILENCE_S),
    ):
        assert process.stdout is not None
        for line in process.stdout:
            heard = time.monotonic()
            lines.feed(line)
    if cancelled():
        raise InterruptedByUserError("interrupted")
    if time.monotonic() - heard > SILENCE_S:
        lines.feed(f"ERROR: nothing was printed for {format_seconds(SILENCE_S)}")
    return process.returncode


def _environment(shell: Mapping[str, str], state: Path) -> dict[str, str]:
    """The user's engine, proxies and logins; builders, and what buildx remembers of builds, are this build's own."""
    kept = {name: value for name, value in shell.items() if not _FOREIGN.fullmatch(name)}
    return {**kept, "BUILDX_CONFIG": str(state), "BUILDX_NO_DEFAULT_ATTESTATIONS": "1", "NO_COLOR": "1"}


_ODD = re.compile(r"[^A-Za-z0-9._-]+")

LOCAL_REPOSITORY = "gpubench"
"""Of images that are pushed nowhere."""
_STOP_S = 10.0
"""How long an interrupted front end waits for the engine to end the builds; it does so by itself too."""


def log_path(folder: Path, name: str) -> Path:
    """The log of version ``name``: a branch may have slashes."""
    return folder / f"{_ODD.sub('-', name)}.log"


class Display(Protocol):
    """Where the user sees what goes on; called from several threads."""

    def step(self, name: str, text: str, share: float) -> None:
        """Version ``name`` is at ``text``; ``share`` (0 to 1) of its build, or of its push, is done."""

    def done(self, name: str) -> None:
        """The version is built, and pushed where that was asked for."""

    def fail(self, name: str, line: str) -> None:
        """The version failed; the others go on."""


@dataclasses.dataclass(frozen=True)
class BuildJob:
    """One version to build.

    Args:
        name: the version as typed; names its log.
        files: the build context, ``Dockerfile`` among them.
        labels: of the finished image.
        tag: ``TAG``, or ``REPOSITORY:TAG`` for a local name of its own.
        architecture: that the image must have, as ``uname -m`` says it; empty: any.
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
        if ":" in self.tag:
            return self.tag
        return f"{Repository.parse(self.push).name if self.push else LOCAL_REPOSITORY}:{self.tag}"


@dataclasses.dataclass(frozen=True)
class BuildOutcome:
    """What became of a version.

    Args:
        job: what was asked for.
        image: id in the engine, ``sha256:…``; empty where the build failed. A failed push leaves the finished image.
        digest: of the registry's manifest; the image's id where nothing was pushed; empty where something failed.
        seconds: build and push together.
        log: everything that the build printed.
        error: why it failed, with the log's path; None: it didn't.
    """

    job: BuildJob
    image: str
    digest: str
    seconds: float
    log: Path
    error: GpubenchError | None


def build_all(
    jobs: Sequence[BuildJob],
    *,
    at_once: int,
    logs: Path,
    show: Display,
    ended: Callable[[BuildOutcome], None] = lambda _outcome: None,
) -> list[BuildOutcome]:
    """Build every job, ``at_once`` of them side by side; outcomes in the order of ``jobs``.

    One failing version leaves the others. ``logs`` is the folder of the versions' logs. ``ended`` gets every outcome as
    soon as it is there, in this thread. A front end that is interrupted or killed ends the builds that still run, and
    none of them leaves a tag.

    Raises:
        MissingToolError: Docker doesn't answer.
        UsageError: a name that no image can have.
    """
    for job in jobs:
        Repository.parse(job.push or LOCAL_REPOSITORY)
    stop = threading.Event()
    waiting: queue.SimpleQueue[BuildJob] = queue.SimpleQueue()
    outcomes = {job.name: concurrent.futures.Future[BuildOutcome]() for job in jobs}
    for job in jobs:
        waiting.put(job)

    def work() -> None:
        while not stop.is_set():
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                outcomes[job.name].set_result(builder.run(job, log_path(logs, job.name)))
            except BaseException as error:  # noqa: BLE001 - the front end's thread raises it
                outcomes[job.name].set_exception(error)

    with Engine.connect() as engine:
        find_buildx()
        builder = _Builder(engine, show, stop.is_set)
        # Daemons: a front end that is told to go must not wait for an engine that hangs.
        threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, min(at_once, len(jobs))))]
        for thread in threads:
            thread.start()
        try:
            for future in concurrent.futures.as_completed(outcomes.values()):
                ended(future.result())
            return [outcomes[job.name].result() for job in jobs]
        finally:
            stop.set()
            deadline = time.monotonic() + _STOP_S
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))


class _Builder:
    """Builds one version after the other."""

    def __init__(self, engine: Engine, show: Display, cancelled: Cancelled) -> None:
        self._engine = engine
        self._show = show
        self._cancelled = cancelled

    def run(self, job: BuildJob, path: Path) -> BuildOutcome:
        """One version, with its log."""
        began = time.monotonic()
        image = digest = ""
        failed: GpubenchError | None = None
        with Log(path) as log:
            log.write(f"== {job.reference} {dt.datetime.now(dt.UTC).isoformat(timespec='seconds')}")
            try:
                image = self._build(job, log)
                digest = self._push(job, image, log) if job.push else image
            except InterruptedByUserError:
                raise
            except GpubenchError as error:
                failed = _explained(error, job, image, path)
                log.write(str(failed))
        if failed is None:
            self._show.done(job.name)
        else:
            self._show.fail(job.name, str(failed))
        return BuildOutcome(job, image, digest, time.monotonic() - began, path, failed)

    def _build(self, job: BuildJob, log: Log) -> str:
        image = build_image(
            self._engine,
            job,
            log.write,
            lambda step, share: self._show.step(job.name, str(step), share),
            self._cancelled,
        )
        require_architecture(self._engine.architecture(image), job.architecture, "what was built")
        self._engine.tag(image, job.reference)
        log.write(f"{image} is {job.reference}")
        return image

    def _push(self, job: BuildJob, image: str, log: Log) -> str:
        text = ""

        def on_progress(progress: PushProgress) -> None:
            nonlocal text
            if progress.text != text:
                text = progress.text
                log.write(text)
            self._show.step(job.name, progress.text, progress.share)

        tag = job.reference.rpartition(":")[2]
        digest = self._engine.push(image, job.push, tag, on_progress, self._cancelled)
        log.write(f"pushed {Repository.parse(job.push).at(digest)}")
        return digest


def _explained(error: GpubenchError, job: BuildJob, image: str, log: Path) -> GpubenchError:
    kept = f"the finished image is kept as {job.reference}" if image else ""
    then = "; ".join(part for part in (error.then, kept, f"log: {log}") if part)
    return type(error)(f"image {job.name}: {error.what}", then=then)
