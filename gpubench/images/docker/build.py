"""Several versions at once: build, check, tag, push; a log each."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime as dt
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from gpubench.errors import GpubenchError, InterruptedByUserError
from gpubench.images.docker.buildx import build_image, find_buildx
from gpubench.images.docker.engine import Cancelled, Engine, PushProgress
from gpubench.images.docker.names import Repository, require_architecture
from gpubench.images.process import Log

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
        architecture: that the image must have, as ``uname -m`` says it.
        network: Docker's network mode of the build's steps; empty: the engine's default.
        buildargs: values of the Dockerfile's ``ARG`` s.
        target: the stage to build; empty: the whole Dockerfile.
        push: the repository to push to, ``HOST[:PORT]/REPOSITORY``; empty: the image stays in the engine.
    """

    name: str
    files: Mapping[str, bytes]
    labels: Mapping[str, str]
    tag: str
    architecture: str
    network: str = ""
    buildargs: Mapping[str, str] = dataclasses.field(default_factory=dict)
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
            job.files,
            labels=job.labels,
            buildargs=job.buildargs,
            network=job.network,
            architecture=job.architecture,
            on_line=log.write,
            on_step=lambda step, share: self._show.step(job.name, str(step), share),
            cancelled=self._cancelled,
            target=job.target,
        )
        require_architecture(self._engine.architecture(image), job.architecture, "what was built")
        self._engine.tag(image, job.reference)
        log.write(f"{image} is {job.reference}")
        return image

    def _push(self, job: BuildJob, image: str, log: Log) -> str:
        told = ""

        def on_progress(progress: PushProgress) -> None:
            nonlocal told
            if progress.text != told:
                told = progress.text
                log.write(told)
            self._show.step(job.name, progress.text, progress.share)

        tag = job.reference.rpartition(":")[2]
        digest = self._engine.push(image, job.push, tag, on_progress, self._cancelled)
        log.write(f"pushed {Repository.parse(job.push).at(digest)}")
        return digest


def _explained(error: GpubenchError, job: BuildJob, image: str, log: Path) -> GpubenchError:
    kept = f"the finished image is kept as {job.reference}" if image else ""
    then = "; ".join(part for part in (error.then, kept, f"log: {log}") if part)
    return type(error)(f"image {job.name}: {error.what}", then=then)
