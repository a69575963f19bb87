"""What `status` says of jobs, and what is to be done about a campaign that isn't complete."""

import json
import re
import shlex
from pathlib import Path

import pytest

from gpubench.campaign.completeness import require_complete
from gpubench.campaign.lock import campaign_lock
from gpubench.campaign.status_lines import job_lines
from gpubench.errors import IncompleteError, UsageError
from gpubench.schedulers import JobState, submitted
from gpubench.store.accounting import account
from gpubench.store.campaign import SEARCH_FILE, Campaign
from tests.cli.test_makefile import TARGETS
from tests.conftest import ROOT, Run
from tests.store.campaign_builder import Writer, begin, finish, make_plan

LATE = "no time left in the budget: 0 s"


def resume_hint(campaign: Campaign, running: bool = False, **known: object) -> str:
    states = {campaign.jobs[0].job: JobState("running")} if running else {}
    with pytest.raises(IncompleteError) as caught:
        require_complete(campaign, account(campaign, **known), states)  # type: ignore[arg-type]
    return str(caught.value).partition("; ")[2].partition("; ")[2]


def test_runs_of_submitted_jobs_are_waited_for_and_others_are_run(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "a campaign", make_plan(blocks=1))
    (job,) = (job.job for job in campaign.jobs)
    repair = f"gpubench bench --campaign '{campaign.directory}'"
    watch = f"jobs still wait or run: gpubench status --watch '{campaign.directory}'"
    assert resume_hint(campaign, alive={job}) == f"to run what is missing: {repair}"
    assert resume_hint(campaign, alive={job}, running=True) == watch, "it runs on this machine"
    campaign.job_dir(job).mkdir(parents=True)
    submitted.write(campaign.job_dir(job), "slurm", "c-j001", "12")
    assert resume_hint(campaign, alive={job}) == watch
    assert resume_hint(campaign, ends={job: "NODE_FAIL"}) == f"to run what is missing: {repair}"
    Writer(campaign).write(*next(campaign.rows()), status="skipped", reason="no time left")
    assert resume_hint(campaign, alive={job}) == f"{watch}; when they have ended: {repair}"


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"status": "failed", "reason": "a worker ended"}, "every run failed; the first: a worker ended; see logs"),
        ({"status": "skipped", "reason": LATE}, f"no run was begun; the first: {LATE}"),
    ],
)
def test_the_first_run_that_failed_is_named_or_that_none_was_begun(
    tmp_path: Path, others: dict[str, str], message: str
) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=2))
    for row in campaign.rows():
        late = row[1].block == 0 and row[2].order == 0
        Writer(campaign).write(*row, **({"status": "skipped", "reason": LATE} if late else others))
    with pytest.raises(IncompleteError, match=message):
        require_complete(campaign, account(campaign))


def test_who_finds_a_campaign_locked_is_told_how_to_look_at_it(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "a campaign", make_plan(blocks=1))
    with campaign_lock(campaign.directory), pytest.raises(UsageError) as refused, campaign_lock(campaign.directory):
        pass
    assert refused.value.then == f"wait until it ends, or check it: gpubench status '{campaign.directory}'"


def test_a_step_of_a_search_goes_on_with_the_search(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "step-03", make_plan(blocks=1))
    (tmp_path / SEARCH_FILE).touch()
    assert resume_hint(campaign) == f"to run what is missing: gpubench bisect {tmp_path}"


@pytest.mark.parametrize("site", ["--site draco --set runtime=docker", "--site 'my sites/mine.toml'"])
def test_an_image_that_is_missing_is_built_by_the_command(gpubench: Run, tmp_path: Path, site: str) -> None:
    (tmp_path / "my sites").mkdir()
    (tmp_path / "my sites" / "mine.toml").write_text('inherits = "draco"\nname = "lab"\nruntime = "docker"\n')
    done = gpubench("images", "list", "9.9.9", *shlex.split(site), code=2)
    assert done.stderr.rstrip().endswith(f"; gpubench images build {site} --ucx 9.9.9")


def test_no_message_but_those_of_make_itself_tells_anybody_to_type_make() -> None:
    target = re.compile(rf"(?<![.\w])make ({'|'.join(TARGETS)}|install)\b")
    sources = (ROOT / "gpubench").rglob("*.py")
    assert [str(path) for path in sources if target.search(path.read_text())] == []


def test_a_command_that_reads_results_takes_the_newest_campaign_that_has_some_and_names_it(
    gpubench: Run, tmp_path: Path
) -> None:
    outputs = tmp_path / "outputs"
    for name, day in (("old", 1), ("new", 2), ("planned", 3)):
        plan = make_plan().model_copy(update={"created_at": f"2025-11-{day:02d}T00:00:00+00:00", "campaign": name})
        begin(outputs / name, plan)
        if name != "planned":
            finish(Campaign.open(outputs / name))
    said = "gpubench: campaign outputs/new, the newest with results\n"
    for command in (
        ["compare"],
        ["report", "--only", "scaling"],
        ["report"],
        ["diff", "1.17.0", "1.19.0"],
    ):
        assert said in gpubench(*command).stderr, command
    done = gpubench("compare", "--json")
    assert (json.loads(done.stdout)["campaign"], done.stderr) == ("new", said)
    assert gpubench("status").stderr.startswith("gpubench: campaign outputs/planned, the newest\n")
    assert said not in gpubench("compare", "outputs/old").stderr


def test_a_job_that_failed_is_told_so_also_when_every_record_of_its_runs_is_well(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=1))
    (job,) = (job.job for job in campaign.jobs)
    failed = {job: JobState("ended", "FAILED", "NonZeroExitCode", 1, "12", "n1")}
    said = f"job {job} (12): FAILED, exit code 1: NonZeroExitCode on n1"
    assert list(job_lines(campaign, failed, account(campaign))) == [said]
    finish(campaign)
    assert list(job_lines(campaign, failed, account(campaign))) == [f"{said}, although all of its runs have ended"]
    well = {job: JobState("ended", "COMPLETED", "", 0, "12", "n1")}
    assert list(job_lines(campaign, well, account(campaign))) == []
