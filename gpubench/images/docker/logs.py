"""The whole output of one version's build, in its own file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TextIO

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def log_path(folder: Path, name: str) -> Path:
    """The log of version ``name``: a branch may have slashes."""
    return folder / f"{_ODD.sub('-', name)}.log"


class Log:
    """Appends lines; a disk that is full is reported by what failed, not by its log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Log:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a", encoding="utf-8", buffering=1)
        except OSError:
            self._file = None
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def write(self, line: str) -> None:
        """One line, on disk at once."""
        try:
            if self._file is not None:
                self._file.write(f"{line}\n")
        except OSError:
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError:
            return
