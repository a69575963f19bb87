"""``gpubench run``: the node half's entrypoint, as it is called inside containers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from gpubench.errors import UsageError

BY_HAND = "import sys; from gpubench.node.main import main; sys.exit(main())"


def register(app: typer.Typer) -> None:
    """Add the command; its options are the node half's own."""
    app.command(
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
        help="One run on this node, or one role of it (scheduler, worker, client): starts the campaign's node.pyz.",
    )(run)


def run(context: typer.Context) -> None:
    """Become ``python node.pyz run …``: what measures is the campaign's file, never this installation."""
    words = [part for word in context.args for part in (word.split("=", 1) if word.startswith("--spec=") else [word])]
    spec = next((words[at + 1] for at, word in enumerate(words[:-1]) if word == "--spec"), None)
    if spec is None:  # help, or a role started by hand: nothing is measured, so this installation's own code will do
        os.execv(sys.executable, [sys.executable, "-I", "-c", BY_HAND, "run", *words])  # noqa: S606 - as below
    above = [*Path(spec).resolve().parents, *[Path("/")] * 3]
    node_half = Path(os.environ.get("OUTDIR") or above[3]) / "node.pyz"
    if not node_half.is_file():
        raise UsageError(f"{node_half} is missing", then="run 'gpubench render CAMPAIGN' first")
    os.execv(sys.executable, [sys.executable, "-I", str(node_half), "run", *words])  # noqa: S606 - no shell is wanted
