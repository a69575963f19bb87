"""A budget in a queue: each job has its part of it, and begins no block that would end beyond that part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gpubench.cli.campaign import preflight, running
from gpubench.cli.campaign.running import Budget, submit_jobs
from gpubench.model.plan import Plan
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
    monkeypatch.setattr(running, "BATCH", {"local": queue})
    monkeypatch.setattr(preflight, "require_sound_images", lambda _: None)
    return queue


def two_sizes() -> Plan:
    return make_plan(blocks=4, nodes=(1, 2))


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (None, {"n1-1": "300", "n2-1": "300"}),
        ({"n2-1": [0, 2]}, {"n2-1": "150"}),
    ],
)
def test_each_job_has_its_part_by_its_blocks(
    queue: Queue, tmp_path: Path, blocks: dict[str, list[int]] | None, expected: dict[str, str]
) -> None:
    assert submit_jobs(begin(tmp_path / "c", two_sizes()), blocks, Budget(600))
    assert queue.budgets == expected


def test_without_a_budget_of_the_user_s_a_job_has_its_time_limit_alone(queue: Queue, tmp_path: Path) -> None:
    assert submit_jobs(begin(tmp_path / "c", two_sizes()), None)
    assert queue.budgets == {"n1-1": None, "n2-1": None}
