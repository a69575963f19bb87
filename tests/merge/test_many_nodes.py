"""Records of runs on all 921 nodes that Summit's old campaigns had are merged; one odd node among them is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from campaign_builder import QUICK, Writer, begin, make_plan, provenance

from gpubench.model.plan import Plan, PlannedRun
from gpubench.node.writer.run_dir import write_provenance
from gpubench.results.merge.environment_changes import find_changes, planned_environment
from gpubench.results.merge.family import cells, family
from gpubench.results.merge.provenance import facts
from gpubench.results.merge.table import sample_table
from gpubench.store.accounting import account
from gpubench.store.rundirs import read_provenance

HOSTS = [f"n{number:04d}" for number in range(921)]
WORKERS = 6
ODD = "n0500"


def of_all_nodes(run: PlannedRun, plan: Plan, *, odd: bool) -> dict[str, Any]:
    found = provenance(run, plan)
    scheduler, worker, _, client = found["processes"]
    workers = [
        {**worker, "host": host, "rank": rank, "pid": 5000 + number}
        for rank, host in enumerate(HOSTS)
        for number in range(WORKERS)
    ]
    (node,) = found["nodes"]
    nodes = [
        {**node, "host": host, "rank": rank, "kernel": "6.2.0" if odd and host == ODD else "6.1.0"}
        for rank, host in enumerate(HOSTS)
    ]
    return {**found, "processes": [scheduler, *workers, client], "nodes": nodes}


def test_records_of_921_nodes_are_merged_and_an_odd_one_among_them_is_named(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=1, nodes=(len(HOSTS),), suite=QUICK[:1]))
    writer, plan = Writer(campaign), campaign.plan
    for job, block, run in campaign.rows():
        directory = writer.write(job, block, run, hosts=HOSTS)
        write_provenance(directory, of_all_nodes(run, plan, odd=run.variant == "1.19.0"))
    outcomes = account(campaign).outcomes
    assert {one.status for one in outcomes} == {"ok"}
    samples = sample_table(outcomes)
    assert samples["nodes"].unique().to_list() == [len(HOSTS)]
    found = {one.run.run: facts(read_provenance(one.directory)) for one in outcomes if one.directory}
    expected = planned_environment(plan, campaign.manifests())
    changes = find_changes(family(plan, cells(plan, outcomes, samples)), found, expected)
    (change,) = [one for one in changes.by_field() if not one.why]
    assert change.field == "kernel"
    assert ODD in change.after
    assert len(change.after) < 200
