"""``gpubench run``: the node half's entrypoint, as it is called inside containers."""

import os
import sys
from pathlib import Path

import typer

from gpubench import __version__
from gpubench.errors import UsageError

NAME = "node.pyz"

BY_HAND = "import sys; from gpubench.node.main import main; sys.exit(main())"


def register(app: typer.Typer) -> None:
    """Add the command; its options are the node half's own."""
    app.command(
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
        help="For job scripts: one run on this node, or one role of it. Scheduler, worker or client; starts the "
        "campaign's node.pyz.",
    )(run)


def run(context: typer.Context) -> None:
    """Replace this process by ``python node.pyz run …``: the campaign's file measures, never this installation.

    Without ``--spec`` (a scheduler or workers started by hand) there is no campaign; then this version's own is packed.
    """
    arguments = context.args
    spec = next((arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word == "--spec"), None)
    node_half = _packed() if spec is None else Path(os.environ.get("OUTDIR") or Path(spec).resolve().parents[3]) / NAME
    if not node_half.is_file():
        raise UsageError(f"{node_half} is missing", then="run 'gpubench plan --out CAMPAIGN' first")
    os.execv(sys.executable, [sys.executable, "-I", str(node_half), "run", *arguments])  # noqa: S606 - no shell is wanted


def _packed() -> Path:
    import platformdirs

    from gpubench import resources
    from gpubench.files import write_atomically
    from gpubench.render.node_half import pack

    path = Path(platformdirs.user_cache_dir("gpubench")) / f"{__version__}-{NAME}"
    write_atomically(path, pack(resources.node_half()))
    return path
