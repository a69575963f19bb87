import json
from pathlib import Path

import pytest
from campaign_builder import Writer, begin, finish, make_plan

from gpubench.campaign.status_lines import status_lines
from gpubench.model.plan import AppliedIssue
from gpubench.store.accounting import account, run_warnings
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records, read_provenance, run_directories


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Of one block, in which nothing has run."""
    return begin(tmp_path / "c", make_plan(blocks=1))


def statuses(campaign: Campaign, **options: object) -> list[tuple[str, str]]:
    return [(one.status, one.reason) for one in account(campaign, **options).outcomes]  # type: ignore[arg-type]


def test_every_run_ends_as_one_of_four_with_a_reason(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=3))
    writer, rows = Writer(campaign), list(campaign.rows())
    writer.write(*rows[0])
    writer.write(*rows[1], status="failed", reason="worker 1 was killed by signal 9")
    writer.write(*rows[2], status="skipped", reason="known issue ucx-1234")
    writer.write(*rows[3], record=False)
    accounting = account(campaign, ends={"n1-1": "time limit"})
    assert accounting.counts() == {"ok": 1, "failed": 1, "skipped": 1, "lost": 3}
    assert not accounting.complete
    assert all(one.reason for one in accounting.outcomes if one.status != "ok")
    assert "time limit" in accounting.outcomes[3].reason
    assert "started, but left no record" in accounting.outcomes[3].reason
    assert "before this run started" in accounting.outcomes[4].reason
    assert accounting.warnings == ()


def test_only_a_run_that_is_ok_has_no_reason(campaign: Campaign) -> None:
    writer, (first, second) = Writer(campaign), list(campaign.rows())
    writer.write(*first)
    writer.write(*second, status="failed", reason="")
    assert statuses(campaign) == [("ok", ""), ("failed", "no reason given")]


def test_while_the_job_lives_nothing_is_lost(campaign: Campaign) -> None:
    Writer(campaign).write(*next(campaign.rows()), record=False)
    assert statuses(campaign, alive={"n1-1"}) == [("pending", "running"), ("pending", "not started yet")]


WHY = "known issue bad: it crashes (https://example.org/1)"


def test_a_run_that_a_known_issue_leaves_out_is_skipped_also_where_its_job_never_came_to_write_that_down(
    tmp_path: Path,
) -> None:
    plan = make_plan(blocks=2)
    left_out = plan.variants[1].label
    issue = AppliedIssue(name="bad", action="skip", why=WHY, nodes=1, variant=left_out)
    campaign = begin(tmp_path / "c", plan.model_copy(update={"known_issues": [issue]}))
    assert account(campaign, alive=["n1-1"]).counts() == {"pending": 4}
    assert account(campaign).counts() == {"lost": 2, "skipped": 2}
    writer = Writer(campaign)
    for job, block, run in campaign.rows():
        if run.variant != left_out:
            writer.write(job, block, run)
        elif block.block == 1:
            writer.write(job, block, run, status="skipped", reason=WHY)
    accounting = account(campaign)
    assert accounting.counts() == {"ok": 2, "skipped": 2}
    assert {one.reason for one in accounting.outcomes if one.run.variant == left_out} == {WHY}
    assert accounting.warnings == ()


def test_the_last_attempt_counts(campaign: Campaign) -> None:
    writer, row = Writer(campaign), next(campaign.rows())
    writer.write(*row, attempt=9, record=False)
    writer.write(*row, attempt=10)
    outcome = account(campaign).outcomes[0]
    assert (outcome.status, outcome.attempt) == ("ok", 10)
    assert outcome.directory is not None
    assert outcome.directory.name.endswith("-10")


def test_a_skipped_run_that_is_run_later_breaks_no_rule(campaign: Campaign) -> None:
    writer, row = Writer(campaign), next(campaign.rows())
    writer.write(*row, status="skipped", reason="the job's time was nearly over")
    writer.write(*row, attempt=2)
    accounting = account(campaign)
    assert (accounting.outcomes[0].status, accounting.warnings) == ("ok", ())


def test_what_stands_there_against_the_rules_is_said(campaign: Campaign) -> None:
    writer, row = Writer(campaign), next(campaign.rows())
    writer.write(*row)
    writer.write(*row, attempt=2)
    (campaign.runs_dir / "feedc0ffee00-1").mkdir()
    stranger, repeated = account(campaign).warnings
    assert "feedc0ffee00-1 is in no plan" in stranger
    assert "had finished, but attempt 2 follows" in repeated
    assert [f"warning: {warning}" for warning in (stranger, repeated)] == list(
        status_lines(campaign, account(campaign))
    )[1:3]


def test_a_record_that_cannot_be_believed_is_a_lost_run(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=3))
    writer, rows = Writer(campaign), list(campaign.rows())
    torn = writer.write(*rows[0]) / "run.json"
    torn.write_text(torn.read_text()[:100])
    foreign = writer.write(*rows[1]) / "run.json"
    foreign.write_text(json.dumps(json.loads(foreign.read_text()) | {"run": "somebody-else"}))
    newer = writer.write(*rows[2]) / "run.json"
    newer.write_text(json.dumps(json.loads(newer.read_text()) | {"schema": "gpubench/run/9"}))
    unknown = writer.write(*rows[3]) / "run.json"
    unknown.write_text(json.dumps(json.loads(unknown.read_text()) | {"surprise": 1}))
    surrogate = writer.write(*rows[4], status="failed", reason="half of a pair: X") / "run.json"
    surrogate.write_text(surrogate.read_text().replace("pair: X", "pair: \\ud800"))
    words = ["cut off", "another run", "is not a gpubench/run/1", "no field surprise", "is cut off or not JSON"]
    for (status, reason), word in zip(statuses(campaign), words, strict=False):
        assert status == "lost"
        assert word in reason


def test_other_names_in_the_directory_of_runs_are_left_alone(campaign: Campaign) -> None:
    assert run_directories(campaign.runs_dir) == []
    for name in ("r-2", "r-10", "a-b-1", "r-0", "r-01", "r", "-1", "r-1.tmp"):
        (campaign.runs_dir / name).mkdir(parents=True)
    (campaign.runs_dir / "file-1").write_text("")
    found = [(one.run, one.attempt, one.path.name) for one in run_directories(campaign.runs_dir)]
    assert found == [("a-b", 1, "a-b-1"), ("r", 2, "r-2"), ("r", 10, "r-10")]


def test_a_record_is_read_once_and_one_that_comes_later_is_found(campaign: Campaign) -> None:
    row = next(campaign.rows())
    directory, records = Writer(campaign).write(*row, record=False), Records()
    assert records.read(directory) is None
    Writer(campaign).write(*row, attempt=2)
    for name in ("samples.jsonl", "run.json"):
        (campaign.runs_dir / f"{row[2].run}-2" / name).rename(directory / name)
    found = records.read(directory)
    assert found is not None
    (directory / "run.json").unlink()
    assert records.read(directory) is found


def test_provenance_is_read_where_it_is_there(campaign: Campaign) -> None:
    directory = Writer(campaign).write(*next(campaign.rows()))
    assert read_provenance(directory)["transport"] == {"lanes": ["tcp/lo"], "observed": ["tcp"]}
    for damage in ("{", "[]", "null"):
        (directory / "provenance.json").write_text(damage)
        assert read_provenance(directory) == {}
    (directory / "provenance.json").unlink()
    assert read_provenance(directory) == {}


def test_a_warning_of_several_runs_is_said_once_with_their_number(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=2))
    finish(campaign)
    outcomes = account(campaign).outcomes
    for one, warnings in zip(outcomes, (["slow worker: w1"], ["slow worker: w1", "other"], []), strict=False):
        assert one.record
        one.record.warnings[:] = warnings
    assert run_warnings(outcomes) == ["slow worker: w1 (2 runs)", "other (1 run)"]


def test_a_provenance_that_is_too_deep_for_the_fast_reader_is_read(tmp_path: Path) -> None:
    (tmp_path / "provenance.json").write_text('{"a": ' + "[" * 300 + "]" * 300 + "}")
    assert [*read_provenance(tmp_path)] == ["a"]
