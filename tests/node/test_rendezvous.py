import json
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.rendezvous import RendezvousTimeoutError, path_for, publish, read, wait

FACTS = {"scheduler": "tcp://127.0.0.1:1", "server": ["127.0.0.1", 2]}
WHOLE = json.dumps({"schema": "gpubench/rendezvous/1", "token": "t", "facts": FACTS})


def far() -> float:
    return time.monotonic() + 60


def at_look(number: int, act: Callable[[], Any]) -> Callable[[], bool]:
    """The `stopped` of a wait that never stops, and does something at its n-th look."""
    looks = iter(range(1, 10_000))

    def stopped() -> bool:
        if next(looks) == number:
            act()
        return False

    return stopped


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return path_for(tmp_path, "abc", "t")


def test_what_was_published_is_read_whole_and_only_by_this_user(path: Path) -> None:
    publish(path, "t", FACTS)
    assert read(path, "t") == FACTS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_no_two_runs_or_starts_share_a_path(tmp_path: Path) -> None:
    paths = {path_for(tmp_path, run, token) for run in ("a", "b", "a-b") for token in ("s", "t")}
    assert len(paths) == 6
    assert all(path.name.startswith(".") for path in paths)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        *(WHOLE[:cut] for cut in range(1, len(WHOLE), 9)),
        WHOLE.replace('"token": "t"', '"token": "of an earlier start"'),
        "\0" * 100,
    ],
)
def test_absent_half_written_or_stale_is_not_yet(path: Path, text: str | None) -> None:
    if text is not None:
        path.write_text(text)
    assert read(path, "t") is None


def test_bytes_that_are_no_text_are_not_yet(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")
    assert read(path, "t") is None


@pytest.mark.parametrize("before", [None, WHOLE[:40], WHOLE.replace('"t"', '"stale"')])
def test_a_file_that_comes_late_is_found_whatever_was_there_before(path: Path, before: str | None) -> None:
    if before is not None:
        path.write_text(before)
    assert wait(path, "t", far(), at_look(3, lambda: publish(path, "t", FACTS))) == FACTS


def test_a_directory_that_comes_late_is_found_too(tmp_path: Path) -> None:
    path = path_for(tmp_path / "outputs" / "runs", "abc", "t")

    def rank_0_begins() -> None:
        path.parent.mkdir(parents=True)
        publish(path, "t", FACTS)

    assert wait(path, "t", far(), at_look(3, rank_0_begins)) == FACTS


def test_every_wait_has_a_deadline_and_names_the_path(path: Path) -> None:
    path.write_text(WHOLE[:40])
    with pytest.raises(
        RendezvousTimeoutError, match=r"rank 0 did not publish .*/\.rendezvous-abc-[0-9a-f]{16} in time"
    ):
        wait(path, "t", time.monotonic() + 0.05, lambda: False)


def test_a_wait_can_be_stopped(path: Path) -> None:
    with pytest.raises(RendezvousTimeoutError, match=r"stopped while waiting for rank 0"):
        wait(path, "t", far(), lambda: True)
