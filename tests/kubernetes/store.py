"""What an API server would hold: objects as files, logs beside them, and one lock for whoever changes more than one."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Object = dict[str, Any]


class Store:
    """The state below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "objects").mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else reads, changes and writes meanwhile."""
        with (self.root / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def read(self, kind: str, name: str) -> Object | None:
        """An object; None where there is none."""
        try:
            found: Object = json.loads(self._path(kind, name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return found

    def write(self, one: Object) -> None:
        """Whole or not at all."""
        path = self._path(one["kind"], one["metadata"]["name"])
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(one, indent=1), encoding="utf-8")
        part.replace(path)

    def delete(self, one: Object) -> None:
        """Ask for its end, as ``kubectl delete --wait=false`` does; the agent sees to it."""
        kind, name = one["kind"], one["metadata"]["name"]
        with self.locked():  # else the agent, which changes its status, might write over it
            now = self.read(kind, name)
            if now is not None:
                grace_s = now["spec"].get("terminationGracePeriodSeconds", 0)
                at = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=grace_s)).isoformat()
                self.write({**now, "metadata": {**now["metadata"], "deletionTimestamp": at}})

    def remove(self, kind: str, name: str) -> None:
        """Nothing where it is gone already."""
        self._path(kind, name).unlink(missing_ok=True)

    def all(self, kind: str) -> list[Object]:
        """Every object of a kind, oldest names first."""
        found = [self.read(kind, path.stem.partition("~")[2]) for path in sorted(self._folder.glob(f"{kind}~*.json"))]
        return [one for one in found if one is not None]

    def matching(self, kind: str, key: str, value: str, namespace: str = "") -> list[Object]:
        """Those with this label, in a namespace or in all."""
        with_label = [one for one in self.all(kind) if one["metadata"].get("labels", {}).get(key) == value]
        return [one for one in with_label if namespace in ("", one["metadata"]["namespace"])]

    def log(self, pod: str, container: str) -> Path:
        """Where the container's output is."""
        return self.root / "logs" / pod / f"{container}.log"

    def say(self, words: Sequence[str]) -> None:
        """Remember a command, for tests that count them."""
        with (self.root / "commands").open("a", encoding="utf-8") as out:
            out.write(" ".join(words) + "\n")

    @property
    def _folder(self) -> Path:
        return self.root / "objects"

    def _path(self, kind: str, name: str) -> Path:
        return self._folder / f"{kind}~{name}.json"
