"""From anyone's table to comparisons: what is read, and what is refused with a reason."""

import datetime as dt
import itertools
import math

import polars as pl
import pytest
from campaign_by_hand import noisy

from gpubench.errors import DataError, UsageError
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.table import comparisons_from_frame
from gpubench.stats.verdict import judge


def table(effects=(0.06, 0.0), *, blocks=8, reps=3) -> pl.DataFrame:
    """Variants A and B on one workload per effect, one run per block and variant that spans all workloads."""
    rows = []
    for number, effect in enumerate(effects):
        for block, difference in enumerate(noisy(blocks, effect=effect, sd=0.004), start=1):
            for variant in "AB":
                for rep in range(reps):
                    seconds = math.exp(difference * (variant == "B")) * (1 + 0.01 * rep)
                    order = (block + (variant == "B")) % 2
                    rows.append((f"w{number}", 2, variant, block, f"{variant}{block}", rep, seconds, order))
    names = ["workload", "nodes", "variant", "block", "run", "rep", "wall_s", "order"]
    return pl.DataFrame(rows, schema=names, orient="row")


def verdicts(frame, *, by=()):
    return judge(comparisons_from_frame(frame, "A", "B", by), VerdictSettings())


def changed(frame, row, **values):
    """One row of the table with other values."""
    here = pl.int_range(pl.len()) == row
    return frame.with_columns(
        pl.when(here).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    )


def test_a_table_gives_one_comparison_per_cell_sorted_and_one_run_may_span_workloads():
    found = verdicts(table())
    assert [verdict.key for verdict in found] == [{"workload": "w0", "nodes": 2}, {"workload": "w1", "nodes": 2}]
    assert [verdict.verdict for verdict in found] == ["regression", "equivalent"]
    assert [verdict.samples for verdict in found] == [48, 48]


def test_row_order_and_column_order_never_matter():
    frame = table()
    shuffled = frame.sample(fraction=1, shuffle=True, seed=3).select(sorted(frame.columns))
    assert verdicts(shuffled) == verdicts(frame)


def test_a_table_read_from_csv_text_gives_the_same_verdicts():
    frame = table().with_columns(warmup=pl.lit(False))
    assert verdicts(pl.read_csv(frame.write_csv().encode())) == verdicts(frame)


@pytest.mark.parametrize(
    ("true", "false"),
    [(True, False), ("true", "false"), ("True", "False"), ("1", "0"), (" yes", "no "), ("YES", ""), ("yes", None)],
)
def test_warm_up_rows_are_left_out(true, false):
    cold = table().filter(pl.col("rep") == 0).with_columns(rep=pl.lit(99, pl.Int64), wall_s=pl.lit(50.0))
    warm = table().with_columns(warmup=pl.lit(false, pl.Boolean if true is True else pl.String))
    frame = pl.concat([warm, cold.with_columns(warmup=pl.lit(true))])
    assert verdicts(frame) == verdicts(table())


def test_a_warm_up_may_have_the_number_of_a_repetition():
    cold = table().with_columns(wall_s=pl.lit(50.0), warmup=pl.lit(True))
    both = pl.concat([table().with_columns(warmup=pl.lit(False)), cold])
    assert comparisons_from_frame(both, "A", "B") == comparisons_from_frame(table(), "A", "B")
    with pytest.raises(DataError, match="twice"):
        comparisons_from_frame(pl.concat([both, cold]), "A", "B")


def test_further_columns_become_cell_keys_by_name():
    frame = pl.concat([table((0.0,)).with_columns(backend=pl.lit(name)) for name in ("dask", "noop")])
    with pytest.raises(DataError, match="--by"):
        verdicts(frame)
    assert [verdict.key["backend"] for verdict in verdicts(frame, by=["backend"])] == ["dask", "noop"]


def test_other_variants_are_ignored():
    third = table().filter(pl.col("variant") == "A").with_columns(variant=pl.lit("C"), run=pl.lit("C") + pl.col("run"))
    assert verdicts(pl.concat([table(), third])) == verdicts(table())


def test_a_cell_with_one_variant_only_is_in_the_family_without_data():
    frame = table().filter((pl.col("workload") == "w0") | (pl.col("variant") == "A"))
    found = verdicts(frame)
    assert found[1].reason.startswith("no data: ")
    assert found[0].p_holm == pytest.approx(2 * found[0].p)


@pytest.mark.parametrize("emptied", [["wall_s"], ["rep", "wall_s"]])
def test_a_failed_run_counts_as_failure_whatever_it_left(emptied):
    late = pl.col("run").is_in(["B2", "B3"]) & (pl.col("rep") == 2)
    frame = table((0.0,)).with_columns(
        pl.when(late).then(pl.lit("failed")).otherwise(pl.lit("ok")).alias("status"),
        *(pl.when(late).then(None).otherwise(pl.col(name)).alias(name) for name in emptied),
    )
    assert [verdict.verdict for verdict in verdicts(frame)] == ["broken"]


def test_a_run_with_nothing_but_warm_up_is_lost():
    frame = table((0.0,)).with_columns(warmup=pl.col("run") == "B2")
    run = next(run for run in comparisons_from_frame(frame, "A", "B")[0].runs if run.run == "B2")
    assert (run.status, run.wall_s) == ("lost", ())


@pytest.mark.parametrize(
    "starts",
    [
        lambda seconds: seconds,
        lambda seconds: dt.datetime.fromtimestamp(seconds, dt.UTC),
        lambda seconds: dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(),
        lambda seconds: dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    ],
)
def test_start_times_may_be_seconds_times_or_text(starts):
    rows = table((0.0,)).to_dicts()
    times = [starts(1.7e9 + 100.0 * row["block"] + 10 * row["order"] + row["rep"]) for row in rows]
    frame = table((0.0,)).drop("order").with_columns(started_at=pl.Series(times))
    (given,) = comparisons_from_frame(frame, "A", "B")
    assert {run.started_at for run in given.runs if run.block == 1} == {1.7e9 + 100, 1.7e9 + 110}
    assert verdicts(frame)[0].verdict == "equivalent"
    assert "order-unknown" not in verdicts(frame)[0].flags


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("block", r"no column 'block'.*difference between the jobs, nodes or hours"),
        *((name, f"no column {name}") for name in ("workload", "nodes", "variant", "run", "rep", "wall_s")),
    ],
)
def test_a_missing_column_is_named_with_what_cannot_be_concluded_without_it(column, said):
    with pytest.raises(DataError, match=said):
        verdicts(table().drop(column))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(
            ({"wall_s": time}, r"run 'A1', workload 'w0', rep 0 .*no verdict")
            for time in (0.0, -1.0, math.nan, math.inf, None)
        ),
        ({"rep": 1}, "run 'A1', workload 'w0' has rep 1 twice"),
        ({"variant": "B"}, "run 'A1' has more than one variant"),
        ({"variant": "a"}, "run 'A1' has more than one variant: A, a"),  # although nobody has asked for the other
        ({"block": 5}, "run 'A1' has more than one block"),
        ({"job": "j2"}, "run 'A1' has more than one job: j1, j2"),
        ({"status": "great"}, "no status great"),
    ],
)
def test_a_row_that_cannot_be_or_contradicts_the_others_of_its_run_is_refused(changes, said):
    frame = table().with_columns(job=pl.lit("j1"), status=pl.lit("ok"))
    with pytest.raises(DataError, match=said):
        verdicts(changed(frame, 0, **changes))


def test_a_variant_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match=r"no variant 'Z' in the table \(there is: A, B\)"):
        comparisons_from_frame(table(), "A", "Z")


@pytest.mark.parametrize(
    ("column", "value"), [("block", 1.5), ("block", None), ("rep", "x"), ("variant", None), ("order", "second")]
)
def test_unreadable_values_are_refused_with_their_column(column, value):
    kind = pl.Float64 if value == 1.5 else pl.String
    with pytest.raises(DataError, match=f"column '{column}'"):
        verdicts(changed(table().with_columns(pl.col(column).cast(kind)), 0, **{column: value}))


def test_samples_stay_in_the_order_of_their_repetitions():
    frame = table((0.0,)).with_columns(wall_s=3.0 - pl.col("rep")).sample(fraction=1, shuffle=True, seed=1)
    assert {run.wall_s for run in comparisons_from_frame(frame, "A", "B")[0].runs} == {(3.0, 2.0, 1.0)}


def test_a_cell_is_held_against_all_blocks_of_its_node_count():
    frame = table().filter((pl.col("workload") == "w0") | (pl.col("block") > 2))
    assert ["incomplete" in verdict.flags for verdict in verdicts(frame)] == [False, True]


def test_rows_without_any_value_are_no_samples():
    frame = table()
    assert verdicts(pl.concat([frame, frame.clear(2)])) == verdicts(frame)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("nodes", pl.lit(None, pl.Int64), "column 'nodes' is empty in row 1 below the header; fill it in every row"),
        ("wall_s", pl.lit("1.2 s"), "column 'wall_s' reads '1.2 s' in row 1"),
        ("wall_s", pl.concat_list("wall_s"), "column 'wall_s' holds lists"),
        ("nodes", pl.concat_list("nodes"), "column 'nodes' holds lists"),
        ("nodes", pl.lit(math.nan), "column 'nodes' reads 'nan'"),
        ("started_at", pl.lit(dt.time(12, 0)), "column 'started_at' holds Time; give seconds, dates with times"),
        ("started_at", pl.lit(True), "column 'started_at' holds Boolean"),
        ("block", pl.lit("first"), "column 'block' reads 'first' in row 1 .*; give every row a whole number"),
        ("warmup", pl.lit("cold"), "column 'warmup' reads 'cold' in row 1 .*; write true or false"),
        ("wall_s", pl.lit(1e308), "is 1e[+]308 .* a time or a cost must be positive and finite"),
    ],
)
def test_what_is_no_time_or_no_cell_is_refused_in_words(column, value, said):
    with pytest.raises(DataError, match=said):
        verdicts(table().with_columns(value.alias(column)))


def test_a_table_without_rows_says_so():
    with pytest.raises(DataError, match="no rows"):
        verdicts(table().clear())


@pytest.mark.parametrize("column", ["block", "job", "verdict", "effect"])
def test_a_column_that_describes_samples_or_stands_in_every_verdict_cannot_be_a_cell_key(column):
    with pytest.raises(UsageError, match=f"--by {column}"):
        verdicts(table().with_columns(pl.lit("x").alias(column)), by=[column])


def test_the_sizes_and_parameters_of_an_exported_campaign_are_cells_of_their_own() -> None:
    """Seen: one and two workers per node became one cell of six blocks, and its verdict an improvement."""
    size = itertools.product((1, 2), ('{"size":1}', '{"size":2}'), ("a", "b"), range(3))
    rows = [
        {
            "workload": "message",
            "nodes": 1,
            "workers_per_node": workers,
            "threads_per_worker": 1,
            "backend": "dask",
            "params": params,
            "variant": variant,
            "block": 3 * workers + block,
            "run": f"{workers} {variant} {block}",
            "rep": 0,
            "wall_s": 1.0 + 0.1 * block,
        }
        for workers, params, variant, block in size
    ]
    cells = comparisons_from_frame(pl.DataFrame(rows), "a", "b")
    names = [(cell.key["params"], cell.key["workers_per_node"]) for cell in cells]
    assert names == [(f'{{"size":{size}}}', workers) for size in (1, 2) for workers in (1, 2)]
    assert {(cell.planned_blocks, len(cell.runs)) for cell in cells} == {(3, 6)}
