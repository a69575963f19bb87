"""Real answers of each scheduler, walked through row by row: ids, refusals, states; sources in tests/data/answers."""

import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from gpubench.errors import SchedulerError
from gpubench.schedulers.batch import Accepted, BatchScheduler
from gpubench.schedulers.lsf import Lsf
from gpubench.schedulers.pbs import Pbs
from gpubench.schedulers.slurm import Slurm
from gpubench.schedulers.submitted import Submitted
from tests.answers import FOLDER

SCHEDULERS = {"lsf": Lsf, "pbs": Pbs, "slurm": Slurm}


def rows(kind: str) -> Iterator[Any]:
    for name, scheduler in SCHEDULERS.items():
        for row in tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))[kind]:
            yield pytest.param(scheduler(), row, id=f"{name}: {row['source']}")


@pytest.mark.parametrize(("scheduler", "row"), rows("submit"))
def test_an_answer_to_a_submit_is_an_id_a_refusal_or_is_not_understood(
    scheduler: BatchScheduler, row: dict[str, Any]
) -> None:
    """A refusal only if the job can't have been accepted."""
    done = subprocess.CompletedProcess(["x"], row.get("code", 0), row.get("stdout", ""), row.get("stderr", ""))
    if row["outcome"] == "unclear":
        with pytest.raises(SchedulerError, match="gave no clear answer"):
            scheduler._accepted(done)
    else:
        accepted = row["outcome"] == "accepted"
        assert scheduler._accepted(done) == (Accepted(row["id"], row["cluster"]) if accepted else None)


@pytest.mark.parametrize(("scheduler", "row"), rows("query"))
def test_an_answer_about_a_job_is_its_state_or_an_error(
    scheduler: BatchScheduler, row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(command: str, *_: str) -> subprocess.CompletedProcess[str]:
        said = row["answers"].get(command, {"code": 1})
        return subprocess.CompletedProcess(
            [command], said.get("code", 0), said.get("stdout", ""), said.get("stderr", "")
        )

    monkeypatch.setattr(scheduler, "ask", ask)
    job = Submitted(scheduler.NAME, "x", "7.pbs" if isinstance(scheduler, Pbs) else "7")
    if row["phase"] == "error":
        with pytest.raises(SchedulerError) as caught:
            scheduler.query(job)
        assert row["reason"] in str(caught.value)
        return
    state = scheduler.query(job)
    assert (state.phase, state.word) == (row["phase"], row["word"])
    assert row.get("reason", "") in state.reason
    assert state.exit_code == row.get("exit_code")


def test_every_answer_names_its_source() -> None:
    for path in FOLDER.rglob("*.toml"):
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
        tables = [table for kind in ("submit", "query") for table in plain.get(kind, [])]
        assert all(table["source"] for table in tables or [plain]), path
