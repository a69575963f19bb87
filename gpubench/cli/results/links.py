"""``gpubench links``: how fast the workers of a campaign reached each other, and which link or node lagged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from gpubench.cli.campaign.running import account_now
from gpubench.cli.results.open_target import chosen_campaign
from gpubench.cli.say import say, say_text
from gpubench.errors import DataError
from gpubench.merge.links import LinkTable, RunLinks, link_tables, processes_by_address
from gpubench.report.links import link_lines, links_json
from gpubench.store.accounting import RunOutcome
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_links, read_provenance


def show_links(directory: Path | None, outputs: Path | None, workload: str | None, *, as_json: bool) -> None:
    """Print tables, or one JSON object.

    Raises:
        DataError: no run that is ok recorded a link, or none of this workload.
    """
    campaign = chosen_campaign(directory, outputs, with_results=True)
    tables = tables_of(campaign, account_now(campaign).outcomes)
    tables = [table for table in tables if workload in (None, table.workload.name)]
    if not tables:
        whose = f" of {workload}" if workload else ""
        raise DataError(
            f"{campaign.place}: no run that is ok recorded a link{whose} between workers that it names",
            then="a workload that moves something between workers: suite fabric, merge, transpose-sum",
        )
    if as_json:
        say_text(json.dumps(links_json(campaign.plan.campaign, tables), indent=1))
        return
    for line in link_lines(tables):
        say(line)


def tables_of(campaign: Campaign, outcomes: Iterable[RunOutcome]) -> list[LinkTable]:
    """All links of those of the campaign's runs that are ok."""
    runs = [
        RunLinks(one, rows, processes_by_address(read_provenance(one.directory)))
        for one in outcomes
        if one.directory and one.status == "ok" and (rows := read_links(one.directory))
    ]
    return link_tables(campaign.plan, runs)
