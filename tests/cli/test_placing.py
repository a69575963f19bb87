"""Where a campaign lies must be seen by the nodes it is sent to."""

import dataclasses
import json
from pathlib import Path

import pytest

from gpubench.campaign.preflight import PATHS_FILE, place_campaign
from gpubench.errors import PlanRefusedError, UsageError
from gpubench.model.site import Paths
from gpubench.store.campaign import Campaign
from tests.plan.requests_by_hand import image, plan, site


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``/real/scratch`` under another name, and a home of the login node's own."""
    for name in ("real/scratch/me", "home/me", "real/scratch/images"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "scratch").symlink_to(tmp_path / "real" / "scratch")
    monkeypatch.setenv("SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.delenv("NOWHERE", raising=False)
    return tmp_path


def campaign(
    directory: Path, *, images: str = "", scheduler: str = "slurm", shared: list[str] | None = None
) -> Campaign:
    where = site(scheduler=scheduler, launcher={"slurm": "srun", "local": "fork"}[scheduler])
    where = where.model_copy(update={"paths": Paths(shared=["$SCRATCH"] if shared is None else shared)})
    built = {}
    for version in ("1.17.0", "1.19.0"):
        built[version] = image(version).model_copy(update={"python": f"{images}/bin/python"})
    directory.mkdir(parents=True)
    return Campaign.begin(directory, plan(site=where, images=built))


def test_links_and_variables_are_resolved_and_recorded(disk: Path) -> None:
    made = campaign(disk / "scratch" / "me" / "c", images=f"{disk}/real/scratch/images")
    place_campaign(made)
    said = json.loads((made.directory / PATHS_FILE).read_text())
    assert said["schema"] == "gpubench/paths/1"
    assert said["places"]["the campaign"] == {
        "written": str(disk / "scratch/me/c"),
        "real": str(disk / "real/scratch/me/c"),
    }
    assert said["places"]["the image of old"]["real"] == f"{disk}/real/scratch/images/bin/python"
    assert said["shared"] == [{"written": "$SCRATCH", "real": str(disk / "real/scratch")}]


@pytest.mark.parametrize(
    ("place", "images", "refused"),
    [
        ("home/me/c", "scratch/images", r"the campaign is .*/home/me/c, which lies below none of paths\.shared"),
        ("scratch/c", "home/me", r"the image of old is .*/home/me/bin/python"),
    ],
)
def test_what_only_this_machine_sees_is_refused_and_nothing_is_recorded(
    disk: Path, place: str, images: str, refused: str
) -> None:
    made = campaign(disk / place, images=f"{disk}/{images}")
    with pytest.raises(PlanRefusedError, match=refused):
        place_campaign(made)
    assert not (made.directory / PATHS_FILE).exists()


def test_the_python_of_a_venv_may_be_a_link_to_the_systems(disk: Path) -> None:
    (disk / "scratch/images/bin").mkdir()
    (disk / "scratch/images/bin/python").symlink_to("/usr/bin/python3")
    place_campaign(campaign(disk / "scratch" / "c", images=f"{disk}/scratch/images"))


@pytest.mark.parametrize(("scheduler", "shared"), [("local", ["/elsewhere"]), ("slurm", [])])
def test_without_a_queue_or_a_list_nothing_is_refused(disk: Path, scheduler: str, shared: list[str]) -> None:
    place_campaign(campaign(disk / "home" / "c", scheduler=scheduler, shared=shared))


@pytest.mark.parametrize(
    ("runtime", "name", "refused"),
    [
        ("pyxis", "a,b", True),
        ("pyxis", "10:30", True),
        ("enroot", "10:30", True),
        ("docker", "10:30", True),
        ("enroot", "a,b", False),
        ("venv", "10:30", False),
    ],
)
def test_a_directory_that_no_container_can_mount_is_refused(disk: Path, runtime: str, name: str, refused: bool) -> None:
    made = campaign(disk / "scratch" / name, images=f"{disk}/scratch/images")
    there = made.plan.model_copy(update={"site": made.plan.site.model_copy(update={"runtime": runtime})})
    moved = dataclasses.replace(made, plan=there)
    if refused:
        with pytest.raises(
            UsageError, match=rf"{runtime} can't mount .*/{name}: it separates the parts of a mount with [,:]"
        ):
            place_campaign(moved)
    else:
        place_campaign(moved)
