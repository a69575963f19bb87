"""Commands that have another name now: who types an old one is told the new one."""

from __future__ import annotations

import typer.core

from gpubench.errors import UsageError

RETIRED = {
    "summary": "compare",
    "merge": "compare",
    "links": "report --only links",
    "scaling": "report --only scaling",
    "explain": "diff",
    "history": "trend",
    "changes": "trend --only changes",
    "import-results": "results import",
    "export": "results export",
    "pack": "results pack",
    "fsck": "results fsck",
}


class Commands(typer.core.TyperGroup):
    """The commands, without those in ``RETIRED``."""

    def resolve_command(self, ctx, args):  # type: ignore[no-untyped-def]
        """As the library does it; raises UsageError for a name that was one."""
        name = args[0]
        if name in RETIRED:
            raise UsageError(f"there is no command '{name}' any more", then=f"type: gpubench {RETIRED[name]}")
        return super().resolve_command(ctx, args)
