"""``gpubench scaling``: how the workloads of a campaign scale over its node counts and workers."""

from __future__ import annotations

import json
from pathlib import Path

from gpubench.cli.results.judge import judge_campaign
from gpubench.cli.results.open_target import chosen_campaign
from gpubench.cli.say import say, say_text
from gpubench.errors import DataError
from gpubench.merge.curves import curves, scheduler_shares
from gpubench.report.scaling import scaling_json, scaling_lines


def show_scaling(directory: Path | None, outputs: Path | None, *, as_json: bool) -> None:
    """Print tables, or one JSON object.

    Raises:
        DataError: no run of the campaign is ok.
    """
    judged = judge_campaign(chosen_campaign(directory, outputs, with_results=True))
    plan = judged.campaign.plan
    found, shares = curves(plan, judged.cells), scheduler_shares(plan, judged.cells)
    if not any(one.logs for curve in found for one in curve.measured):
        raise DataError(
            f"{judged.campaign.directory} has no run that is ok", then="gpubench status says what became of them"
        )
    if as_json:
        say_text(json.dumps(scaling_json(plan.campaign, found, shares), indent=1))
        return
    for line in scaling_lines(found, shares):
        say(line)
    if len(plan.places) == 1:
        say('one size only: plan several, as --nodes "1 2 4" or --workers "1 2 4"')
