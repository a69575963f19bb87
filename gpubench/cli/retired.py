"""Names that commands had. Typing one says what does the same now."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from gpubench.errors import UsageError

RETIRED: dict[str, str] = {
    "resume": "bench --campaign DIR",
    "advance": "bench --campaign DIR",
    "render": "plan --out DIR",
    "summary": "compare",
    "merge": "compare",
    "links": "report --only links",
    "scaling": "report --only scaling",
    "explain": "diff",
    "history": "trend",
    "changes": "trend",
    "import-results": "results import",
    "export": "results export",
    "pack": "results pack",
    "fsck": "results fsck",
}
"""What to type instead, by the old name. A name that is a command still is no retired one."""


class Commands(TyperGroup):
    """The commands; an old name is none of them, and is answered by the new one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As click does it; raises UsageError for an old name."""
        if args and args[0] in RETIRED and args[0] not in self.commands:
            raise UsageError(f"there is no command {args[0]} any more", then=f"type: gpubench {RETIRED[args[0]]}")
        return super().resolve_command(ctx, args)
