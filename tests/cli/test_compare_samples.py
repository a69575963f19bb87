"""``compare FILE``: files as people have them give the right verdict or one clear line."""

import datetime as dt
import json
import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import typer

from gpubench.cli.results_options import CompareOptions
from gpubench.cli.verdicts import compare as compare_targets
from gpubench.errors import DataError, UsageError
from gpubench.report import labels
from gpubench.results.merge.table_files import TIMES, Dialect, find_dialect, refuse_other_than_times, time_field
from tests.in_process import invoked as run

Compare = Callable[..., list[str]]


def table(slower: float = 0.06, **further: str) -> pl.DataFrame:
    """Six blocks of A and B, two repetitions a run."""
    rows = [
        ("w", 2, variant, block, f"{variant}{block}", rep, *_seconds_and_order(slower, block, variant == "B", rep))
        for block in range(1, 7)
        for variant in "AB"
        for rep in range(2)
    ]
    names = ["workload", "nodes", "variant", "block", "run", "rep", "wall_s", "order"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(
        pl.lit(value).alias(name) for name, value in further.items()
    )


def _seconds_and_order(slower: float, block: int, second: bool, rep: int) -> tuple[float, int]:
    return math.exp(slower * second + 0.002 * math.sin(7 * block + 3 * rep + second)), (block + second) % 2


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """The exit code and the printed lines for a file with this content."""

    def compare(
        content: bytes, name: str = "samples.csv", *, variants: str = "A B", by: str | None = None
    ) -> list[str]:
        path = tmp_path / name
        path.write_bytes(content)
        baseline, candidate = variants.split()
        asked = CompareOptions(baseline=baseline, candidate=candidate, by=by, margin="3%")
        with pytest.raises(typer.Exit) as ended:
            compare_targets(campaign=path, options=asked)
        return [str(ended.value.exit_code), *capsys.readouterr().out.splitlines()]

    return compare


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text + b"\n\n",
    ],
)
def test_a_csv_may_have_a_byte_order_mark_foreign_line_ends_and_empty_last_lines(compare: Compare, change) -> None:
    code, line = compare(change(table().write_csv().encode()), "SAMPLES.CSV")
    assert code == "20"
    assert line.endswith("| 6 blocks | regression")


def test_repetitions_without_numbers_are_those_of_their_run(compare: Compare) -> None:
    assert compare(table().drop("rep").write_csv().encode()) == compare(table().write_csv().encode())


def test_versions_that_look_like_numbers_stay_names(compare: Compare) -> None:
    names = {"A": "1.1", "B": "1.10"}
    frame = table().with_columns(pl.col("variant").replace(names))
    _, line = compare(frame.write_csv().encode(), variants="1.1 1.10")
    assert line.startswith("w | 1.10 vs 1.1 | ")


def test_warm_up_that_is_first_marked_late_in_a_long_jsonl_is_warm_up(compare: Compare) -> None:
    """Polars looks at 100 lines to find the columns, unless it is told to look at all."""
    rows = [{**row, "rep": 10 * row["rep"] + more} for row in table().to_dicts() for more in range(8)]
    cold = {**rows[-1], "rep": 99, "wall_s": 50.0, "warmup": True}
    _, line, *_ = compare("".join(json.dumps(row) + "\n" for row in [*rows, cold]).encode(), "samples.jsonl")
    assert [*line.split(" | ")[:2], line.split(" | ")[3][:7]] == ["w", "B vs A", "+6.2 % "]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "can't be read: empty CSV; it should be UTF-8, one header line"),
        ("a.csv", table().write_csv(separator="|").encode(), "none of the columns .* reads 'workload.nodes."),
        ("a.csv", table().write_csv().encode("utf-16"), "none of the columns"),
        ("a.csv", table().write_csv().upper().encode(), "none of the columns .* reads 'WORKLOAD,NODES,"),
        ("a.csv", table().write_csv().replace("order", "wall_s").encode(), "column 'wall_s' twice"),
        ("a.csv", table().write_csv().encode() + b"w,2,A\n", "column 'block' is empty in row 25"),
        ("a.jsonl", b'{"workload": "w"', "can't be read: .*one whole JSON object per line"),
        ("a.jsonl", b'{"wall_s": NaN}\n', "can't be read: .*no NaN"),
        ("a.parquet", b"PAR1", "can't be read: "),
    ],
)
def test_a_file_no_verdict_can_stand_on_is_refused_in_words(
    compare: Compare, name: str, content: bytes, said: str
) -> None:
    with pytest.raises(DataError, match=said) as refused:
        compare(content, name)
    assert "\n" not in str(refused.value)


def test_a_table_is_known_by_the_end_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.CSV"
    path.write_text(table().write_csv())
    asked = ["--baseline", "A", "--candidate", "B"]
    named = run("compare", path, *asked)
    assert named.exit_code == 20
    assert run("compare", path).stdout == named.stdout
    assert "put both sides into one" in str(run("compare", path, path).exception)
    assert "there is no page; gpubench compare" in str(run("report", path).exception)


def test_blocks_of_two_campaigns_are_never_one_whatever_their_numbers(tmp_path: Path) -> None:
    """Each variant from a campaign of its own: nothing ran side by side, so nothing is paired."""
    path = tmp_path / "mine.csv"
    both = table().with_columns(campaign=pl.concat_str(pl.lit("of "), "variant"))
    both.write_csv(path)
    (apart,) = json.loads(run("compare", path, "--json").stdout)["cells"]
    assert "note: unpaired: no block is shared" in run("compare", path).stdout
    assert (apart["flags"], apart["blocks"]) == (["unpaired"], 6)
    both.with_columns(campaign=pl.lit("one")).write_csv(path)
    (paired,) = json.loads(run("compare", path, "--json").stdout)["cells"]
    assert (paired["flags"], paired["blocks"]) == ([], 6)
    assert paired["effect"] == pytest.approx(apart["effect"])


def test_a_margin_that_nobody_named_is_said(tmp_path: Path) -> None:
    """The campaign that a table was exported from may have had another, and other verdicts."""
    path = tmp_path / "mine.csv"
    path.write_text(table().write_csv())
    note = "note: the margin is ±3 %, the default, since a table says none: --margin sets it"
    assert note in run("compare", path).stdout.splitlines()
    assert "note:" not in run("compare", path, "--margin", "3%").stdout


def own_table(directory: Path, *, block: bool = True) -> Path:
    """Two columns as anybody writes them, and a block."""
    frame = table().filter(pl.col("rep") == 0).select("block", build="variant", seconds="wall_s")
    path = directory / "mine.csv"
    (frame if block else frame.drop("block")).write_csv(path)
    return path


def test_a_table_of_builds_and_seconds_is_told_which_option_and_which_column_it_lacks(tmp_path: Path) -> None:
    ended = run("compare", own_table(tmp_path, block=False))
    assert isinstance(ended.exception, DataError)
    assert str(ended.exception) == (
        f"{tmp_path}/mine.csv has none of the columns variant, block, wall_s; its header reads 'build,seconds'; "
        "name yours: --columns variant=build,wall_s=seconds; and add a column block, a whole number: rows of one block "
        "were measured side by side"
    )


def test_of_three_variants_each_is_compared_with_the_first_or_with_the_one_that_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "three.csv"
    third = table().filter(pl.col("variant") == "B").with_columns(variant=pl.lit("C"), run="C" + pl.col("run"))
    pl.concat([table(), third]).write_csv(path)

    def compared(*words: str) -> set[str]:
        cells = json.loads(run("compare", path, "--json", *words).stdout)["cells"]
        return {f"{cell['candidate']} vs {cell['baseline']}" for cell in cells}

    assert compared() == {"B vs A", "C vs A"}
    assert compared("--candidate", "C") == {"C vs A"}
    assert len([line for line in caplog.messages if "the baseline is A, the variant of the first row" in line]) == 2
    assert compared("--baseline", "B") == {"A vs B", "C vs B"}
    assert compared("--candidate", "A", "--baseline", "B") == {"A vs B"}
    refused = str(run("compare", path, "--candidate", "A").exception)
    assert refused == f"{path}: A is the baseline, the variant of the first row; name another: --baseline B"
    assert "no variant 'Z' in the table" in str(run("compare", path, "--candidate", "Z").exception)


@pytest.mark.parametrize("values", [("small", "large"), ("1", "2"), ('"a"', "[1]"), ("{", "{}")])
def test_a_column_called_params_may_hold_anything_and_tells_the_cells_apart(
    compare: Compare, values: tuple[str, str]
) -> None:
    both = pl.concat([table(params=value) for value in values])
    both = both.with_columns(run=pl.concat_str("run", "params"))
    code, *lines = compare(both.write_csv().encode(), by="params")
    assert code == "20"
    named = {line.partition(" | ")[0] for line in lines if " | B vs A | " in line}
    assert len(named) == 2, lines


def test_dates_that_tell_cells_apart_are_json_too(tmp_path: Path) -> None:
    days = [dt.date(2026, 11, day) for day in (20, 21)]
    both = [table().with_columns(day=pl.lit(day), run=pl.concat_str("run", pl.lit(str(day)))) for day in days]
    pl.concat(both).write_parquet(tmp_path / "t.parquet")
    done = run("compare", tmp_path / "t.parquet", "--by", "day", "--json")
    assert done.exit_code == 20, done.exception
    assert {one["day"] for one in json.loads(done.stdout)["cells"]} == {"2026-11-20", "2026-11-21"}


@pytest.mark.parametrize(
    ("seconds", "said"),
    zip(
        (9999.4, 9999.6, 12_345.6, 12.3456, 0.25, 0.0052, 61e-6, 5e-9),
        ("9999 s", "10000 s", "12346 s", "12.35 s", "250 ms", "5.2 ms", "61 µs", "5 ns"),
        strict=True,
    ),
)
def test_times_carry_units_and_long_ones_are_no_powers_of_ten(seconds: float, said: str) -> None:
    assert labels.seconds(seconds) == said


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("comma", [False, True])
def test_semicolons_tabs_and_decimal_commas_are_read_and_said(tmp_path: Path, separator: str, *, comma: bool) -> None:
    path = tmp_path / ("mine.csv" if comma else "mine.tsv")
    text = table().write_csv(separator=separator)
    path.write_text(text.replace(".", ",") if comma else text)
    (tmp_path / "plain.csv").write_text(table().write_csv())
    done = run("compare", path, "--margin", "3%")
    assert done.stdout == run("compare", tmp_path / "plain.csv", "--margin", "3%").stdout
    sign = ", and a comma is the decimal sign" if comma else ""
    name = {";": "a semicolon", "\t": "a tab"}[separator]
    assert f"{path}: read with {name} between fields{sign}" in done.stderr


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["1,5", "2.5"], "numbers like '1,5' and '2.5'"),
        (["1,500", "2,500"], "numbers like '1,500', where a comma may part thousands"),
    ],
)
def test_a_comma_that_may_mean_two_things_is_refused(tmp_path: Path, cells: list[str], reason: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("variant;block;wall_s\n" + "".join(f"a;1;{cell}\n" for cell in cells))
    error = run("compare", path).exception
    assert reason in str(error)
    assert "write every decimal sign as a point" in str(error)


@pytest.mark.parametrize(
    ("header", "cells", "dialect"),
    [
        ("variant;wall_s", ["1.10;0,511", "1.9;0,498"], Dialect(";", ",")),
        ("gpus;wall_s", ["0,1;0.5", "0,1;0.6"], Dialect(";")),
        ('wall_s;"size, MB"', ["0,5;1", "5,12E-01;2"], Dialect(";", ",")),
        ("took\tvariant", ["1,5\ta"], Dialect("\t")),  # nobody said which column is the time
        ("wall_s,a;b", ["1.5,x;y"], Dialect()),
        ("wall_s;note", ['0,5;"' + "x" * 200_000 + '"'], Dialect(";")),  # no row that can be read
    ],
)
def test_the_column_of_times_tells_the_decimal_sign(
    tmp_path: Path, header: str, cells: list[str], dialect: Dialect
) -> None:
    (tmp_path / "mine.csv").write_text("\n".join([header, *cells, ""]))
    assert find_dialect(tmp_path / "mine.csv") == dialect


@pytest.mark.parametrize(
    ("column", "field"),
    [
        *((name, "wall_ms") for name in ("time [ms]", "time.ms", "time-ms", "timeMs", "ms_mean", "join_msec")),
        *((name, "wall_us") for name in ("time_usec", "time (µs)", "micros")),
        *(
            (name, "wall_s")
            for name in ("took", "seconds", "time_s", "status", "bus", "comb_s", "bandwidth_test_s", "min")
        ),
        *((name, None) for name in ("time_h", "nanos", "time_mins", "gflops", "iops", "items/second", "GB/s (avg)")),
        *((name, None) for name in ("items_per_second", "throughput_mean", "GB_s", "speedup", "rate")),
        *((name, None) for name in ("busbw", "bw (avg)", "GBps", "MBps", "ops", "efficiency")),
    ],
)
def test_a_name_tells_the_unit_or_a_rate(column: str, field: str | None) -> None:
    assert time_field(column) == field
    for other in TIMES:
        if other != field and (field != "wall_s" or column.endswith(("_s", "seconds"))):
            with pytest.raises(UsageError):
                refuse_other_than_times(other, column)


@pytest.mark.parametrize(("field", "factor"), [("wall_ms", 1e3), ("wall_us", 1e6)])
def test_times_in_other_units_are_known_by_name_and_by_map(tmp_path: Path, field: str, factor: float) -> None:
    (tmp_path / "plain.csv").write_text(table().write_csv())
    wanted = run("compare", tmp_path / "plain.csv", "--margin", "3%").stdout
    scaled = table().with_columns(pl.col("wall_s") * factor)
    scaled.rename({"wall_s": field}).write_csv(tmp_path / "named.csv")
    assert run("compare", tmp_path / "named.csv", "--margin", "3%").stdout == wanted
    scaled.rename({"wall_s": "took"}).write_csv(tmp_path / "mapped.csv")
    mapped = ("compare", tmp_path / "mapped.csv", "--margin", "3%", "--columns")
    assert run(*mapped, f"{field}=took").stdout == wanted


def test_a_time_that_is_no_number_is_named_with_its_row_and_a_duration_is_refused(tmp_path: Path) -> None:
    frame = table().with_columns(wall_ms=pl.col("wall_s").cast(pl.String)).drop("wall_s")
    frame[4, "wall_ms"] = "n/a"
    frame.write_csv(tmp_path / "mine.csv")
    assert "column 'wall_ms' reads 'n/a' in row 5 below the header" in str(
        run("compare", tmp_path / "mine.csv").exception
    )
    table().with_columns(pl.duration(seconds=1).alias("wall_s")).write_parquet(tmp_path / "mine.parquet")
    assert "column 'wall_s' holds Duration" in str(run("compare", tmp_path / "mine.parquet").exception)


@pytest.mark.parametrize(
    ("column", "meaning", "has_seconds"), [("cpu_s", "processor time", True), ("energy_j", "energy", False)]
)
def test_a_cost_in_place_of_the_seconds_is_named_and_joules_are_no_seconds(
    tmp_path: Path, column: str, meaning: str, has_seconds: bool
) -> None:
    rows = [f"{variant},{block},1.0,{(1 + (variant == 'b')) * (200 + block)}" for block in range(6) for variant in "ab"]
    path = tmp_path / "costs.csv"
    path.write_text("\n".join([f"variant,block,wall_s,{column}", *rows]))
    said = run("compare", path, "--columns", f"wall_s={column}", "--margin", "3%").stdout
    assert f"note: the figures are {column}, {meaning}" in said
    assert "slower means more of it" in said
    assert (" s → " in said) is has_seconds
    assert "the figures are" not in run("compare", path, "--margin", "3%").stdout
