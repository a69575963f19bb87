"""What a build prints, line by line, and what of it explains a failure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from gpubench.errors import GpubenchError, MissingToolError, PlanRefusedError
from gpubench.images.docker.failures import disk_full, is_full, one_line

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STEP = re.compile(r"Step (\d+)/(\d+) : (.*)")
_OTHER_PLATFORM = "does not match the specified platform: wanted"
_ENGINE_S_OWN = (" --->", "Removing intermediate container", "Successfully built")


@dataclasses.dataclass(frozen=True)
class BuildStep:
    """One instruction of a Dockerfile, counted from 1."""

    number: int
    of: int
    words: str

    def __str__(self) -> str:
        return f"step {self.number}/{self.of} {self.words}"


def step_of(line: str) -> BuildStep | None:
    """The step that begins with this line, if one does."""
    found = _STEP.match(line)
    return BuildStep(int(found[1]), int(found[2]), found[3].strip()) if found else None


class BuildLines:
    """Cuts the engine's text into lines; remembers the step and the last line that the step itself printed."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = ""
        self.step: BuildStep | None = None
        self.last = ""

    def feed(self, text: str) -> None:
        """The next piece of text; only whole lines are passed on."""
        *lines, self._rest = (self._rest + _COLOUR.sub("", text)).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            self._line(line)

    def end(self) -> None:
        """Pass on what no line end followed."""
        if self._rest:
            self._line(self._rest)
            self._rest = ""

    def _line(self, line: str) -> None:
        if not line.strip():
            return
        if step := step_of(line):
            self.step, self.last = step, ""
        elif not line.startswith(_ENGINE_S_OWN):
            self.last = line.strip()
        self._on_line(line)

    def failure(self, said: str) -> GpubenchError:
        """One line: the step, the last that it printed, and what the engine says."""
        step = f"{self.step.number}/{self.step.of} ({one_line(self.step.words)[:80]})" if self.step else ""
        what = f"build step {step}" if step else "read the Dockerfile"
        printed = one_line(self.last)
        if is_full(said) or is_full(printed):
            return disk_full(f"run {what}", one_line(printed if is_full(printed) else said))
        if _OTHER_PLATFORM in said:
            both = said.partition(_OTHER_PLATFORM)[2]
            return PlanRefusedError(
                f"{what} failed, its base image is of another architecture (wanted{both})",
                then="use a base image of the site's architecture, or correct image.architecture of the site",
            )
        code = re.search(r"returned a non-zero code: (\d+)$", said)
        said = f"exit code {code[1]}" if code and printed else said
        return MissingToolError(f"{what} failed: {': '.join(part for part in (printed, said) if part)}")
