import json
from pathlib import Path

from campaign_builder import Writer, begin, finish, make_block, make_plan, variant

from gpubench.model.plan import PlanAddition, PlannedJob
from gpubench.node.spec.plain import canonical
from gpubench.node.writer.run_dir import finish as write_record
from gpubench.results.merge.family import cells, family
from gpubench.results.merge.table import sample_table
from gpubench.stats.data import CellRun, ComparisonInput
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import judge
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_record


def table(campaign: Campaign, **options: object) -> list[CellRun]:
    outcomes = account(campaign, **options).outcomes  # type: ignore[arg-type]
    return cells(campaign.plan, outcomes, sample_table(outcomes))


def comparisons(campaign: Campaign, **options: object) -> list[ComparisonInput]:
    return family(campaign.plan, table(campaign, **options))


def test_one_entry_per_planned_comparison_even_without_data(tmp_path: Path) -> None:
    campaign = begin(
        tmp_path / "c", make_plan((variant("a", "1.22.0"), variant("b", "1.22.0"), variant("c", "1.23.0")))
    )
    found = comparisons(campaign)
    assert [(one.key["workload"], one.candidate) for one in found[:2]] == [("message", "b"), ("message", "c")]
    assert len(found) == 10
    assert all(one.planned_blocks == 8 and len(one.runs) == 16 for one in found)
    assert {run.status for one in found for run in one.runs} == {"lost"}


def test_a_whole_campaign(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c")
    finish(campaign, lambda label, _: 1.4 if label == "1.19.0" else 1.0)
    message = comparisons(campaign)[1]
    planned = campaign.plan.workloads[1]
    assert message.key == {
        "workload": "message",
        "backend": "dask",
        "params": canonical({"size": 10_000_000}).decode(),
        "params_id": planned.params_id,
        "nodes": 1,
        "workers_per_node": 2,
        "threads_per_worker": 1,
        "protocol": "ucx",
        "device": "cpu",
    }
    assert (message.baseline, message.candidate, message.planned_blocks) == ("1.17.0", "1.19.0", 8)
    assert all(run.status == "ok" and len(run.wall_s) == 30 and run.job == "n1-1" for run in message.runs)
    first = next(run for run in message.runs if (run.block, run.order) == (0, 0))
    lines = (campaign.runs_dir / f"{first.run}-1" / "samples.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["params_id"] == planned.params_id and not row["warmup"]]
    assert first.wall_s == tuple(row["wall_s"] for row in rows)
    assert first.started_at is not None
    assert abs(first.started_at - 1763647200) < 60


def rewrite(samples: Path, lines: list[str]) -> None:
    """As if the run had written these."""
    samples.write_text("".join(f"{line}\n" for line in lines))
    record = read_record(samples.parent)
    assert record is not None
    write_record(samples.parent, record)


def test_what_may_not_enter_a_verdict(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=5))
    writer, rows = Writer(campaign), list(campaign.rows())
    broken = campaign.plan.workloads[2].params_id
    writer.write(*rows[0], failed={broken: "out of memory"})
    writer.write(*rows[1], status="failed", reason="scheduler died")
    short = writer.write(*rows[2]) / "samples.jsonl"
    rewrite(short, short.read_text().splitlines()[:-1])
    wrong = writer.write(*rows[3]) / "samples.jsonl"
    lines = wrong.read_text().splitlines()
    lines[-1] = lines[-1].replace('"answer":"ok"', '"answer":"wrong"')
    rewrite(wrong, lines)
    unnamed = writer.write(*rows[4]) / "run.json"
    plain = json.loads(unnamed.read_text())
    unnamed.write_text(json.dumps(plain | {"workloads": plain["workloads"][:-1]}))
    by_run = {(cell.run, dict(cell.key)["workload"]): cell for cell in table(campaign)}

    def ending(row: int, workload: str) -> tuple[str, str]:
        cell = by_run[rows[row][2].run, workload]
        return cell.status, cell.reason

    assert ending(0, "merge") == ("failed", "out of memory")
    assert ending(0, "tasks") == ("ok", "")
    assert ending(1, "tasks") == ("failed", "scheduler died")
    assert ending(2, "tasks") == ("lost", "5 of 6 samples")
    assert ending(3, "tasks") == ("failed", "wrong answer")
    assert ending(4, "tasks") == ("lost", "the run's record doesn't name this workload")
    tasks = comparisons(campaign)[4]
    assert all((run.times == ()) == (run.status != "ok") for run in tasks.runs)


def test_pending_runs_are_neither_lost_nor_failed(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c")
    Writer(campaign).write(*next(campaign.rows()))
    found = comparisons(campaign, alive={"n1-1"})
    assert [[run.status for run in one.runs].count("pending") for one in found] == [15] * 5
    assert [verdict.blocks for verdict in judge(found, VerdictSettings())] == [0] * 5
    assert found[0].planned_blocks == 8


def test_appended_blocks_count_and_node_counts_do_not_mix(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=2, nodes=(1, 2)))
    only = [campaign.plan.workloads[1].params_id]
    job = PlannedJob(
        job="n1-2",
        nodes=1,
        workers_per_node=2,
        memory_limit=0,
        limit_s=60,
        blocks=[make_block(2, ["1.17.0", "1.19.0"], only)],
    )
    campaign = campaign.append(PlanAddition(created_at=campaign.plan.created_at, reason="more blocks", jobs=[job]))
    finish(campaign)
    found = {(one.key["nodes"], one.key["params_id"]): one for one in comparisons(campaign)}
    assert found[1, only[0]].planned_blocks == 3
    assert {run.job for run in found[1, only[0]].runs} == {"n1-1", "n1-2"}
    assert found[2, only[0]].planned_blocks == 2
    other = campaign.plan.workloads[0].params_id
    assert found[1, other].planned_blocks == 2


def test_only_the_last_attempt_counts(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=1))
    writer, row = Writer(campaign), next(campaign.rows())
    writer.write(*row)
    writer.write(*row, attempt=2)
    second = json.loads((campaign.runs_dir / f"{row[2].run}-2" / "samples.jsonl").read_text().splitlines()[1])
    cell = table(campaign)[0]
    assert (cell.status, cell.wall_s[0], len(cell.wall_s)) == ("ok", second["wall_s"], 30)
