"""A function of the user's, from its file to verdicts."""

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


def fills(client, params):
    return client.submit(write, 1).result()


def write(number):
    raise OSError(28, "No space left on device")


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
    done = gpubench(
        "plan", "--suite", suite.relative_to(tmp_path), "--variants", "a=1.22.0 b=1.22.0", "--out", "out", code=0
    )
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    digest = hashlib.sha256(TWO.encode()).hexdigest()
    assert [(one["name"], one["params"]) for one in plan["workloads"]] == [
        ("mine.py:total", {"count": 5, "sha256": digest}),
        ("mine.py:Total", {"count": 5, "sha256": digest}),
    ]
    with zipfile.ZipFile(tmp_path / "out" / "node.pyz") as archive:
        assert archive.read(f"gpubench/node/workloads/own_{digest[:16]}/mine.py") == TWO.encode()
    (suite.parent / "mine.py").write_text(TWO + "\n")
    done = gpubench("plan", "--suite", suite.relative_to(tmp_path), "--variants", "a=1.22.0 b=1.22.0", "--out", "out")
    assert "already holds another campaign" in one_line(done)


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
    gpubench("plan", "--suite", "mine.toml", "--variants", "a=1.22.0 b=1.22.0", "--out", "out", code=0)
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
    done = gpubench("bench", "--suite", suite, "--variants", "a=1.22.0 b=1.22.0", *words, code=0)
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
def test_a_workload_that_a_full_disk_of_a_worker_ended_is_no_result(gpubench: Run, tmp_path: Path) -> None:
    write(tmp_path, "fills")
    done = gpubench("measure", "mine.py:fills", "--protocol", "tcp", "--ucx", "1.22.0", "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"]) == (4, "skipped")
    assert [record["status"] for record in records(campaign_in(tmp_path)).values()] == ["lost"]
    assert result["reason"].endswith("No space left on device, and its node can't write its files")


@pytest.mark.system
@pytest.mark.parametrize("name", ["mywork.py:Join", pytest.param("exchange.py:Exchange", marks=pytest.mark.long)])
def test_the_manuals_workloads_run(gpubench: Run, tmp_path: Path, name: str) -> None:
    manual.write_files(tmp_path)
    words = ("--protocol", "tcp", "--reps", "1", "--workers", "2", "--ucx", "1.22.0", "--json")
    done = gpubench("measure", f"./{name}", *words, code=0)
    result = json.loads(done.stdout)
    assert (result["workload"], result["status"], result["answer"]) == (name, "ok", "ok")
    assert result["moved"]["seen_bytes"] > 0


OWN_CLOCK = """
from gpubench.node.workloads.base import Measurement


class Ring(Measurement):
    plan = {
        "params": {"size": {"kind": "size", "default": "1MB"}},
        "devices": ["cpu"],
        "least_workers": 2,
        "held": "2 * size",
        "grows": {"size": 1.0},
        "timed": "nothing, by its own clock",
    }

    def once(self):
        return 0.125, 7
"""


def write_ring(folder: Path) -> None:
    (folder / "ring.py").write_text(OWN_CLOCK)


def test_a_list_shows_what_the_file_says_of_a_workload(gpubench: Run, tmp_path: Path) -> None:
    write_ring(tmp_path)
    done = gpubench("suites", "list", "ring.py:Ring", code=0)
    for line in ("  scaling  none; needs 2 workers at least", "  size = 1MB", "  --size   changes size"):
        assert line in done.stdout.split("\n")
    assert "2 * size; 1.9 MiB by default on two workers" in done.stdout
    (tmp_path / "ring.toml").write_text('name = "ring"\n[[workload]]\nfile = "ring.py:Ring"\n')
    done = gpubench("suites", "list", "ring.toml", "--json")
    assert [one["name"] for one in json.loads(done.stdout)["workloads"]] == ["ring.py:Ring"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--set", "sise=2MB"], 2, "ring.py:Ring has no parameter 'sise' (did you mean 'size'?)"),
        (["--workers", "1"], 6, "ring.py:Ring needs at least 2 workers"),
        (["--workers", "2", "--set", "size=1TB"], 6, "holds up to 1.8 TiB (2 * size)"),
        (["--set", "device=gpu"], 6, "ring.py:Ring doesn't run on gpu; take a site with device = cpu"),
    ],
)
def test_a_plan_knows_what_the_file_says(gpubench: Run, tmp_path: Path, words: list[str], code: int, said: str) -> None:
    write_ring(tmp_path)
    done = gpubench("measure", "ring.py:Ring", "--set", "layout.memory=2GB", *words)
    assert (done.returncode, said in one_line(done)) == (code, True), done.stderr
    assert not (tmp_path / "outputs").exists()
