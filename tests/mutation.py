"""Do the tests notice a change of the code? ``python -m tests.mutation --packages stats plan --count 60 --seed 1``.

Mutants are made by cosmic-ray (a library of mutation operators), in clones of HEAD; so many of a package's are drawn
from the seed. coverage.py records once which tests of ``make test`` reach which line, without those that start a
cluster; each mutant is tried with the tests that reach its line, two mutants at a time. Code that runs in processes of
its own is not seen by coverage.py: what survives is tried with all tests of the folders of ``--then``, as in
``--packages node --then tests/node``. Both tools are installed by their first use. Prints the share that was killed
with its 95 % interval (Wilson), and the survivors with their diffs.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import math
import os
import queue
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uv

ROOT = Path(__file__).resolve().parent.parent
COSMIC_RAY = "cosmic-ray==8.7.0"
COVERAGE = ("coverage==7.17.5", "pytest-cov==7.1.0")
ALL = "not system and not long and not testbed"
FAST = f"{ALL} and not integration"
LONGEST_S = 1800
"""A test run that takes longer counts as one that failed: long enough for a busy machine."""
SPECS = "SELECT module_path, operator_name, occurrence, start_pos_row, start_pos_col FROM mutation_specs"
Row = tuple[str, str, int, int, int]


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: an operator of cosmic-ray, at its nth place in a file, with the lines of the statement there."""

    package: str
    path: str
    operator: str
    occurrence: int
    lines: tuple[int, int]


class Reached:
    """Which tests reach a line, by coverage.py's data file (https://coverage.readthedocs.io/en/latest/dbschema.html)."""

    def __init__(self, data: Path, but: Collection[str] = ()) -> None:
        """``but`` are tests that don't count."""
        with sqlite3.connect(data) as database:
            files = dict(database.execute("SELECT id, path FROM file"))
            tests = {number: _test(context) for number, context in database.execute("SELECT id, context FROM context")}
            rows = list(database.execute("SELECT file_id, context_id, numbits FROM line_bits"))
        self._by_file: dict[str, list[tuple[str, bytes]]] = {}
        for file, context, bits in rows:
            path = Path(files[file]).relative_to(data.parent).as_posix()
            if tests[context] and tests[context] not in but:
                self._by_file.setdefault(path, []).append((tests[context], bits))

    def by(self, mutant: Mutant) -> list[str]:
        """The tests that execute one of the mutant's lines; of a line that only an import executes, those of its file.

        Those of the package's own folder stand first.
        """
        of_file, (first, last) = self._by_file.get(mutant.path, []), mutant.lines
        there = {test for test, bits in of_file if any(_has(bits, line) for line in range(first, last + 1))}
        own = f"tests/{mutant.package.rpartition('/')[2]}/"
        return sorted(there or {test for test, _ in of_file}, key=lambda test: (not test.startswith(own), test))


def _test(context: str) -> str:
    """``tests/x.py::test_y|run`` and, side by side, ``tests/x.py::test_y@group|run``; empty outside of tests."""
    return re.sub(r"(@[^@]*)?\|(setup|run|teardown)$", "", context)


def _has(bits: bytes, line: int) -> bool:
    return line // 8 < len(bits) and bool(bits[line // 8] & (1 << line % 8))


def main() -> None:
    """Print a table of the packages, then every survivor; exit code 1 where less than 90 % of a package is killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--packages", nargs="+", default=["stats", "results/merge", "plan", "store"])
    parser.add_argument("--count", type=int, default=60, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--then", nargs="+", default=[], help="folders whose tests are tried with what survives")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutation-") as top, ThreadPoolExecutor(2) as pool:
        clones: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(2):  # a mutant stands in the file while its tests run
            clones.put(_clone(Path(top) / str(number)))
        reached = _reached(Path(top) / "0")
        drawn = {name: _drawn(Path(top) / "1", name, options.count, options.seed) for name in options.packages}
        tried = {
            name: list(pool.map(lambda mutant: _survivor(clones, mutant, reached.by(mutant), options.then), mutants))
            for name, (_, mutants) in drawn.items()
        }
    print("| package | mutants | drawn | killed | | 95 % |\n|---|---|---|---|---|---|")
    for name, survivors in tried.items():
        killed, count = survivors.count(""), len(survivors)
        low, high = _wilson(killed, count)
        print(f"| {name} | {drawn[name][0]} | {count} | {killed} | {killed / count:.0%} | {low:.0%} to {high:.0%} |")
    for name, survivors in tried.items():
        for survivor in filter(None, survivors):
            print(f"\n{name} survived:\n{survivor}")
    sys.exit(any(survivors.count("") < 0.9 * len(survivors) for survivors in tried.values()))


def _clone(path: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(path)], check=True)
    return path


def _reached(clone: Path) -> Reached:
    """Run all tests once under coverage.py; those that fail there are no tests of a mutant."""
    tools = clone.parent / "coverage"
    subprocess.run(
        [uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--target", tools, *COVERAGE], check=True
    )
    words = ("-n2", "--dist", "loadgroup", "-m", FAST, "--cov=gpubench", "--cov-context=test", "--cov-report=")
    done = _pytest(clone, *words, "-rfE", "-W", "ignore::coverage.exceptions.CoverageWarning", PYTHONPATH=str(tools))
    names = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    failed = {_test(f"{name}|run") for name in names}
    assert done.returncode == 0 or failed, done.stdout + done.stderr
    if failed:
        print(f"fail without a mutant, and are left out: {', '.join(sorted(failed))}", file=sys.stderr)
    return Reached(clone / ".coverage", failed)


def _drawn(clone: Path, package: str, count: int, seed: int) -> tuple[int, list[Mutant]]:
    """How many mutants the package has, and those that the seed draws of them."""
    (clone / "mutation.toml").write_text(
        f'[cosmic-ray]\nmodule-path = "gpubench/{package}"\ntimeout = {LONGEST_S}\nexcluded-modules = []\n'
        'test-command = "false"\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    (clone / "mutants.sqlite").unlink(missing_ok=True)
    _cosmic_ray(clone, "init", "mutation.toml", "mutants.sqlite")
    with sqlite3.connect(clone / "mutants.sqlite") as database:
        rows: list[Row] = sorted(database.execute(SPECS))
    trees = {path: ast.parse((clone / path).read_text("utf-8")) for path in {row[0] for row in rows}}
    noted = {path: list(_annotations(tree)) for path, tree in trees.items()}
    rows = [row for row in rows if not any(begin <= row[3:] < end for begin, end in noted[row[0]])]
    drawn = random.Random(f"{seed} {package}").sample(rows, min(count, len(rows)))
    return len(rows), [
        Mutant(package, path, operator, occurrence, _statement(trees[path], line))
        for path, operator, occurrence, line, _ in drawn
    ]


def _annotations(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where each annotation begins and ends (line, column): hardly any is evaluated, and types are mypy's business."""
    for node in ast.walk(tree):
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(note, ast.expr):
                yield (note.lineno, note.col_offset), (note.end_lineno or 0, note.end_col_offset or 0)


def _statement(tree: ast.Module, line: int) -> tuple[int, int]:
    """First and last line of the innermost statement at ``line``, of a compound one without its body."""
    here = (line, line)
    for node in ast.walk(tree):  # outer ones first
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body: Sequence[ast.stmt] = getattr(node, "body", ())
            here = (node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or line)
    return here


def _survivor(
    clones: queue.SimpleQueue[Path], mutant: Mutant, tests: Sequence[str], folders: Sequence[str] = ()
) -> str:
    """The diff of a mutant that no test notices, neither those that reach it nor those of the folders; else nothing."""
    clone = clones.get()
    try:
        _cosmic_ray(clone, "apply", mutant.path, mutant.operator, str(mutant.occurrence))
        diff = subprocess.run(["git", "diff", "-U1"], cwd=clone, check=True, capture_output=True, text=True).stdout
        assert diff, mutant
        (clone / ".tests").write_text("\n".join(tests))
        selections = [["@.tests"]] if tests else []
        selections += [[*folders, "-m", ALL]] if folders else []
        try:
            killed = any(_pytest(clone, "-x", "-n0", "--timeout", "120", *words).returncode for words in selections)
        except subprocess.TimeoutExpired:
            killed = True
        word = "killed" if killed else "survived"
        print(f"{word}: {mutant.path}:{mutant.lines[0]} {mutant.operator.rpartition('/')[2]}", file=sys.stderr)
        return "" if killed else diff if selections else f"{diff}(no test reaches it)\n"
    finally:
        subprocess.run(["git", "checkout", "--quiet", "--", "gpubench"], cwd=clone, check=True)
        clones.put(clone)


def _pytest(clone: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    environ = {**os.environ, **variables}
    return subprocess.run(
        command, cwd=clone, env=environ, check=False, capture_output=True, text=True, timeout=LONGEST_S
    )


def _cosmic_ray(clone: Path, *words: str) -> None:
    command = [uv.find_uv_bin(), "tool", "run", "--from", COSMIC_RAY, "cosmic-ray", *words]
    subprocess.run(command, cwd=clone, check=True, capture_output=True)


def _wilson(killed: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    z, share = 1.96, killed / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return centre - half, centre + half


if __name__ == "__main__":
    main()
