"""A function of the user's, from its file to verdicts."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, records
from tests.cli.test_bad_input import one_line
from tests.conftest import Run
from tests.docs import manual

TWO = """
def total(client, params):
    return sum(client.gather(client.map(abs, range(params["count"]))))


class Total:
    def setup(self, client, params):
        self.client, self.count = client, params["count"]

    def once(self):
        return sum(self.client.gather(self.client.map(abs, range(self.count))))

    def check(self, result):
        return result == self.count * (self.count - 1) // 2


def breaks(client, params):
    return client.submit(divide, 1).result()


def divide(number):
    return number / 0
"""


def write(folder: Path, *entries: str) -> Path:
    (folder / "mine.py").write_text(TWO)
    tables = [f'[[workload]]\nfile = "mine.py:{name}"\nparams = {{ count = 5 }}\n' for name in entries]
    (folder / "mine.toml").write_text("\n".join(['name = "mine"\nreps = 2\n', *tables]))
    return folder / "mine.toml"


def test_a_suite_names_a_file_beside_it_and_the_campaign_keeps_its_content(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    suite = write(tmp_path / "inner", "total", "Total")
    done = gpubench("plan", "--suite", suite.relative_to(tmp_path), "--variants", "a=1.22.0 b=1.22.0", "--out", "out")
    assert done.returncode == 0, done.stderr
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    digest = hashlib.sha256(TWO.encode()).hexdigest()
    assert [(one["name"], one["params"]) for one in plan["workloads"]] == [
        ("mine.py:total", {"count": 5, "sha256": digest}),
        ("mine.py:Total", {"count": 5, "sha256": digest}),
    ]
    with zipfile.ZipFile(tmp_path / "out" / "node.pyz") as archive:
        assert archive.read(f"gpubench/workloads/own_{digest[:16]}.py") == TWO.encode()
    (suite.parent / "mine.py").write_text(TWO + "\n")
    done = gpubench("plan", "--suite", suite.relative_to(tmp_path), "--variants", "a=1.22.0 b=1.22.0", "--out", "out")
    assert "already holds another campaign" in one_line(done)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["measure", "mine.py:totl"], "mine.py: no function or class 'totl' (did you mean 'total'?)"),
        (["measure", "mine.py"], "mine.py: which function or class? (there is: Total, breaks, divide, total)"),
        (["measure", "none.py:total"], "can't read none.py: No such file or directory"),
        (["measure", "mine.py:divide"], "mine.py:21: divide is called with (client, params), and takes (number)"),
        (["measure", "mine.py:total", "--backend", "parsl"], "mine.py:total has no backend 'parsl'"),
        (["plan", "--suite", "mine.toml"], "mine.py: no function or class 'lost'"),
    ],
)
def test_what_is_wrong_with_the_file_is_one_line_before_anything_is_done(
    gpubench: Run, tmp_path: Path, words: list[str], said: str
) -> None:
    write(tmp_path, "lost")
    done = gpubench(*words)
    assert (done.returncode, said in one_line(done)) == (2, True), done.stderr
    assert not (tmp_path / "outputs").exists()


def test_a_package_offers_a_workload_by_an_entry_point(
    gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site" / "theirs-1.dist-info").mkdir(parents=True)
    (tmp_path / "site" / "theirs.py").write_text(TWO)
    info = tmp_path / "site" / "theirs-1.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[gpubench.workloads]\ntheir-total = theirs:total\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    (tmp_path / "mine.toml").write_text('name = "mine"\n[[workload]]\nname = "their-total"\n')
    done = gpubench("plan", "--suite", "mine.toml", "--variants", "a=1.22.0 b=1.22.0", "--out", "out")
    assert done.returncode == 0, done.stderr
    (workload,) = json.loads((tmp_path / "out" / "plan.json").read_text())["workloads"]
    assert (workload["name"], workload["params"]) == (
        "theirs.py:total",
        {"sha256": hashlib.sha256(TWO.encode()).hexdigest()},
    )
    assert "theirs" not in sys.modules


@pytest.mark.system
def test_own_workloads_run_and_are_judged_and_one_without_a_check_says_so(gpubench: Run, tmp_path: Path) -> None:
    suite = write(tmp_path, "total", "Total")
    words = ("--protocol", "tcp", "--blocks", "3", "--workers", "1")
    done = gpubench("bench", "--suite", suite, "--variants", "a=1.22.0 b=1.22.0", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mine.py:total, b vs a: flags: unchecked" in done.stdout.replace("incomplete, ", "")
    campaign = campaign_in(tmp_path)
    ended = [one for record in records(campaign).values() for one in record["workloads"]]
    assert [(one["status"], one["reason"]) for one in ended] == [("ok", "")] * 12
    verdicts = json.loads((campaign / "verdicts.json").read_text())["cells"]
    flags = {one["workload"]: "unchecked" in one["flags"] for one in verdicts}
    assert flags == {"mine.py:total": True, "mine.py:Total": False}
    assert gpubench("results", "fsck", campaign).returncode == 0
    for page in ("report.html", "report.md"):
        assert "The answers of mine.py:total were not checked:" in (campaign / page).read_text()
    done = gpubench("measure", "mine.py:breaks", "--protocol", "tcp", "--ucx", "1.22.0")
    line = TWO.split("\n").index("    return number / 0") + 1
    assert (done.returncode, f"mine.py:{line}: ZeroDivisionError: division by zero" in one_line(done)) == (4, True)
    (logs,) = tmp_path.glob("outputs/*breaks*/runs/*/logs.zip")
    with zipfile.ZipFile(logs) as archive:
        assert any(b"return number / 0" in archive.read(name) for name in archive.namelist())


@pytest.mark.system
def test_the_manuals_workload_runs(gpubench: Run, tmp_path: Path) -> None:
    manual.write_files(tmp_path)
    words = ("--protocol", "tcp", "--reps", "1", "--cpus", "1", "--ucx", "1.22.0", "--json")
    done = gpubench("measure", "./mywork.py:Join", *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["workload"], found["status"], found["answer"]) == ("mywork.py:Join", "ok", "ok")
