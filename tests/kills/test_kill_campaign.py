"""Kill anything at any moment, then resume: every planned run is there once, and nothing is left."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.conftest import need
from tests.kills.campaign import Rows, Undisturbed, all_calls, full, kill
from tests.kills.conftest import Note
from tests.kills.points import CONDUCTOR, Moment, moments

pytestmark = [pytest.mark.system, pytest.mark.long]

SEED = "KILLS_SEED"
"""Variable that repeats the moments of another time; every failure prints it."""
MANY = 24


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed.run(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture(scope="module")
def expected(undisturbed: Undisturbed) -> Rows:
    return undisturbed.rows


def kills_seed() -> int:
    """The seed that the variable names, else a new one."""
    return int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))


@pytest.fixture(scope="module")
def seed() -> int:
    return kills_seed()


def test_of_an_interleaved_campaign_whose_conductor_is_killed_nothing_is_lost(
    expected: Rows, tmp_path: Path, note: Note
) -> None:
    seen = note(kill(Moment(CONDUCTOR, 1, 1.5), tmp_path, expected, interleaved=True))
    assert seen.struck, seen
    assert not seen.faults, seen


def test_of_many_campaigns_killed_at_any_moment_nothing_is_lost(
    seed: int, undisturbed: Undisturbed, tmp_path: Path, note: Note
) -> None:
    wrong, struck = [], 0
    for number, point in enumerate(moments(seed, MANY, undisturbed.seconds)):
        (tmp_path / str(number)).mkdir()
        seen = note(kill(point, tmp_path / str(number), undisturbed.rows))
        wrong += [str(seen)] if seen.faults else []
        struck += bool(seen.struck)
        shutil.rmtree(tmp_path / str(number))
    assert struck >= MANY / 3, f"{SEED}={seed}: most processes had ended before"
    assert not wrong, f"{SEED}={seed}\n" + "\n".join(wrong)


@pytest.mark.parametrize("call", ["rename", "fsync", "link"])
@pytest.mark.parametrize("role", ["front end", "job.sh"])
def test_of_a_campaign_that_is_killed_at_every_call_nothing_is_lost(
    role: str, call: str, expected: Rows, tmp_path: Path, note: Note
) -> None:
    need(bool(shutil.which("strace")), "strace (requirements/system.sh)")
    wrong = []
    for seen in map(note, all_calls(role, call, tmp_path, expected)):
        wrong += [str(seen)] if seen.faults else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("call", ["rename", "fsync", "link", "mkdir"])
@pytest.mark.parametrize("role", ["front end", "job.sh"])
def test_of_a_campaign_whose_disk_fails_at_any_call_nothing_is_lost(
    role: str, call: str, expected: Rows, tmp_path: Path, note: Note
) -> None:
    struck = 0
    for seen in map(note, all_calls(role, call, tmp_path, expected, error="any")):
        struck += bool(seen.struck)
        assert not seen.faults, seen
    assert struck or (role, call) == ("job.sh", "link")


@pytest.mark.parametrize(("role", "kib"), [("outputs", 1600), ("scratch", 48)])
def test_of_a_campaign_whose_file_system_is_full_nothing_is_lost(
    role: str, kib: int, expected: Rows, tmp_path: Path, note: Note
) -> None:
    need(os.geteuid() == 0, "root, to mount a tmpfs")
    seen = list(map(note, full(role, 8, kib, tmp_path, expected)))
    assert [one for one in seen if one.struck]
    assert not [one for one in seen if one.faults]
