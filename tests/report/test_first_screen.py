"""What a reader sees first: the answer, what to do next, the chart; and what the page leaves out or folds."""

import dataclasses
import datetime as dt
import re
import statistics
from pathlib import Path

import pytest
import reports

from gpubench.model.cell_names import cell_names
from gpubench.model.quantities import format_seconds
from gpubench.report import labels
from gpubench.report.answer import answer
from gpubench.report.campaign_page import about, campaign_page
from gpubench.report.differences import cautions
from gpubench.report.facts import shortened
from gpubench.report.next_steps import next_steps
from gpubench.report.variants_line import compared
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.store.accounting import OVER_BUDGET, Accounting
from gpubench.store.campaign import SEARCH_FILE


def text_of(page: bytes) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.decode().partition("<body>")[2].partition("<script")[0]))


def test_seconds_of_both_sides_are_of_the_blocks_that_the_verdict_used_and_agree_with_the_effect(
    story: JudgedCampaign, troubled: JudgedCampaign
) -> None:
    """Lost, failed and skipped runs are in no pair."""
    for inputs in (story, troubled):
        for verdict in inputs.verdicts:
            assert verdict.sides_s
            before, after = verdict.sides_s
            assert after / before - 1 == pytest.approx(verdict.effect, abs=1e-9)


def test_a_run_that_failed_is_among_the_first_notes_with_its_reason(
    story: JudgedCampaign, troubled: JudgedCampaign
) -> None:
    for inputs in (story, troubled):
        failed = [outcome for outcome in inputs.outcomes if outcome.status == "failed"]
        notes = [note for note in cautions(inputs) if " failed: " in note]
        assert len(notes) == len({outcome.run.variant for outcome in failed})
        for label in {outcome.run.variant for outcome in failed}:
            reasons = [outcome.reason for outcome in failed if outcome.run.variant == label]
            planned = sum(outcome.run.variant == label for outcome in inputs.outcomes)
            (note,) = (note for note in notes if f" of {label} failed: " in note)
            assert note.startswith(f"{len(reasons)} of {planned} runs of {label} failed: {reasons[0]}")
            assert note in text_of(reports.page_html(inputs)).partition("What to do next")[0]
    assert notes, "the second campaign has none"


def test_of_many_candidates_one_sentence_counts_every_verdict(story: JudgedCampaign) -> None:
    words = ("broken", "regression", "improvement", "equivalent", "equivalent", "inconclusive")
    verdicts = [
        dataclasses.replace(story.verdicts[0], candidate=f"1.{number}.0", verdict=word, effect=0.1)
        for number, word in enumerate(words)
    ]
    (sentence,) = answer(verdicts, story.settings)
    assert re.search(r"^Of 6 comparisons with .*: 1 broken: .*; 1 slower: .*; 1 faster: ", sentence)
    assert sentence.endswith("; 2 equivalent to within ±3 %, 1 inconclusive.")


def test_the_answer_stands_before_commands_chart_table_samples_and_everything_else(story: JudgedCampaign) -> None:
    page = reports.page_html(story).decode().partition("<body>")[2]
    marks = ("<h1>", 'class="next"', 'id="chart-forest"', 'id="verdict-table"', 'id="samples"', 'id="differs"')
    folded = ('id="runs"', 'id="provenance"', 'id="campaign"', 'id="notes"')
    places = [page.index(one) for one in (*marks, *folded)]
    assert places == sorted(places)
    assert page.index(story.plan.campaign) > page.index('id="samples"')
    for one in folded:
        assert re.search(rf"<section [^>]*{one}>\s*<details>", page), f"{one} is open"


def test_regressions_stand_first_and_all_else_in_the_order_of_the_plan(tmp_path: Path) -> None:
    inputs = reports.collect(reports.scaled(tmp_path / "c"))
    (chart, *_), page = campaign_page(inputs).charts(), text_of(reports.page_html(inputs))
    rows = chart.spec["data"]["values"]
    slower = [row["verdict"] == "regression" for row in rows]
    assert slower == sorted(slower, reverse=True)
    assert 0 < sum(slower) < len(slower)
    planned = cell_names([one.key for one in inputs.verdicts if one.verdict != "regression"])
    assert [row["name"] for row, is_slower in zip(rows, slower, strict=True) if not is_slower] == planned
    table = page.partition("What else to know")[2]
    assert table.index("regression") < min(
        table.index(word) for word in ("equivalent", "inconclusive") if word in table
    )


def test_what_to_do_next_names_commands_with_their_price(story: JudgedCampaign, troubled: JudgedCampaign) -> None:
    (cause,) = next_steps(story)
    assert cause.command == "gpubench diff 1.17.0 1.19.0 out/c"
    repair, more, *others = next_steps(troubled)
    assert repair.command == "gpubench bench --campaign 'out/a b'"
    assert more.command == "gpubench bench --campaign 'out/a b' --blocks +4"
    assert re.fullmatch(r"about \S+, would decide message 1 KiB \(1\.19\.0\)", more.why)
    assert others[0].command == "gpubench bench --campaign 'out/a b' --blocks +67"
    assert others[0].why.endswith("may decide message 1 KiB (1.19.0) and transpose-sum (1.19.0-proto1)")
    assert others[1].command == "gpubench diff 1.17.0 1.19.0 'out/a b'"


def test_where_nothing_is_missing_the_logs_of_failed_runs_come_first(troubled: JudgedCampaign) -> None:
    ended = tuple(
        outcome if outcome.status == "failed" else dataclasses.replace(outcome, status="ok")
        for outcome in troubled.outcomes
    )
    first, *_ = next_steps(dataclasses.replace(troubled, accounting=Accounting(ended)))
    assert (first.command, first.why) == ("gpubench logs 'out/a b'", "why 1 run failed")


def test_a_regression_between_releases_has_the_searches_as_its_last_steps(
    story: JudgedCampaign,
) -> None:
    merge = next(verdict for verdict in story.verdicts if verdict.key["workload"] == "merge")
    slower = dataclasses.replace(merge, verdict="regression", effect=0.2)
    site = story.plan.site.model_copy(update={"name": "local"})
    plan = story.plan.model_copy(update={"suite": "quick", "site": site})
    results = dataclasses.replace(story.results, plan=plan)
    *_, versions, settings = next_steps(dataclasses.replace(story, results=results, verdicts=[slower]))
    assert versions.command == "gpubench bisect out/c --over versions"
    assert versions.why == "from which version on merge is slower: about 38 runs of it alone, 3m28s"
    assert settings.command == "gpubench bisect out/c --over settings"
    assert settings.why == "whether a setting makes merge slower: about 35 runs of it alone, 3m11s, or more"
    assert not [step for step in next_steps(story) if "bisect" in step.command]  # message stands there in two sizes


def test_missing_runs_come_first_and_a_decided_campaign_needs_none(tmp_path: Path, story: JudgedCampaign) -> None:
    first, *_ = next_steps(dataclasses.replace(reports.collect(reports.empty(tmp_path / "c")), target="d"))
    assert first.command == "gpubench bench --campaign d"
    assert first.why.startswith("24 runs are missing: about ")
    outcomes = [dataclasses.replace(one, status="skipped", reason=f"{OVER_BUDGET}: 9 s") for one in story.outcomes]
    outcomes[0] = dataclasses.replace(outcomes[0], status="lost", record=None)
    outcomes[1] = dataclasses.replace(outcomes[1], reason="a node can't be used", record=None)
    first, *_ = next_steps(dataclasses.replace(story, accounting=Accounting(tuple(outcomes))))
    blocks = len({one.block.block for one in outcomes})
    price = format_seconds(blocks * story.plan.time.block_s)  # as planned: skipped runs don't say how long one takes
    late = f"{blocks} blocks were not begun, because the budget left no time"
    assert first.why == f"2 runs are missing; {late}: about {price}"
    only = [dataclasses.replace(one, status="ok") for one in outcomes[2:]]
    (first, *_) = next_steps(dataclasses.replace(story, accounting=Accounting((*outcomes[:2], *only))))
    assert first.why.startswith("2 runs are missing: about ")
    calm = [one for one in story.verdicts if one.verdict == "equivalent"]
    (step,) = next_steps(dataclasses.replace(story, verdicts=calm))
    assert (step.command, step.why) == ("", "Nothing has to be run: every comparison is decided.")
    changed = [dataclasses.replace(calm[0], verdict="inconclusive", reason="environment: hosts", more_blocks=None)]
    (step,) = next_steps(dataclasses.replace(story, verdicts=changed))
    assert (step.command, "More blocks would not decide" in step.why) == ("", True)


def test_blocks_that_a_budget_left_out_cost_what_those_that_ran_cost_and_come_before_further_ones(
    story: JudgedCampaign,
) -> None:
    """Seen: 9 of 12 blocks not begun, their skipped runs taken for blocks of 0.6 s, and further blocks proposed."""
    late = {outcome.block.block for outcome in story.outcomes if outcome.block.block > 3}
    outcomes = [
        dataclasses.replace(outcome, status="skipped", reason=f"{OVER_BUDGET}: 9 s") if outcome.block.block in late
        else outcome
        for outcome in story.outcomes
    ]  # fmt: skip
    undecided = [dataclasses.replace(verdict, verdict="inconclusive", more_blocks=2) for verdict in story.verdicts]
    cut = dataclasses.replace(story, accounting=Accounting(tuple(outcomes)), verdicts=undecided)
    first, *others = next_steps(cut)
    assert first.command == "gpubench bench --campaign out/c"
    spans: dict[int, list[dt.datetime]] = {}
    for outcome in story.outcomes:
        if outcome.block.block not in late and outcome.record:
            times = spans.setdefault(outcome.block.block, [])
            times += [dt.datetime.fromisoformat(at) for at in (outcome.record.started_at, outcome.record.ended_at)]
    block_s = statistics.median((max(times) - min(times)).total_seconds() for times in spans.values())
    price = format_seconds(len(late) * block_s)
    lost = dataclasses.replace(outcomes[0], status="lost", record=None)
    both, *_ = next_steps(dataclasses.replace(cut, accounting=Accounting((lost, *outcomes[1:]))))
    total_price = format_seconds((len(late) + 1) * block_s)
    reasons = f"1 run is missing; {len(late)} blocks were not begun, because the budget left no time"
    assert both == dataclasses.replace(first, why=f"{reasons}: about {total_price}")
    assert first.why == f"{len(late)} blocks were not begun, because the budget left no time: about {price}"
    assert not any("--blocks" in step.command for step in others)
    wanting = [dataclasses.replace(verdict, more_blocks=len(late) + 4) for verdict in undecided]
    again, more, *_ = next_steps(dataclasses.replace(cut, verdicts=wanting))
    assert (again, more.command) == (first, "gpubench bench --campaign out/c --blocks +4")
    assert more.why.startswith(f"about {format_seconds((len(late) + 4) * block_s)}, ")
    total = len({outcome.block.block for outcome in story.outcomes})
    assert f"{total - len(late)} of {total} blocks" in about(cut)


@pytest.mark.parametrize(
    ("bounds", "shown"),
    [
        ((0.39, 1.17), "[+39, +117]"),
        ((0.0004, 1.17), "[+0.04, +117]"),
        ((-0.002, 0.3), "[-0.2, +30]"),
        ((-4e-6, 0.3), "[-0.0004, +30]"),
        ((0.0, 0.3), "[+0, +30]"),
        ((-0.3, 12.0), "[-30, >+999]"),
    ],
)
def test_a_bound_of_an_interval_reads_0_only_where_it_is_0(bounds: tuple[float, float], shown: str) -> None:
    assert labels.between(*bounds) == shown


def test_every_chart_is_a_picture_with_a_name_and_without_an_id(story: JudgedCampaign) -> None:
    text = reports.page_html(story).decode()
    charts = list(campaign_page(story).charts())
    assert [chart.anchor.partition("-")[0] for chart in charts] == ["forest", *["samples"] * 5]
    for chart in charts:
        drawn = text.partition(f'id="chart-{chart.anchor}" role="img" aria-label="{chart.spec["description"]}">')[2]
        drawn = drawn.partition("</svg>")[0]
        assert drawn.startswith("<svg ")
        assert "var(--" in drawn
        # Of two pictures in a page, one would use what the other defines.
        assert " id=" not in drawn
        assert "url(" not in drawn


def test_the_only_scripts_sort_tables_and_open_sections(story: JudgedCampaign) -> None:
    text = reports.page_html(story).decode()
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in text
    assert text.count("<script") == 1
    assert len(text.partition("<script>")[2].partition("</script>")[0]) < 3000


def test_hashes_and_paths_are_cut_and_what_all_variants_share_says_so(story: JudgedCampaign) -> None:
    path = "/root/.cache/gpubench/venvs/0123456789abcdef/lib/python3.11/site-packages/libucx/lib/libucp.so.0"
    content = "0123456789abcdef0123456789abcdef"
    assert shortened([path, content]) == [("…/libucx/lib/libucp.so.0", path), ("0123456789ab…", content)]
    sides = [f"/home/venvs/{build}/lib/python3.11/site-packages/libucx/lib" for build in ("aa", "bb")]
    shown = [short for short, _ in shortened(sides)]
    assert shown == [f"…/{build}/lib/python3.11/site-packages/libucx/lib" for build in ("aa", "bb")]
    page = reports.page_html(story).decode()
    assert re.search(r'colspan="3"[^>]*><span class="quiet">all:</span> 2025.7.0<', page)


def test_the_second_line_says_what_each_side_has_of_a_package_that_is_compared(story: JudgedCampaign) -> None:
    first, second, *rest = story.plan.variants
    assert first.image
    manifests = {**story.manifests, first.image.manifest: {"stack": {"packages": {"dask": "2025.7.0", "click": "8"}}}}
    variants = [first, second.model_copy(update={"ucx": "1.19.0,dask==2025.5.1"}), *rest]
    results = dataclasses.replace(story.results, plan=story.plan.model_copy(update={"variants": variants}))
    line = compared(dataclasses.replace(story, results=results, manifests=manifests))
    assert line.startswith("1.17.0: UCX 1.17.0 dask==2025.7.0 · 1.19.0: UCX 1.19.0 dask==2025.5.1 · ")


def test_what_no_block_has_shown_is_not_called_the_same(tmp_path: Path, story: JudgedCampaign) -> None:
    never = reports.collect(reports.empty(tmp_path / "c"))
    texts = [text_of(reports.page_html(inputs)) for inputs in (story, never)]
    assert ["are the same, too" in text for text in texts] == [True, False]
    assert "nothing is known of their processes and nodes" in texts[1]


def test_a_step_of_a_search_gets_its_blocks_from_the_search_alone(tmp_path: Path) -> None:
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / SEARCH_FILE).write_text("{}")
    never = reports.collect(reports.empty(tmp_path / "search" / "step-00"))
    (step,) = next_steps(never)
    assert step.command == f"gpubench bisect {tmp_path / 'search'}"
    told = next_steps(reports.collect(reports.story(tmp_path / "search" / "step-01")))
    assert told[0].command == f"gpubench report {tmp_path / 'search'}"
    assert not [step for step in told if "--blocks" in step.command or "--over" in step.command]


def test_blocks_cost_what_they_cost_at_each_place(tmp_path: Path) -> None:
    """Seconds of a block on one, two and four nodes: as if each node took its time."""
    made = reports.collect(reports.scaled(tmp_path / "c"))
    outcomes = []
    for outcome in made.outcomes:
        start = dt.datetime.fromisoformat(made.plan.created_at) + outcome.run.order * dt.timedelta(seconds=10)
        end = start + dt.timedelta(seconds=40 * outcome.job.nodes - 20)
        record = dataclasses.replace(outcome.record, started_at=start.isoformat(), ended_at=end.isoformat())
        outcomes.append(dataclasses.replace(outcome, record=record))
    of_block = {nodes: 40 * nodes for nodes in (1, 2, 4)}  # three runs, the last of which begins after 20 s
    undecided = [dataclasses.replace(one, verdict="inconclusive", more_blocks=3) for one in made.verdicts]
    accounting = Accounting(tuple(outcomes))
    further, *_ = next_steps(dataclasses.replace(made, accounting=accounting, verdicts=undecided))
    assert further.why.startswith(f"about {format_seconds(3 * sum(of_block.values()))}, ")
    gone = [dataclasses.replace(one, status="lost", record=None) if one.job.nodes == 4 and one.block.block == 0 else one
            for one in outcomes]  # fmt: skip
    rest, *_ = next_steps(dataclasses.replace(made, accounting=Accounting(tuple(gone)), verdicts=undecided))
    assert rest.why == f"3 runs are missing: about {format_seconds(of_block[4])}"
