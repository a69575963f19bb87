"""What leaves a campaign for other tools."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from campaign_builder import QUICK, Writer, begin, finish, make_plan, variant

from tests.conftest import Run

SUITE = (
    ("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 6, 0.41),
    ("transpose-sum", {"size": 3000, "chunk": 1000}, 6, 0.13),
    ("tasks", {"count": 500}, 6, 0.22),
)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    directory = tmp_path / "campaign"
    finish(begin(directory, make_plan((variant("1.17.0"), variant("1.19.0")), blocks=3, nodes=(1, 2), suite=SUITE)))
    return directory


def test_csv_and_parquet_hold_every_sample(gpubench: Run, campaign: Path, tmp_path: Path) -> None:
    gpubench("results", "export", "parquet", campaign, "all.parquet")
    done = gpubench("results", "export", "csv", campaign, "all.csv")
    assert done.returncode == 0, done.stderr
    whole = pl.read_parquet(tmp_path / "all.parquet")
    assert whole.height == pl.read_csv(tmp_path / "all.csv").height == 3 * 2 * 2 * 3 * 7
    assert json.loads(whole["params"][0])


def test_an_exported_table_is_judged_by_its_other_costs(gpubench: Run, tmp_path: Path) -> None:
    """Two variants, as fast as each other; the candidate takes 30 % more processor time and a fifth less energy."""
    costs = {"1.17.0": {"cpu_s": 2.0, "energy_j": 100.0}, "1.19.0": {"cpu_s": 2.6, "energy_j": 80.0}}
    made = begin(tmp_path / "c", make_plan(suite=QUICK[2:4], blocks=6))
    writer = Writer(made, costs=costs)
    for row in made.rows():
        writer.write(*row)
    assert gpubench("results", "export", "parquet", made.directory, "all.parquet").returncode == 0
    for column, word in (("cpu_s", "regression"), ("energy_j", "improvement")):
        words = ("--columns", f"wall_s={column}", "--baseline", "1.17.0", "--candidate", "1.19.0", "--json")
        done = gpubench("compare", "all.parquet", *words)
        assert [one["verdict"] for one in json.loads(done.stdout)["cells"]] == [word, word], done.stderr


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_exported_table_is_judged_like_its_campaign_where_runs_failed(
    gpubench: Run, tmp_path: Path, kind: str
) -> None:
    """One run failed after all its samples, one before its first: without a word of it the candidate is equivalent."""
    made = begin(tmp_path / "c", make_plan(suite=SUITE[:2], blocks=7))
    writer = Writer(made)
    for job, block, run in made.rows():
        ways = {2: {"status": "failed"}, 5: {"status": "failed", "workloads": []}}
        writer.write(job, block, run, **(ways.get(block.block, {}) if run.variant == "1.19.0" else {}))
    assert gpubench("results", "export", kind, made.directory, f"all.{kind}").returncode == 0
    of_campaign, of_table = (
        json.loads(gpubench("compare", target, "--json").stdout)["cells"] for target in (made.directory, f"all.{kind}")
    )
    fields = ("workload", "verdict", "effect", "blocks", "low", "high")
    assert [[cell[field] for field in fields] for cell in of_table] == [
        [pytest.approx(cell[field]) for field in fields] for cell in of_campaign
    ]
    assert {cell["verdict"] for cell in of_table} == {"broken"}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_exported_table_that_is_imported_has_the_cells_of_its_campaign_and_no_run_that_failed(
    gpubench: Run, tmp_path: Path, kind: str
) -> None:
    """``trend`` takes imports; two workloads of one name were one cell, and samples of failed runs counted."""
    made = begin(tmp_path / "c", make_plan(suite=QUICK[:2], blocks=3))
    writer = Writer(made)
    for job, block, run in made.rows():
        writer.write(job, block, run, **({"status": "failed"} if block.block == 2 else {}))
    assert gpubench("results", "export", kind, made.directory, f"all.{kind}").returncode == 0
    done = gpubench("results", "import", "table", f"all.{kind}", "--out", "imported")
    assert done.returncode == 0, done.stderr
    exported = (pl.read_csv if kind == "csv" else pl.read_parquet)(tmp_path / f"all.{kind}")
    imported = pl.read_parquet(tmp_path / "imported" / "results.parquet")
    fields = ["run", "workload", "params", "rep", "wall_s"]
    assert imported.select(fields).sort(fields).rows() == (
        exported.filter(pl.col("run_status") == "ok").select(fields).sort(fields).rows()
    )
    assert imported["params"].n_unique() == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["openmetrics"], "there is no format 'openmetrics'"),
        (["csv"], "csv needs a campaign and a file; gpubench results export csv DIR samples.csv"),
        (["parquet", "campaign"], "parquet needs a campaign and a file"),
        (["csv", "campaign", "x.csv", "--tracking-uri", "u"], "--tracking-uri is for mlflow"),
        (["mlflow", "campaign", "x.csv"], "mlflow writes no file; leave FILE out"),
    ],
)
def test_what_a_format_lacks_or_does_not_take_is_said(
    gpubench: Run, campaign: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    done = gpubench("results", "export", *words)
    assert (done.returncode, said in done.stderr) == (2, True)
    assert {path.name for path in tmp_path.iterdir()} == {campaign.name}


def test_without_mlflow_the_line_that_installs_it_is_said(gpubench: Run, campaign: Path) -> None:
    done = gpubench("results", "export", "mlflow", campaign, env={"PYTHONPATH": str(_no_mlflow(campaign.parent))})
    assert (done.returncode, "pip install 'mlflow>=3.5'" in done.stderr) == (5, True)


def _no_mlflow(directory: Path) -> Path:
    """A path on which importing MLflow fails, whatever is installed."""
    (directory / "none").mkdir()
    (directory / "none" / "mlflow.py").write_text("raise ImportError('not here')\n")
    return directory / "none"


def test_mlflow_is_asked_about_the_newest_campaign_and_nothing_is_made_where_there_is_none(
    gpubench: Run, tmp_path: Path
) -> None:
    done = gpubench("results", "export", "mlflow")
    assert (done.returncode, "there is no campaign in outputs" in done.stderr) == (2, True)
    assert not (tmp_path / "outputs").exists()


def test_no_cell_of_an_export_begins_a_formula_and_its_own_reader_gets_the_text_back(
    gpubench: Run, tmp_path: Path
) -> None:
    labels = ("=1+2", "-evil", "'@sum", "+1.5")
    directory = tmp_path / "campaign"
    finish(begin(directory, make_plan(tuple(variant(one) for one in labels), blocks=3, suite=SUITE[:1])))
    assert gpubench("results", "export", "csv", directory, "all.csv").returncode == 0
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["variant"] for row in rows} == {"'=1+2", "'-evil", "''@sum", "'+1.5"}
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "@", "\t", "\r"))]
    done = gpubench("compare", "all.csv", "--baseline", "=1+2", "--candidate", "'@sum", "--json")
    assert done.stdout, done.stderr
    of_campaign = json.loads(gpubench("compare", directory, "--json").stdout)["cells"]
    (shown,) = json.loads(done.stdout)["cells"]
    (same,) = [one for one in of_campaign if one["candidate"] == "'@sum"]
    assert shown["effect"] == pytest.approx(same["effect"])


def test_an_exported_table_has_the_baseline_of_its_campaign(gpubench: Run, tmp_path: Path) -> None:
    directory = tmp_path / "campaign"
    slower = begin(directory, make_plan(blocks=6, suite=SUITE[:1]))
    finish(slower, lambda label, _: 1.5 if label == "1.19.0" else 1.0)
    for name in ("all.csv", "all.parquet"):
        assert gpubench("results", "export", name.partition(".")[2], directory, name).returncode == 0
        done = gpubench("compare", name)
        assert (done.returncode, "1.19.0 vs 1.17.0" in done.stdout) == (20, True), done.stdout
        assert "the baseline is 1.17.0, the variant of the first row; --baseline names another" in done.stderr


def test_a_file_where_the_database_s_directory_should_be_is_said(gpubench: Run, campaign: Path, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("")
    done = gpubench("results", "export", "mlflow", campaign)
    assert (done.returncode, "outputs is a file, not a directory; name another one" in done.stderr) == (2, True)
