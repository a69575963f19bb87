"""Each mutant is tried with the tests that reach its line: with too few of them it would look as if it survived."""

import ast
import sqlite3
from pathlib import Path

from tests.mutation import Mutant, Reached, _statement

PROGRAM = """\
LIMIT = 3

def longest(words):
    best = max(
        len(word)
        for word in words
    )
    if best > LIMIT:
        return LIMIT
    return best
"""


def test_the_lines_of_a_mutant_are_those_of_its_statement_and_of_a_compound_one_its_head() -> None:
    tree = ast.parse(PROGRAM)
    assert [_statement(tree, line) for line in (1, 3, 5, 8, 9)] == [(1, 1), (3, 3), (4, 7), (8, 8), (9, 9)]


def test_the_tests_of_a_mutant_are_those_that_reach_its_line_and_its_packages_own_stand_first(tmp_path: Path) -> None:
    contexts = ("", "tests/cli/test_a.py::test_a[x@y]@group|run", "tests/stats/test_b.py::test_b|run")
    lines = {0: (1, 3), 1: (4, 8, 9), 2: (8,)}
    with sqlite3.connect(tmp_path / ".coverage") as database:
        database.execute("CREATE TABLE file (id INTEGER, path TEXT)")
        database.execute("CREATE TABLE context (id INTEGER, context TEXT)")
        database.execute("CREATE TABLE line_bits (file_id INTEGER, context_id INTEGER, numbits BLOB)")
        database.execute("INSERT INTO file VALUES (0, ?)", (str(tmp_path / "gpubench/stats/words.py"),))
        for number, context in enumerate(contexts):
            bits = bytearray(2)
            for line in lines[number]:
                bits[line // 8] |= 1 << line % 8
            database.execute("INSERT INTO context VALUES (?, ?)", (number, context))
            database.execute("INSERT INTO line_bits VALUES (0, ?, ?)", (number, bytes(bits)))
    reached = Reached(tmp_path / ".coverage")
    a, b = "tests/cli/test_a.py::test_a[x@y]", "tests/stats/test_b.py::test_b"
    tests = [
        reached.by(Mutant("stats", f"gpubench/stats/{file}.py", "", 0, lines))
        for file, lines in (("words", (4, 7)), ("words", (8, 8)), ("words", (1, 1)), ("others", (1, 1)))
    ]
    assert tests == [[a], [b, a], [b, a], []]
    assert Reached(tmp_path / ".coverage", [a]).by(Mutant("stats", "gpubench/stats/words.py", "", 0, (8, 8))) == [b]
