"""What ``python -m benchmarks.gpu_shares`` prints and plans, without a GPU."""

from pathlib import Path

import polars as pl
import pytest

from benchmarks.gpu_shares.__main__ import campaigns
from benchmarks.gpu_shares.shares import shares
from gpubench.results.merge.table import COLUMNS
from tests.conftest import Run

TWO_COPIES = ("copy", '{"size":1000,"times":5}', 1000)
ARRAY = ("transpose-sum", '{"chunk":10,"size":100}', 80_000)


def samples(*rows: tuple[str, tuple[str, str, int], float], backend: str = "dask") -> pl.DataFrame:
    """Of (run, workload, seconds), all good."""
    fixed = {"variant": "a", "warmup": False, "run_status": "ok", "workload_status": "ok", "answer": "ok"}
    plain = [
        {**fixed, "run": run, "backend": backend, "workload": name, "params": params, "bytes": size, "wall_s": seconds}
        for run, (name, params, size), seconds in rows
    ]
    return pl.DataFrame(plain, schema_overrides={name: COLUMNS[name] for name in plain[0]})


def test_an_array_workload_is_held_against_the_copies_of_its_own_run() -> None:
    # 4 passes over 100 × 100 float64 are 320,000 bytes: at 1 MB/s of copies no less than 0.32 s.
    found = shares(samples(("1", TWO_COPIES, 0.001), ("1", ARRAY, 0.4), ("2", TWO_COPIES, 0.002), ("2", ARRAY, 0.8)))
    (row,) = found
    assert (row.variant, row.workload, row.share) == ("a", "transpose-sum", pytest.approx(0.8))
    assert row.seconds == pytest.approx(0.6)


def test_what_nobody_has_counted_and_runs_without_copies_have_no_share() -> None:
    assert shares(samples(("1", ARRAY, 0.4), ("2", TWO_COPIES, 0.1), ("2", ("merge", "{}", 10), 1.0))) == []


def test_warm_ups_and_failures_count_nowhere() -> None:
    good = samples(("1", TWO_COPIES, 0.001), ("1", ARRAY, 0.4))
    bad = samples(("1", ARRAY, 9.0))
    changes = ({"warmup": True}, {"run_status": "failed"}, {"workload_status": "failed"}, {"answer": "wrong"})
    others = [bad.with_columns(pl.lit(value).alias(name) for name, value in change.items()) for change in changes]
    assert shares(pl.concat([good, *others])) == shares(good)


@pytest.mark.parametrize("number", [0, 1])
def test_both_campaigns_can_be_planned(gpubench: Run, tmp_path: Path, number: int) -> None:
    _, words = list(campaigns(4, 20.0, "1.19.0 1.22.0", "32GB", tmp_path))[number]
    done = gpubench(*words, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"suite {('gpu-one', 'gpu-node')[number]} on site local-gpu" in done.stdout
    assert f"workers per node {(1, 4)[number]}" in done.stdout
