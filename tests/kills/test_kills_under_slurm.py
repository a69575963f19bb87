"""Kill a process, a daemon or a host of a real Slurm at any moment, then resume: every planned run is there once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.kills.campaign import UnderSlurm, Undisturbed, kill
from tests.kills.conftest import Note
from tests.kills.slurm_points import PROCESSES, SITE, slurm_points
from tests.kills.test_kill_campaign import SEED, kills_seed
from tests.slurm.cluster import SlurmCluster

pytestmark = [pytest.mark.system, pytest.mark.long]

KINDS = (*PROCESSES, *SITE)
EACH = 4


@pytest.fixture(scope="module")
def site() -> Iterator[UnderSlurm]:
    with SlurmCluster() as slurm, UnderSlurm(slurm) as under:
        yield under


@pytest.fixture(scope="module")
def undisturbed(site: UnderSlurm) -> Undisturbed:
    place = site.slurm.shared / "undisturbed"
    place.mkdir()
    return Undisturbed.run(place, site)


@pytest.fixture(scope="module")
def seed() -> int:
    return kills_seed()


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_campaign_under_slurm_that_is_struck_at_any_moment_nothing_is_lost(
    kind: str, seed: int, site: UnderSlurm, undisturbed: Undisturbed, note: Note
) -> None:
    points = slurm_points(site.slurm, seed, EACH * len(KINDS), undisturbed.seconds)
    for number, point in enumerate(itertools.islice(points, KINDS.index(kind), None, len(KINDS))):
        assert point.what == kind
        place = site.slurm.shared / f"{kind.replace(' ', '-')}-{number}"
        place.mkdir()
        seen = note(kill(point, place, undisturbed.rows, site=site))
        assert not seen.faults, f"{SEED}={seed} {seen}"
