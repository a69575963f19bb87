"""Jobs that go to a queue: each has its part of the budget, and no more are handed over than the queue takes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gpubench.campaign import lifecycle, submission
from gpubench.campaign.budget import Budget
from gpubench.campaign.submission import submit_jobs
from gpubench.errors import SchedulerError
from gpubench.model.plan import Plan, numbers_of_blocks
from gpubench.schedulers.batch import BUDGET
from tests.store.campaign_builder import begin, make_plan


class Queue:
    """Remembers what it was handed."""

    ONE_AT_A_TIME = False

    def __init__(self) -> None:
        self.budgets: dict[str, str | None] = {}

    def submit(self, directory: Path, environ: Mapping[str, str], _after: Sequence[str]) -> str:
        self.budgets[directory.name] = environ.get(BUDGET)
        return str(len(self.budgets))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr(submission, "BATCH", {"local": queue})
    monkeypatch.setattr(submission, "require_sound_images", lambda _: None)
    return queue


def two_sizes() -> Plan:
    return make_plan(blocks=4, nodes=(1, 2))


ALL = numbers_of_blocks(two_sizes().jobs)


@pytest.mark.parametrize(
    ("blocks", "budget", "expected"),
    [
        (ALL, (Budget(600),), {"n1-1": "300", "n2-1": "300"}),
        ({"n2-1": [0, 2]}, (Budget(600),), {"n2-1": "150"}),
        (ALL, (), {"n1-1": None, "n2-1": None}),
    ],
)
def test_each_job_has_its_part_of_a_users_budget_by_its_blocks(
    queue: Queue, tmp_path: Path, blocks: dict[str, list[int]], budget: tuple[Budget, ...], expected: dict[str, str]
) -> None:
    assert submit_jobs(begin(tmp_path / "c", two_sizes()), blocks, *budget) == []
    assert queue.budgets == expected


def limited(most: int) -> Plan:
    """As site polaris: queue debug-scaling takes one job of a user, waiting or running (ALCF's guide, 7d04a3f9)."""
    made = two_sizes()
    batch = made.site.batch.model_copy(update={"queue": "debug-scaling", "jobs_per_user": most})
    return made.model_copy(update={"site": made.site.model_copy(update={"batch": batch})})


def test_no_more_jobs_are_submitted_than_the_queue_takes_and_the_resume_command_is_printed(
    queue: Queue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = begin(tmp_path / "a campaign", limited(1))
    assert submit_jobs(campaign, ALL) == ["n2-1"]
    assert list(queue.budgets) == ["n1-1"]
    progress, rest = capsys.readouterr().out.splitlines()[-2:]
    assert progress == f"to see the progress: gpubench status --watch '{tmp_path}/a campaign'"
    assert rest == (
        "1 job not submitted: queue debug-scaling takes 1 job of a user at a time; to submit what is missing, when "
        f"the submitted jobs have ended: gpubench submit --campaign '{tmp_path}/a campaign'"
    )
    assert submit_jobs(campaign, {"n2-1": [0]}) == []
    assert list(queue.budgets) == ["n1-1", "n2-1"]


def test_jobs_that_the_queue_takes_later_are_submitted_when_those_before_have_ended(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[list[str]] = []
    monkeypatch.setattr(lifecycle, "watch_jobs", lambda _campaign, _observe: watched.append([*queue.budgets]))
    lifecycle.run_blocks(begin(tmp_path / "c", limited(1)), ALL)
    assert watched == [["n1-1"], ["n1-1", "n2-1"]]


@pytest.mark.parametrize(("taken", "resume_hint"), [(0, "see"), (1, "see; to submit what is missing")])
def test_a_job_that_is_refused_after_others_says_how_to_go_on(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int, resume_hint: str
) -> None:
    """The words of PBS are from memory."""
    submit = queue.submit

    def limited_submit(directory: Path, environ: Mapping[str, str], after: Sequence[str] = ()) -> str:
        if len(queue.budgets) < taken:
            return submit(directory, environ, after)
        raise SchedulerError("qsub refuses job c-n1-1: qsub: would exceed queue generic's per-user limit", then="see")

    monkeypatch.setattr(queue, "submit", limited_submit)
    with pytest.raises(SchedulerError, match="per-user limit") as caught:
        submit_jobs(begin(tmp_path / "c", two_sizes()), ALL)
    assert caught.value.then.startswith(resume_hint)
    assert caught.value.then.endswith(f"gpubench submit --campaign {tmp_path}/c" if taken else "see")
