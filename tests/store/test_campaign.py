import dataclasses
import datetime as dt
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from campaign_builder import START, Writer, begin, make_block, make_plan, variant

from gpubench.errors import DataError, PlanRefusedError, UsageError
from gpubench.model.plan import PlanAddition, PlannedJob
from gpubench.node.spec.plain import content_id
from gpubench.store.campaign import Campaign, create_campaign, newest_campaign


def addition(number: int, block: int) -> PlanAddition:
    plan = make_plan()
    ids = [one.params_id for one in plan.workloads]
    job = PlannedJob(
        job=f"n1-{number + 1}",
        nodes=1,
        workers_per_node=2,
        memory_limit=0,
        limit_s=60.0,
        blocks=[make_block(block, ["1.17.0", "1.19.0"], ids, replaces=3)],
    )
    return PlanAddition(created_at=START.isoformat(), reason="block 3 was broken", jobs=[job])


def test_plan_and_additions_read_back_in_order(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c")
    campaign.append(addition(1, 8)).append(addition(2, 9))
    again = Campaign.open(tmp_path / "c")
    assert again.plan == campaign.plan
    assert [job.job for job in again.jobs] == ["n1-1", "n1-2", "n1-3"]
    assert [block.block for job in again.jobs for block in job.blocks] == list(range(10))
    assert len(list(again.rows())) == 20
    assert (tmp_path / "c" / "plan.d" / "002.json").is_file()


def test_a_plan_is_never_rewritten(tmp_path: Path) -> None:
    begin(tmp_path / "c")
    with pytest.raises(UsageError, match="already holds a campaign; name another directory"):
        Campaign.begin(tmp_path / "c", make_plan(blocks=1))
    assert len(Campaign.open(tmp_path / "c").plan.jobs[0].blocks) == 8


def test_of_two_resumes_at_once_one_wins(tmp_path: Path) -> None:
    begin(tmp_path / "c")
    opened = [Campaign.open(tmp_path / "c") for _ in range(6)]

    def resume(campaign: Campaign) -> str:
        try:
            campaign.append(addition(1, 8))
        except PlanRefusedError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(6) as pool:
        said = sorted(pool.map(resume, opened))
    assert said[0] == ""
    assert all("another gpubench" in words for words in said[1:])
    assert len(Campaign.open(tmp_path / "c").additions) == 1


def test_a_run_that_is_planned_twice_is_neither_written_nor_read(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c")
    with pytest.raises(DataError, match="planned twice"):
        campaign.append(addition(1, 0))
    assert not (tmp_path / "c" / "plan.d").exists()
    additions = campaign.append(addition(1, 8)).directory / "plan.d"
    shutil.copy(additions / "001.json", additions / "002.json")
    with pytest.raises(DataError, match=r"run \w+ \(block 8\) is planned twice"):
        Campaign.open(tmp_path / "c")


def test_damage_is_named(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c").append(addition(1, 8)).append(addition(2, 9))
    (campaign.directory / "plan.d" / "001.json").unlink()
    with pytest.raises(DataError, match=r"001\.json is missing"):
        Campaign.open(campaign.directory)
    shutil.rmtree(campaign.directory / "plan.d")
    (campaign.directory / "plan.json").write_text('{"schema": "gpub')
    with pytest.raises(DataError, match=r"plan\.json is cut off"):
        Campaign.open(campaign.directory)
    with pytest.raises(UsageError, match=r"is no campaign: it has no plan\.json$"):
        Campaign.open(tmp_path)
    with pytest.raises(UsageError, match="no campaign"):
        newest_campaign(tmp_path / "outputs")


def test_two_campaigns_in_the_same_second_of_utc_get_two_names(tmp_path: Path) -> None:
    there = START.astimezone(dt.timezone(dt.timedelta(hours=9)))
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: create_campaign(tmp_path / "outputs", "local", "quick", there), range(8)))
    assert len({path.name for path in made}) == 8
    assert sorted(path.name for path in made)[0] == "local-quick-20251120T140000Z"


def test_outputs_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        create_campaign(tmp_path / "outputs", "local", "quick", START)


def test_newest_goes_by_the_plan_not_by_name_or_disk(tmp_path: Path) -> None:
    for name, day in (("zzz", 1), ("aaa", 9), ("mmm", 5)):
        plan = make_plan().model_copy(update={"created_at": f"2025-11-{day:02d}T00:00:00+00:00"})
        Campaign.begin(tmp_path / name, plan)
    (tmp_path / "empty-and-newer").mkdir()
    shutil.copytree(tmp_path / "zzz", tmp_path / "copied-today")
    assert newest_campaign(tmp_path).name == "aaa"


def test_the_newest_with_results_has_a_run_that_ended(tmp_path: Path) -> None:
    for day in (1, 5, 9):
        plan = make_plan(blocks=1).model_copy(update={"created_at": f"2025-11-{day:02d}T00:00:00+00:00"})
        campaign = Campaign.begin(tmp_path / f"day{day}", plan)
        Writer(campaign).write(*next(campaign.rows()), record=day != 9)
    assert newest_campaign(tmp_path, with_results=True).name == "day5"
    assert newest_campaign(tmp_path).name == "day9"
    alone = make_plan((variant("1.17.0"),), blocks=1).model_copy(update={"created_at": "2025-11-07T00:00:00+00:00"})
    measured = Campaign.begin(tmp_path / "measured", alone)
    Writer(measured).write(*next(measured.rows()))
    assert newest_campaign(tmp_path, with_results=True).name == "day5"
    for record in tmp_path.glob("*/runs/*/run.json"):
        record.unlink()
    with pytest.raises(UsageError, match=r"no campaign in .* has results yet; see gpubench status .*day9"):
        newest_campaign(tmp_path, with_results=True)


def test_a_manifest_is_written_once(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c")
    name = content_id({"b": "ü", "a": 1})
    campaign.write_manifest(name, {"b": "ü", "a": 1})
    campaign.write_manifest(name, {"another": 1})
    assert campaign.manifest_path(name).read_text() == '{\n "a": 1,\n "b": "ü"\n}\n'
    assert campaign.manifests()[name] == {"a": 1, "b": "ü"}


@pytest.mark.parametrize("text", ['{"a": 2}', '{"a": "\\ud800"}', "[]", '{"a": 1', "[" * 100_000])
def test_a_manifest_that_is_not_what_its_name_says_is_not_read(tmp_path: Path, text: str) -> None:
    campaign = begin(tmp_path / "c")
    name = content_id({"a": 1})
    campaign.write_manifest(name, {"a": 1})
    campaign.manifest_path(name).write_text(text)
    with pytest.raises(DataError, match=rf"manifests/{name}\.json (is cut off|isn't what)"):
        campaign.manifests()


def test_a_manifest_of_a_planned_image_that_is_gone_is_named(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c")
    image = campaign.plan.variants[0].image
    assert image
    planned = campaign.plan.variants[0].model_copy(update={"image": image.model_copy(update={"manifest": "ab" * 6})})
    plan = campaign.plan.model_copy(update={"variants": [planned, *campaign.plan.variants[1:]]})
    with pytest.raises(DataError, match=r"manifests/abababababab\.json is gone"):
        dataclasses.replace(campaign, plan=plan).manifests()


def test_a_damaged_newest_campaign_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    begin(tmp_path / "old")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "plan.json").write_text(json.dumps({"schema": "gpubench/plan/1"}))
    assert newest_campaign(tmp_path).name == "new"
