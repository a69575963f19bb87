"""``gpubench suites new``: a suite and a file with workloads of one's own, to begin with."""

from __future__ import annotations

from pathlib import Path

from gpubench import resources
from gpubench.cli.say import say
from gpubench.errors import UsageError
from gpubench.files import write_many_atomically
from gpubench.model.base import check_name

FILES = {".py": "workload.py", ".toml": "suite.toml"}
"""Templates below ``templates/new/``, by the suffix of the file that becomes of them."""


def new_suite(name: str, folder: Path) -> None:
    """Write ``NAME.py`` and ``NAME.toml``; raises UsageError where one of them exists."""
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(f"'{name}': {error}") from None
    paths = {suffix: folder / f"{name}{suffix}" for suffix in FILES}
    for path in paths.values():
        if path.exists():
            raise UsageError(f"{path} exists already, and is left as it is", then="take another name, or --out FOLDER")
    schema = resources.schema("suite").as_uri()
    texts = {
        paths[suffix]: (resources.root() / "templates" / "new" / file)
        .read_text(encoding="utf-8")
        .replace("@NAME@", name)
        .replace("@SCHEMA@", schema)
        for suffix, file in FILES.items()
    }
    write_many_atomically({path: text.encode() for path, text in texts.items()})
    say(f"{paths['.py']}: two workloads; {paths['.toml']}: a suite that lists them")
    say(f"measure one: gpubench measure {paths['.py']}:Join")
    say(f"compare two versions: gpubench bench --suite {paths['.toml']}")
