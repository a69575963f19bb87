"""Mistakes in a profile or a suite: all of them at once, each with its file and line; and how profiles are named."""

import tomllib
from pathlib import Path

import pytest

from gpubench.model.base import TomlSource, key_lines
from tests.conftest import Run

BASE = """name = "base"
inherits = "draco"

[limits]
start = "1m"
jbo = "2h"
"""
MINE = """# a profile with five mistakes, one of them inherited
name = "mine"
inherits = "base.toml"
interfce = "ib0"
device = "tpu"

[layout]
workers = 0
mounts = '''
not = "a key"
'''

[env]
A = "1"
B = 2
"""
SUITE = """name = "several"
reps = 2

[[workload]]
name = "mrege"

[[workload]]
name = "message"
backend = "dusk"
[workload.params]
size = 1024
roundtrips = 5

[[workload]]
name = "tasks"
"""


def test_every_mistake_in_a_profile_is_told_at_once_with_its_file_and_line(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "mine.toml").write_text(MINE)
    expected = [
        "mine.toml:4: unknown key 'interfce' (did you mean 'interface'?)",
        "mine.toml:9: unknown key 'layout.mounts' (there is: arrangement, client, memory, one_machine, "
        "rmm_pool, scheduler, threads, waiting, workers)",
        "base.toml:6: unknown key 'limits.jbo' (did you mean 'job'?)",
        "mine.toml:5: 'device' = 'tpu': Input should be 'auto', 'cpu' or 'gpu'",
        "mine.toml:8: 'layout.workers' = 0: Input should be greater than or equal to 1",
        "mine.toml:15: 'env.B' = 2: Input should be a valid string",
    ]
    done = gpubench("plan", "--site", "mine.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(done.stderr.splitlines()) == sorted(f"gpubench: {line}" for line in expected)
    checked = gpubench("sites", "check", "mine.toml")
    assert sorted(checked.stdout.splitlines()) == sorted(f"wrong: {line}" for line in expected)
    assert checked.stderr.startswith("gpubench: 6 of these lines are wrong")


def test_every_mistake_in_a_suite_is_told_at_once_with_its_line(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "several.toml").write_text(SUITE)
    done = gpubench("plan", "--suite", "several.toml")
    assert done.returncode == 2
    lines = [line.removeprefix("gpubench: several.toml:") for line in done.stderr.splitlines()]
    assert [line.partition(" (")[0] for line in lines] == [
        "5: no workload 'mrege'",
        "9: message has no backend 'dusk'",
        '11: message.size = 1024: a quantity needs its unit, as a string: "64KiB"',
        "12: message has no parameter 'roundtrips'",
    ]


def test_partition_is_slurms_word_for_queue(gpubench: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "mine"\ninherits = "draco"\n[batch]\npartition = "fast"\n')
    shown = gpubench("sites", "list", "mine.toml")
    assert tomllib.loads(shown.stdout)["batch"]["queue"] == "fast", shown.stderr
    words = ("--site", "mine.toml", "--ucx", "1.16.0 1.22.0", "--out", "out")
    assert gpubench("plan", *words).returncode == 0
    assert "#SBATCH --partition=fast" in next((tmp_path / "out").glob("jobs/*/job.sh")).read_text()
    other = gpubench("sites", "list", "draco", "--set", "batch.partition=slow")
    assert 'queue = "slow"  # --set' in other.stdout
    mine.write_text(mine.read_text() + "account = 3\n")
    wrong = gpubench("sites", "list", "mine.toml", "--set", "batch.qos=1")
    assert wrong.stderr == "gpubench: mine.toml:5: 'batch.account' = 3: Input should be a valid string\n"


def test_partition_and_queue_in_one_place_are_refused(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\ninherits = "draco"\n[batch]\nqueue = "a"\npartition = "b"\n')
    done = gpubench("plan", "--site", "mine.toml")
    said = "'batch.partition' and 'batch.queue' are the same key; leave one of them out"
    assert (done.returncode, done.stderr) == (2, f"gpubench: mine.toml:5: {said}\n")
    both = gpubench("plan", "--site", "draco", "--set", "batch.queue=a", "--set", "batch.partition=b")
    assert (both.returncode, "leave one of them out" in both.stderr) == (2, True)


@pytest.mark.parametrize("option", ["--site", "--suite"])
def test_an_unknown_name_says_how_a_file_of_ones_own_is_named(gpubench: Run, tmp_path: Path, option: str) -> None:
    kind = option.removeprefix("--")
    done = gpubench("plan", option, "mine")
    assert done.returncode == 2
    assert done.stderr.startswith(f"gpubench: no {kind} 'mine' (")
    assert done.stderr.endswith("; a file of your own is named by its path, DIR/NAME.toml\n")
    (tmp_path / "mine.toml").write_text("")
    assert gpubench("plan", option, "mine").stderr.endswith("; the file here is named by its path, mine.toml\n")
    gone = gpubench("plan", option, "gone/mine.toml")
    assert (
        gone.stderr
        == f"gpubench: can't read {kind} gone/mine.toml: No such file or directory; give the path of a file\n"
    )


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb.c = 2", "b.c", 2),
        ("[t]\n\n  'x y' = 1", "t.x y", 3),
        ("[[w]]\nn = 1\n[[w]]\n# c\nn = 2", "w.1.n", 5),
        ("[[w]]\n[w.p]\nq = 1\n[[w]]\n[w.p]\nq = 2", "w.1.p.q", 6),
        ('[t]\ne = {A = "1",\n B = "2"}', "t.e.B", 2),
        ("l = [\n 'x = 1',\n 2,\n]\nm = 3", "m", 5),
        ('s = """\n[x]\ny = 1\n"""\n[x]\ny = 2', "x.y", 6),
        ("[t]\na = 1", "t.missing", 1),
    ],
)
def test_the_line_of_a_key(text: str, path: str, line: int) -> None:
    tomllib.loads(text.replace(",\n B", ", B"))
    assert TomlSource("f.toml", key_lines(text)).at(path) == f"f.toml:{line}"
