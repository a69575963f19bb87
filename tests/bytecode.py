"""The bytecode of a clean clone: each test process makes a share of it.

All test processes import the same files in the same order. In a clean clone, each of them would otherwise compile every
file and rewrite its asserts, which takes longer than all the rest of collecting the tests.
"""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

ROOT = Path(__file__).resolve().parent.parent


def rewritten(path: Path) -> Path:
    """Where pytest keeps the bytecode of a file of tests whose asserts it has rewritten."""
    return rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"


def make_share(config: pytest.Config, root: Path, number: int, count: int) -> list[Path]:
    """Make what is missing or older than its source, of every ``count``-th file from ``number`` on.

    Which tests these were. An import checks what it finds and makes what it misses, so a gap here costs only time.
    """
    for path in sorted(root.glob("gpubench/**/*.py"))[number::count]:
        compileall.compile_file(path, quiet=2)
    made = []
    for path in sorted(root.glob("tests/**/test_*.py"))[number::count]:
        kept = rewritten(path)
        if not kept.exists() or kept.stat().st_mtime < path.stat().st_mtime:
            kept.parent.mkdir(exist_ok=True)
            status, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, status, kept)
            made.append(path)
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """In a process of pytest-xdist, before it imports the tests."""
    worker = getattr(session.config, "workerinput", None)
    if worker and not sys.dont_write_bytecode:
        number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        make_share(session.config, ROOT, number % count, count)
