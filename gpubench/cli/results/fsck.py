"""``gpubench results fsck``: files that aren't what their campaign or import wrote, one line each."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import typer

from gpubench.cli.results.open_target import IMPORT_FILE, is_kept, root_of, unpacked
from gpubench.cli.say import say, say_text
from gpubench.errors import DataError, UsageError
from gpubench.fsck import Finding, check_campaign, check_import
from gpubench.model.text import counted


def fsck(directories: Sequence[Path], *, as_json: bool) -> None:
    """Print every finding; writes nothing.

    Raises:
        UsageError: a path that is no campaign, import or pack, and holds none.
        typer.Exit: 3 where something was found.
    """
    checked = {path: check(path) for path in _places(directories)}
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


def check(path: Path) -> list[Finding]:
    """What is wrong in a campaign, an import or a pack; of a pack, paths are those inside."""
    if path.is_file():
        try:
            _, directory = unpacked(path)
        except DataError as error:
            return [Finding(str(path), error.what, error.then)]
        return [replace(one, path=f"{path}:{one.path.removeprefix(f'{directory}/')}") for one in check(directory)]
    return check_import(path) if (path / IMPORT_FILE).is_file() else check_campaign(path)


def _places(given: Sequence[Path]) -> list[Path]:
    """The paths to check: each that is named, or the campaigns, imports and packs in it."""
    places: list[Path] = []
    for path in given:
        root = root_of(path)
        inside = [root] if is_kept(root) else sorted(filter(is_kept, path.glob("*")))
        if not inside:
            raise UsageError(f"{path} is no campaign, import or pack, and holds none", then="name some")
        places += inside
    return places
