"""One image by ``docker buildx build``, run as a process: what it prints, and what of that explains a failure."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gpubench.errors import GpubenchError, InterruptedByUserError, MissingToolError
from gpubench.images.docker import archive
from gpubench.images.docker.engine import Cancelled, Engine, ending, never
from gpubench.images.docker.failures import disk_full, is_full, one_line
from gpubench.images.docker.names import broken_logins, config_file, docker_architecture, require_architecture
from gpubench.images.process import die_with_parent, kill_group, started
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
    words: str

    def __str__(self) -> str:
        return f"step {self.position} {self.words}"

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
        self._said = ""

    def feed(self, raw: str) -> None:
        """The next line."""
        line = _COLOUR.sub("", raw).rstrip()
        if not line:
            return
        self._on_line(line)
        if line.startswith("ERROR: "):
            self._said = line.removeprefix("ERROR: ")
        if not (found := _LINE.fullmatch(line)):
            return
        number, text = found.groups()
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
        what = f"{step.position} ({one_line(step.words)[:80]})" if step else name.removeprefix("[internal] ")
        what = f"build step {what}" if what else "read the Dockerfile"
        printed = one_line(self._printed.get(self._failed, ""))
        said = one_line(_WRAPPED.sub("", self._said)) or "buildx ended without an image"
        if is_full(said) or is_full(printed):
            return disk_full(f"run {what}", printed if is_full(printed) else said)
        if "error getting credentials" in said:
            return broken_logins()
        code = _EXIT_CODE.search(said)
        said = f"exit code {code[1]}" if code and printed else said
        return MissingToolError(f"{what} failed: {': '.join(part for part in (printed, said) if part)}")


def _step(name: str) -> BuildStep | None:
    found = _STEP.fullmatch(name)
    return BuildStep(found[1] or "", int(found[2]), int(found[3]), found[4].strip()) if found else None


def find_buildx() -> str:
    """The path of buildx.

    Raises:
        MissingToolError: it isn't installed.
    """
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
    files: Mapping[str, bytes],
    *,
    labels: Mapping[str, str],
    buildargs: Mapping[str, str],
    network: str,
    architecture: str,
    on_line: Callable[[str], None],
    on_step: OnStep = lambda _step, _share: None,
    cancelled: Cancelled = never,
    target: str = "",
) -> str:
    """Build the ``Dockerfile`` among ``files``, or its stage ``target``, in ``engine``; returns its id, ``sha256:…``.

    ``network`` is that of the build's steps, empty means the engine's default; ``architecture`` as ``uname -m`` says it
    or empty. The image has no tag, so no failed or killed build leaves one.

    Raises:
        MissingToolError: buildx isn't installed, a step failed, or the disk is full.
        PlanRefusedError: the base image is of another architecture.
        InterruptedByUserError: ``cancelled`` said so.
    """
    with tempfile.TemporaryDirectory(prefix="gpubench-buildx-") as folder:
        identity = Path(folder, "id")
        dockerfile = _named_bases(engine, files["Dockerfile"])
        Path(folder, _CONTEXT).write_bytes(archive.context({**files, "Dockerfile": dockerfile}).read())
        words = ["build", "--progress=plain", f"--iidfile={identity}"]
        words += [f"--label={name}={value}" for name, value in labels.items()]
        words += [f"--build-arg={name}={value}" for name, value in buildargs.items()]
        words += [f"--network={network}"] if network else []
        words += [f"--platform=linux/{docker_architecture(architecture)}"] if architecture else []
        words += [f"--target={target}"] if target else []
        lines = BuildLines(dockerfile, on_line, on_step)
        if _run([*words, "-"], Path(folder), lines, cancelled):
            if architecture and lines.missing_base and engine.has(lines.missing_base):
                found = engine.architecture(lines.missing_base)
                require_architecture(found, architecture, f"base image {lines.missing_base}")
            raise lines.failure()
        return identity.read_text().strip()


def _named_bases(engine: Engine, dockerfile: bytes) -> bytes:
    """The Dockerfile with a name for each base that it names by its id, which BuildKit doesn't take."""
    for _, image, digits in _BY_ID.findall(dockerfile):
        engine.tag(image.decode(), f"gpubench-base:{digits.decode()}")
    return _BY_ID.sub(rb"\1gpubench-base:\3", dockerfile)


def _run(words: list[str], folder: Path, lines: BuildLines, cancelled: Cancelled) -> int:
    """The exit code of buildx. The engine ends a build when buildx is gone."""
    heard = time.monotonic()
    with (
        (folder / _CONTEXT).open("rb") as stdin,
        started(
            die_with_parent([find_buildx(), *words]), env=_environment(os.environ, folder / "state"), stdin=stdin
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
