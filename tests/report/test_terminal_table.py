import dataclasses
import io

from rich.console import Console

from gpubench.model.cell_names import cell_names, short_size
from gpubench.report.answer import answer
from gpubench.report.verdicts import verdict_lines, wide_table
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.stats.settings import VerdictSettings


def test_a_narrow_table_breaks_what_is_said_of_blocks_not_the_names(story: JudgedCampaign) -> None:
    word = {"verdict": "inconclusive", "reason": "wide: ", "low": -0.1, "more_blocks": 162, "sides_s": None}
    unsure = [dataclasses.replace(one, candidate="1.19.0-proto1", **word) for one in story.verdicts]
    out = io.StringIO()
    Console(file=out, width=100).print(wide_table(unsure))
    row = next(line for line in out.getvalue().splitlines() if line.startswith("message 10 MB"))
    for cell in ("1.19.0-proto1 vs 1.17.0", "+48.3 % [+46, +50]", "8 blocks", "inconclusive; about"):
        assert cell in row
    assert "blocks would decide" in out.getvalue()


def test_what_is_likely_and_not_proven_is_said_beside_the_verdict(story: JudgedCampaign) -> None:
    word = {"verdict": "inconclusive", "low_adjusted": -0.1, "high_adjusted": 0.6, "more_blocks": 3}
    slower = dataclasses.replace(story.verdicts[2], reason="wide: likely slower, not proven; 8 blocks", **word)
    faster = dataclasses.replace(slower, effect=-0.2, low=-0.3, high=-0.1, reason="wide: likely faster, not proven; 8")
    lines = verdict_lines([slower, faster, dataclasses.replace(slower, reason="order: ")])
    assert lines[0].endswith(
        "+48.3 % [-10, +60] | 8 blocks | inconclusive; likely slower, not proven; about 3 more blocks would decide"
    )
    assert "| inconclusive; likely faster, not proven; " in lines[1]
    assert "likely" not in lines[2]
    assert "  intervals: widened for all planned comparisons together" in lines


def test_one_comparison_is_not_widened_for_all_and_not_called_all(story: JudgedCampaign) -> None:
    word = {"verdict": "equivalent", "low": -0.02, "high": 0.02, "low_equivalence": -0.01, "high_equivalence": 0.01}
    equal = dataclasses.replace(story.verdicts[1], candidate="1.19.0", **word)
    assert "  intervals: those of equivalent comparisons are at 90 %" in verdict_lines([equal])
    settings = VerdictSettings()
    assert answer([equal], settings) == ["1.19.0 is as fast as 1.17.0, to within ±3 %."]
    assert answer([equal, equal], settings) == ["1.19.0 is as fast as 1.17.0 in all 2, to within ±3 %."]


def test_a_flag_of_nearly_all_comparisons_names_the_others(story: JudgedCampaign) -> None:
    flagged = [dataclasses.replace(one, verdict="equivalent", flags=("order-unknown",)) for one in story.verdicts]
    flagged[0] = dataclasses.replace(flagged[0], flags=("drift",))
    flagged[1] = dataclasses.replace(flagged[1], flags=("drift", "order-unknown"))
    rows = verdict_lines(flagged)[: len(flagged)]
    first, second = (" , ".join(row.split(" | ")[:2]).replace(" , ", ", ") for row in rows[:2])
    notes = verdict_lines(flagged)[len(flagged) :]
    assert f"  {first} · {second}: flags: drift" in notes
    assert f"  all but {first}: flags: order-unknown" in notes


def test_names_tell_cells_apart_and_no_more() -> None:
    message = {"workload": "message", "backend": "dask", "nodes": 1, "params": '{"round_trips":5,"size":1024}'}
    large = message | {"params": '{"round_trips":5,"size":10000000}'}
    merge = message | {"workload": "merge", "params": '{"rows_per_worker":200000}'}
    assert cell_names([message, large, merge]) == ["message 1 KiB", "message 10 MB", "merge"]
    assert [short_size(count) for count in (512, 2 * 10**9, 1536)] == ["512 B", "2 GB", "1.5 KiB"]
    assert cell_names([merge, merge | {"nodes": 4}]) == ["merge 1 node", "merge 4 nodes"]
    assert cell_names([merge, merge | {"params": '{"rows_per_worker":5}'}])[1] == "merge rows_per_worker=5"
    assert cell_names([merge, merge | {"backend": "parsl"}]) == ["merge dask", "merge parsl"]


def test_a_note_on_many_comparisons_names_a_few_and_their_number(story: JudgedCampaign) -> None:
    many = [
        dataclasses.replace(one, candidate=f"c{number}", flags=("tail",) if number < 8 else ())
        for number, one in enumerate([story.verdicts[2]] * 20)
    ]
    (line,) = [line for line in verdict_lines(many) if "flags: tail" in line]
    assert line.count(" · ") == 4
    assert " · 4 more: flags: tail" in line


def test_where_only_some_cells_of_a_workload_move_nothing_they_are_named(story: JudgedCampaign) -> None:
    one = dataclasses.replace(
        story.verdicts[2], flags=("no-traffic",), moved=0, key=story.verdicts[2].key | {"nodes": 1}
    )
    four = dataclasses.replace(one, flags=(), moved=2**30, key=one.key | {"nodes": 4})
    two = dataclasses.replace(one, moved=2**10, key=one.key | {"nodes": 2})
    said = [line.strip() for line in verdict_lines([one, two, four])]
    assert (
        "message 1 node · message 2 nodes moved at most 1.0 KiB between workers a repetition: UCX cannot change this"
        in said
    )
    assert "message moved at most 1.0 KiB between workers a repetition: UCX cannot change this" in [
        line.strip() for line in verdict_lines([one, two])
    ]
