"""``gpubench results fsck``: files that aren't what their campaign or import wrote, one line each."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from gpubench.cli.say import say, say_text
from gpubench.errors import DataError
from gpubench.fsck import check, checked_paths
from gpubench.model.text import counted


def fsck(directories: Sequence[Path], *, as_json: bool) -> None:
    """Print every finding; writes nothing.

    Raises:
        UsageError: a path that is no campaign, import or pack, and holds none.
        typer.Exit: 3 where something was found.
    """
    checked = {path: check(path) for path in checked_paths(directories)}
    if as_json:
        plain = [
            {"path": str(path), "findings": [asdict(one) for one in findings]} for path, findings in checked.items()
        ]
        say_text(json.dumps({"schema": "gpubench/fsck/1", "checked": plain}, indent=1))
    else:
        for path, findings in checked.items():
            for finding in findings:
                say(str(finding))
            say(f"{path}: {counted(len(findings), 'finding') if findings else 'no findings'}")
    if any(checked.values()):
        raise typer.Exit(DataError.exit_code)
