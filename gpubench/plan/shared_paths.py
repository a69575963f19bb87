"""Whether a path lies on a file system that every node sees. Pure."""

import dataclasses
from collections.abc import Sequence

from gpubench.errors import PlanRefusedError


@dataclasses.dataclass(frozen=True)
class Resolved:
    """A path as written, and what it is on this machine: ``real`` is absolute and without symbolic links.

    ``real`` is empty where a variable in it isn't set.
    """

    written: str
    real: str

    def __str__(self) -> str:
        if not self.real:
            return f"{self.written} (a variable in it isn't set here)"
        return self.written if self.written == self.real else f"{self.written} (really {self.real})"


def lies_below(path: str, folder: str) -> bool:
    """Whether a resolved path is ``folder`` or lies below it."""
    parts, above = ([part for part in text.split("/") if part] for text in (path, folder))
    return parts[: len(above)] == above


def require_shared(what: str, path: Resolved, shared: Sequence[Resolved]) -> None:
    """Raise PlanRefusedError unless ``what`` lies below one of the file systems ``shared``, if any are listed."""
    if not shared or any(shared_path.real and lies_below(path.real, shared_path.real) for shared_path in shared):
        return
    raise PlanRefusedError(
        f"{what} is {path}, which lies below none of paths.shared: {'; '.join(map(str, shared))}",
        then="the nodes wouldn't see it: put it there, or list its file system in paths.shared",
    )
