"""What leaves a campaign for other tools, and that it comes back the same."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from campaign_builder import begin, finish, make_plan, variant

from gpubench.exporters.draco_csv import MERGE, TRANSPOSE
from gpubench.importers.directory import Given, import_files
from gpubench.importers.formats import FORMATS
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


def test_exported_tables_are_imported_again_with_the_same_figures(
    gpubench: Run, campaign: Path, tmp_path: Path
) -> None:
    done = gpubench("results", "export", "draco-csv", campaign, "multi-node-merge.csv", "multi-node-transpose.csv")
    assert done.returncode == 0, done.stderr
    assert "4 rows in multi-node-merge.csv, 4 in multi-node-transpose.csv" in done.stdout
    assert "tasks (72 samples)" in done.stdout
    gpubench("compare", campaign)
    samples = pl.read_parquet(campaign / "results.parquet").filter(~pl.col("warmup"))
    files = [tmp_path / "multi-node-merge.csv", tmp_path / "multi-node-transpose.csv"]
    back = import_files("draco-csv", FORMATS["draco-csv"], files, tmp_path / "back", Given())
    assert (back.note["kept"], back.note["refused"]) == (8, [])
    for row in back.table.iter_rows(named=True):
        ours = samples.filter(
            (pl.col("workload") == row["workload"])
            & (pl.col("variant") == row["variant"])
            & (pl.col("nodes") * pl.col("workers_per_node") == row["workers"])
        )["wall_s"].to_numpy()
        assert row["wall_s"] == pytest.approx(ours.mean())
        assert row["reps"] == len(ours) == 18
        assert row["wall_se"] == pytest.approx(ours.std(ddof=1) / np.sqrt(18))
        assert str(row["date"]) == "2025-11-20"


def test_columns_are_those_of_the_original_and_the_transposes_clock_is_in_seconds(
    gpubench: Run, campaign: Path, tmp_path: Path
) -> None:
    done = gpubench("results", "export", "draco-csv", campaign, "m.csv", "t.csv")
    assert "are seconds here" in done.stdout
    merges, transposes = pl.read_csv(tmp_path / "m.csv"), pl.read_csv(tmp_path / "t.csv")
    assert (merges.columns, transposes.columns) == (list(MERGE), list(TRANSPOSE))
    assert transposes["wallclock_mean"].to_list() == transposes["wallclock"].to_list()
    assert (transposes["wallclock_std"] < transposes["wallclock"]).all()


def test_csv_and_parquet_hold_every_sample(gpubench: Run, campaign: Path, tmp_path: Path) -> None:
    gpubench("results", "export", "parquet", campaign, "all.parquet")
    done = gpubench("results", "export", "csv", campaign, "all.csv")
    assert done.returncode == 0, done.stderr
    whole = pl.read_parquet(tmp_path / "all.parquet")
    assert whole.height == pl.read_csv(tmp_path / "all.csv").height == 3 * 2 * 2 * 3 * 7
    assert json.loads(whole["params"][0])


def test_without_mlflow_the_line_that_installs_it_is_said(gpubench: Run, campaign: Path) -> None:
    done = gpubench("results", "export", "mlflow", campaign, env={"PYTHONPATH": str(_no_mlflow(campaign.parent))})
    assert (done.returncode, "pip install 'gpubench[mlflow]'" in done.stderr) == (5, True)


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
    done = gpubench("compare", "--samples", "all.csv", "--baseline", "=1+2", "--candidate", "'@sum", "--json")
    assert done.stdout, done.stderr
    of_campaign = json.loads(gpubench("compare", directory, "--json").stdout)["cells"]
    (shown,) = json.loads(done.stdout)["cells"]
    (same,) = [one for one in of_campaign if one["candidate"] == "'@sum"]
    assert shown["effect"] == pytest.approx(same["effect"])


def test_the_draco_tables_hold_text_as_text(gpubench: Run, campaign: Path, tmp_path: Path) -> None:
    for path in (campaign / "plan.json", *campaign.glob("runs/*/run.json"), *campaign.glob("runs/*/samples.jsonl")):
        path.write_text(path.read_text().replace('"dask"', '"=dask"'))
    assert gpubench("results", "export", "draco-csv", campaign, "multi-node-merge.csv", "t.csv").returncode == 0
    assert set(pl.read_csv(tmp_path / "multi-node-merge.csv")["backend"]) == {"'=dask"}
    files = [tmp_path / "multi-node-merge.csv"]
    back = import_files("draco-csv", FORMATS["draco-csv"], files, tmp_path / "back", Given())
    assert set(back.table["backend"]) == {"=dask"}


def test_a_file_where_the_database_s_directory_should_be_is_said(gpubench: Run, campaign: Path, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("")
    done = gpubench("results", "export", "mlflow", campaign)
    assert (done.returncode, "outputs is a file, not a directory; name another one" in done.stderr) == (2, True)
