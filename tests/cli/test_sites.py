"""`gpubench sites`, and what a profile inherits."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gpubench.errors import UsageError
from gpubench.files import locked
from gpubench.node import scratch
from gpubench.plan.site_checks import check_site
from gpubench.resources.profiles import known_issues, load_site, read_profile, site_names
from tests.conftest import Run

MINE = """
inherits = "draco"
name = "mine"
[layout]
threads = 2
[batch]
options = []
"""
RULES = """
[[issue]]
name = "ucx-8461"
action = "warn"
reason = "not here"
url = "https://example.org/1"
[issue.when]
nodes_above = 8
[[issue]]
name = "own"
action = "skip"
reason = "it crashes"
url = "https://example.org/2"
[issue.when]
nodes_above = 1
"""

ABORTED = """
import os, sys
from pathlib import Path
from gpubench.node import scratch
print(scratch.make(Path(sys.argv[1]), "x-0")[0], flush=True)
os.abort()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(MINE)
    return tmp_path


def test_a_profile_inherits_tables_key_by_key_and_replaces_lists(folder: Path) -> None:
    mine, draco = load_site("mine.toml"), load_site("draco")
    assert (mine.name, mine.description) == ("mine", "")
    assert (mine.layout.workers, mine.layout.threads) == (8, 2)
    assert (mine.batch.queue, mine.batch.options) == (draco.batch.queue, [])
    kept = {
        key: value for key, value in draco.model_dump().items() if key not in ("name", "description", "layout", "batch")
    }
    assert kept == {key: mine.model_dump()[key] for key in kept}


def test_a_chain_of_profiles_ends_with_set_and_every_value_knows_its_file(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "child.toml").write_text('inherits = "../mine.toml"\nname = "child"\n[layout]\nthreads = 1\n')
    found = read_profile("deep/child.toml", ["batch.queue=fast", "limits.start=2m"])
    site = found.site()
    assert (site.layout.workers, site.layout.threads, site.batch.queue, site.limits.start) == (8, 1, "fast", 120.0)
    assert {key: found.origins[key] for key in ("name", "layout.workers", "batch.options", "batch.queue")} == {
        "name": "deep/child.toml",
        "layout.workers": "sites/draco.toml",
        "batch.options": "deep/../mine.toml",
        "batch.queue": "--set",
    }


def test_a_circle_is_refused_with_the_way_it_goes(folder: Path) -> None:
    (folder / "a.toml").write_text('inherits = "b.toml"\nname = "a"\n')
    (folder / "b.toml").write_text('inherits = "a.toml"\nname = "b"\n')
    with pytest.raises(UsageError, match=r"a\.toml inherits b\.toml inherits a\.toml: a circle"):
        load_site("a.toml")


def test_what_a_key_of_text_is_set_to_stays_text() -> None:
    settings = ["env.A=1", "env.B=true", 'env.C="1"', "env.D=0x10", "interface=1", "kubernetes.annotations.a=2"]
    site = load_site("local", [*settings, "layout.workers=3", "limits.start=90s"])
    assert site.env == {**load_site("local").env, "A": "1", "B": "true", "C": "1", "D": "0x10"}
    assert (site.interface, site.kubernetes.annotations["a"]) == ("1", "2")
    assert (site.layout.workers, site.limits.start) == (3, 90.0)
    with pytest.raises(UsageError, match=r"'env\.A' = "):
        load_site("local", ["env.A.B=1"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('batch.queue="a\\nb"', "'batch.queue' = 'a\\nb': a control character can't stand in one line"),
        (
            'batch.options=["--x\\u2028y"]',
            "'batch.options.0' = '--x\\u2028y': a control character can't stand in one line",
        ),
        ('setup.modules=["ok", "a\\nb"]', "'setup.modules.1' = 'a\\nb': a control character can't stand in one line"),
        ('env.A="a\\u0000b"', "'env.A' holds a NUL byte, which no command line and no variable can carry"),
        ('container.mounts=["/a:/b", "/c\\u0000:/d"]', "'container.mounts.1' holds a NUL byte"),
    ],
)
def test_text_that_no_script_can_hold_is_refused_with_its_place(setting: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_site("draco", [setting])
    assert message in str(caught.value)


def test_rules_of_ones_own_come_beside_the_shipped_ones_and_replace_those_of_the_same_name(folder: Path) -> None:
    (folder / "rules.toml").write_text(RULES)
    rules = {rule.name: rule for rule in known_issues(load_site("draco", ["known_issues=rules.toml"]))}
    assert set(rules) == {"ucx-8461", "ucx-11202", "own"}
    assert rules["ucx-8461"].action == "warn"
    with pytest.raises(UsageError, match=r"known_issues of site draco: can't read gone\.toml: No such file"):
        known_issues(load_site("draco", ["known_issues=gone.toml"]))


@pytest.mark.parametrize("name", site_names())
def test_a_shipped_profile_has_no_wrong_line(name: str) -> None:
    assert [finding for finding in check_site(load_site(name)) if finding.ok is False] == []


def test_list_names_every_profile_with_its_adapters(gpubench: Run) -> None:
    done = gpubench("sites", "list")
    rows = [line.split(maxsplit=6) for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == site_names()
    (draco,) = [row for row in rows if row[0] == "draco"]
    assert " ".join(draco[1:6]) == "slurm + srun + pyxis"
    assert draco[6] == "DGX-1 nodes, Slurm with pyxis"


def test_show_is_a_profile_again_and_says_where_values_come_from(gpubench: Run, folder: Path) -> None:
    done = gpubench("sites", "list", "mine.toml", "--set", "batch.queue=fast lane", code=0)
    assert tomllib.loads(done.stdout) == read_profile("mine.toml", ["batch.queue=fast lane"]).plain
    lines = done.stdout.splitlines()
    assert 'queue = "fast lane"  # --set' in lines
    assert "workers = 8  # sites/draco.toml" in lines
    assert "threads = 2" in lines


def test_check_says_a_line_each_and_exits_with_2_when_one_is_wrong(gpubench: Run, folder: Path) -> None:
    right = gpubench("sites", "check", "mine.toml", code=0)
    assert {line.partition(":")[0] for line in right.stdout.splitlines()} == {"ok", "not checked"}
    wrong = gpubench("sites", "check", "mine.toml", "--set", "layout.threads=11")
    assert wrong.returncode == 2
    assert "wrong: 8 workers x 11 threads = 88 are more than the 80 cores of node.cores" in wrong.stdout
    assert wrong.stderr.startswith("gpubench: 1 of these lines is wrong")


def test_live_needs_the_commands_of_the_queue(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench("sites", "check", "draco", "--live", env={"PATH": str(tmp_path)})
    said = "there is no sbatch on this machine; run it on a login node of site draco"
    assert (done.returncode, said in done.stderr) == (5, True), done.stderr
    assert not (tmp_path / "outputs").exists()


def test_what_dead_runs_left_on_this_machine_is_listed_and_removed(gpubench: Run, tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", ABORTED, tmp_path], capture_output=True, text=True, check=False)
    left = Path(dead.stdout.strip())
    alive, handle = scratch.make(tmp_path, "alive")
    other = tmp_path / "gpubench-other"
    other.mkdir()
    clean = ("sites", "clean", "local", "--set", f"paths.scratch={tmp_path}")
    said = gpubench(*clean).stdout.splitlines()
    assert [line for line in said if str(left) in line and ": scratch directory " in line], said
    assert said[-1].startswith("1 left by dead jobs on ")
    assert left.exists()
    said = gpubench(*clean, "--remove").stdout.splitlines()
    assert said[0].endswith(": removed")
    assert said[-1].startswith("nothing left by dead jobs on ")
    assert not left.exists()
    assert all(one.exists() for one in (alive, other))
    assert gpubench(*clean, "--all").stdout.splitlines()[-1].startswith("nothing left by dead jobs on ")
    os.close(handle)


def test_scratch_from_before_the_last_start_of_this_machine_is_left_over_and_that_of_another_is_not(
    gpubench: Run, tmp_path: Path
) -> None:
    for name, host in (("before", os.uname().nodename), ("elsewhere", "another-host")):
        (tmp_path / f"gpubench-{name}").mkdir()
        (tmp_path / f"gpubench-{name}" / scratch.HOLD).write_text(f"of-another-boot\nhost {host}\n")
    done = gpubench("sites", "clean", "local", "--set", f"paths.scratch={tmp_path}", "--remove", code=0)
    assert [path.name for path in tmp_path.glob("gpubench-*")] == ["gpubench-elsewhere"], done.stdout


def test_a_cleaning_that_goes_well_removes_the_files_of_those_that_did_not(gpubench: Run, tmp_path: Path) -> None:
    names = [f"{site}-20260101-000000-00000{number}" for number, site in enumerate(("local", "local", "local-slurm"))]
    dead, at_work, elsewhere = (tmp_path / "outputs" / "cleanings" / name for name in names)
    for one in (dead, at_work, elsewhere):
        (one / "jobs" / "check").mkdir(parents=True)
    with locked(at_work):
        done = gpubench("sites", "clean", "local", "--set", f"paths.scratch={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert sorted(dead.parent.iterdir()) == [at_work, elsewhere]


def test_a_profile_without_a_shared_file_system_is_no_fault_where_jobs_bring_their_files(gpubench: Run) -> None:
    done = gpubench("sites", "check", "kubernetes", code=0)
    assert "not checked" not in done.stdout
    assert "ok: no shared file system is needed: jobs bring their files along, and pods print" in done.stdout
