"""Images as rows of one table, whatever their kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gpubench.images.rows import reference
from gpubench.model.images_lock import LockRow


@dataclasses.dataclass(frozen=True)
class Entry:
    """One image, or one of the folders that images of a kind are put together from. ``size`` in bytes, 0 unknown."""

    kind: str
    spec: str
    ucx: str
    identity: str
    where: str
    site: str = ""
    date: str = ""
    stack: str = ""
    size: int = 0

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)


def of_lock(rows: Sequence[LockRow]) -> list[Entry]:
    """The rows of ``images.lock.toml``."""
    return [
        Entry(
            kind=row.kind,
            spec=row.spec,
            ucx=row.ucx_version if not row.ucx_commit else f"{row.ucx_version} {row.ucx_commit[:10]}",
            identity=row.digest,
            where=_where(row),
            site=row.site,
            date=row.date,
            stack=row.stack,
        )
        for row in rows
    ]


def _where(row: LockRow) -> str:
    if row.kind != "docker":
        return row.python
    return reference(row).partition("@")[0] if row.registry else "local engine"
