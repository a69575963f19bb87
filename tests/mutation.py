"""Do the tests notice a change of the code? ``python -m tests.mutation --packages stats plan --count 60 --seed 1``.

Mutants are made by cosmic-ray (a library of mutation operators, installed into uv's cache by its first use), in a clone
of HEAD. So many of a package's mutants are drawn from the seed. Each is tested with the package's own tests, and only
if it survives these, with other folders of tests, in two processes. Prints the survivors with their diffs.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uv

ROOT = Path(__file__).resolve().parent.parent
COSMIC_RAY = "cosmic-ray==8.7.0"
FAST = "not system and not integration and not long and not testbed"
OTHERS = ("stats", "merge", "plan", "store", "results", "report", "fsck", "model", "importers", "render")
"""Folders of tests that are tried after the package's own: those that use it, and need no process."""
LONGEST_S = 1800
"""A test run that takes longer counts as one that failed: long enough for a busy machine."""
DRAW = """
SELECT module_path, start_pos_row, start_pos_col, operator_name, occurrence, operator_args, job_id FROM mutation_specs
"""


def main() -> None:
    """Print a table of the packages, then every survivor; exit code 1 where less than 90 % of a package is killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--packages", nargs="+", default=["stats", "results/merge", "plan", "store"])
    parser.add_argument("--count", type=int, default=60, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutation-") as top, ThreadPoolExecutor(2) as pool:
        # Two at once, in clones of their own: a mutant stands in the file while its tests run.
        tried = pool.map(lambda name: _package(name, options.count, options.seed, Path(top) / name), options.packages)
        results = dict(zip(options.packages, tried, strict=True))
    print("| package | mutants | drawn | killed | |\n|---|---|---|---|---|")
    for name, (all_of_them, outcomes) in results.items():
        killed = sum(survivor is None for survivor in outcomes)
        print(f"| {name} | {all_of_them} | {len(outcomes)} | {killed} | {killed / len(outcomes):.0%} |")
    for name, (_, outcomes) in results.items():
        for survivor in filter(None, outcomes):
            print(f"\n{name} survived:\n{survivor}")
    sys.exit(any(sum(map(bool, outcomes)) > len(outcomes) / 10 for _, outcomes in results.values()))


def _package(name: str, count: int, seed: int, clone: Path) -> tuple[int, list[str | None]]:
    """How many mutants there are, and of each drawn one None if it was killed, else its diff."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    folder = name.rpartition("/")[2]
    own = f"tests/{folder}"
    others = " ".join(f"tests/{one}" for one in OTHERS if one != folder)
    pytest = f"{shlex.quote(sys.executable)} -m pytest -x -q -p no:cacheprovider -m '{FAST}'"
    (clone / "mutation.toml").write_text(
        "[cosmic-ray]\n"
        f'module-path = "gpubench/{name}"\n'
        f"timeout = {LONGEST_S}\n"
        "excluded-modules = []\n"
        f"test-command = {json.dumps('bash -c ' + shlex.quote(f'{pytest} -n0 {own} && {pytest} -n2 {others}'))}\n"
        '[cosmic-ray.distributor]\nname = "local"\n'
    )
    _cosmic_ray(clone, "baseline", "mutation.toml")  # else every mutant would look killed
    _cosmic_ray(clone, "init", "mutation.toml", "mutants.sqlite")
    with sqlite3.connect(clone / "mutants.sqlite") as database:
        specs = sorted(map(tuple, database.execute(DRAW)))
        notes = {path: _annotations((clone / path).read_text("utf-8")) for path in {spec[0] for spec in specs}}
        jobs = [spec for spec in specs if not any(begin <= spec[1:3] < end for begin, end in notes[spec[0]])]
        drawn = {job[-1] for job in random.Random(f"{seed} {name}").sample(jobs, min(count, len(jobs)))}
        for table in ("mutation_specs", "work_items"):
            database.executemany(
                f"DELETE FROM {table} WHERE job_id = ?", [(spec[-1],) for spec in specs if spec[-1] not in drawn]
            )
    _cosmic_ray(clone, "exec", "mutation.toml", "mutants.sqlite")
    with sqlite3.connect(clone / "mutants.sqlite") as database:
        found = list(database.execute("SELECT worker_outcome, test_outcome, diff FROM work_results"))
    assert [worker for worker, _, _ in found] == ["NORMAL"] * len(drawn), f"{name}: not every mutant was tried"
    return len(jobs), [diff if outcome == "SURVIVED" else None for _, outcome, diff in found]


def _annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where each annotation begins and ends (line, column): hardly any is evaluated, and types are mypy's business."""
    found = []
    for node in ast.walk(ast.parse(source)):
        noted = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        found += [
            ((one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0))
            for one in noted
            if isinstance(one, ast.expr)
        ]
    return found


def _cosmic_ray(clone: Path, *words: str) -> None:
    command = [uv.find_uv_bin(), "tool", "run", "--from", COSMIC_RAY, "cosmic-ray", *words]
    subprocess.run(command, cwd=clone, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
