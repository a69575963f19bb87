"""A campaign of thousands of runs: the page stays below 4 MB, and everything that went wrong is listed."""

import dataclasses

import pytest
import reports

from gpubench.report import condense, runs
from gpubench.report.sections import plain
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.store.accounting import Accounting, RunResult


def at_block(outcome: RunResult, shift: int) -> RunResult:
    """The same run once more, so many blocks later."""
    return dataclasses.replace(
        outcome,
        run=outcome.run.model_copy(update={"run": f"{outcome.run.run}x{shift}"}),
        block=outcome.block.model_copy(update={"block": outcome.block.block + shift}),
    )


def repeated(inputs: JudgedCampaign, times: int) -> JudgedCampaign:
    """The campaign with all of its blocks so many times over; only the first time holds what went wrong."""
    highest = 1 + max(one.block.block for one in inputs.outcomes)
    outcomes, cells = list(inputs.outcomes), list(inputs.results.runs)
    evidence = dict(inputs.evidence)
    whole = {
        block
        for block in {one.block.block for one in inputs.outcomes}
        if all(one.status == "ok" for one in cells if one.block == block)
        and all(one.block.replaces is None for one in outcomes if one.block.block == block)
    }
    for number in range(1, times):
        shift = number * highest
        outcomes += [at_block(one, shift) for one in inputs.outcomes if one.block.block in whole]
        evidence |= {f"{run}x{shift}": of_run for run, of_run in inputs.evidence.items()}
        cells += [
            dataclasses.replace(
                one,
                run=f"{one.run}x{shift}",
                block=(one.block or 0) + shift,
                started_at=(one.started_at or 0.0) + shift,
            )
            for one in inputs.results.runs
            if one.block in whole
        ]
    results = dataclasses.replace(inputs.results, runs=cells)
    return dataclasses.replace(inputs, accounting=Accounting(tuple(outcomes)), results=results, evidence=evidence)


@pytest.fixture(scope="module")
def large(troubled: JudgedCampaign) -> JudgedCampaign:
    found = repeated(troubled, 400)
    assert len(found.outcomes) > 2 * condense.MOST_RUNS
    return found


def test_the_page_of_thousands_of_runs_stays_below_four_megabytes_and_says_what_it_leaves_out(
    large: JudgedCampaign,
) -> None:
    page = reports.page_html(large).decode()
    assert len(page.encode()) < 4_000_000
    assert f"{len(large.outcomes):,} runs are too many to show each" in page


def test_every_run_that_went_wrong_is_listed_by_itself_among_thousands(
    troubled: JudgedCampaign, large: JudgedCampaign
) -> None:
    def wrong(inputs: JudgedCampaign) -> set[tuple[str, str, str]]:
        return {
            (heading, plain(row[0]), plain(cell))
            for heading, rows in runs.jobs(inputs)
            for row in rows
            for cell in row[1:]
            if "● ok" not in plain(cell) or "in part" in plain(cell)
        }

    assert wrong(troubled)
    assert wrong(large) == wrong(troubled)
    rows = [row for _, of_job in runs.jobs(large) for row in of_job]
    assert len(condense.shown_blocks(large)) <= len(rows) < condense.MOST_RUNS


def test_a_campaign_of_usual_size_lists_every_run(troubled: JudgedCampaign) -> None:
    assert condense.step(troubled) == 1
    assert b"too many to show" not in reports.page_html(troubled)
