"""A command that is killed at any of its renames, syncs and links is repeated, and does then what it was to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import platformdirs
import pytest

from gpubench.store.rundirs import is_temporary
from tests.cli.archive import draco_archive
from tests.conftest import GPUBENCH, ROOT, Run, need, own_queue, plain_environment
from tests.kills.points import CALLS, CUT
from tests.point_counts import POINTS, Count

pytestmark = pytest.mark.system

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    need(bool(shutil.which("strace")), "strace (requirements/system.sh)")
    return Path(shutil.copytree(GOLDEN, tmp_path / "far" / "tiny"))


def killed(words: list[str], directory: Path, call: str, number: int, env: Mapping[str, str] | None = None) -> bool:
    """Run the command and kill it at that call; False where it makes no so many, and comes to its end."""
    log = directory / "strace.log"
    inject = ["-e", f"trace={CALLS[call]}", "-e", f"inject={CALLS[call]}:signal=KILL:when={number}"]
    subprocess.run(
        ["strace", "-qqq", "-o", log, *inject, "--", GPUBENCH, *words],
        cwd=directory,
        env=plain_environment({**own_queue(directory), **(env or {})}),
        capture_output=True,
        check=False,
    )
    return any(line.endswith(CUT) for line in log.read_text().splitlines())


def kills(words: list[str], directory: Path, call: str, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """Kill the command at its first such call, at its second, and so on; comes back after each."""
    number = 1
    while killed(words, directory, call, number, env):
        yield f"{call} {number}"
        number += 1


@pytest.mark.parametrize("call", ["rename", pytest.param("fsync", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("results import draco-csv {archive} --date 2025-11-07 --out made", ("import.json", "results.parquet")),
        ("compare --fail-on regression far/tiny", ("results.parquet", "verdicts.json")),
        ("report far/tiny", ("report.html", "report.md", "results.parquet", "verdicts.json")),
        ("results pack far/tiny --out made/tiny.gpubench.zip", ("tiny.gpubench.zip",)),
        ("fetch local far/tiny", ("plan.json",)),
    ],
    ids=["import", "compare", "report", "pack", "fetch"],
)
def test_a_command_that_was_killed_is_repeated(
    gpubench: Run,
    tmp_path: Path,
    campaign: Path,
    record_property: Count,
    *,
    command: str,
    made: tuple[str, ...],
    call: str,
) -> None:
    words = [word.format(archive=draco_archive()) for word in command.split()]
    places = {"fetch": tmp_path / "outputs" / "tiny", "compare": campaign, "report": campaign}
    place = places.get(words[0], tmp_path / "made")
    points = []
    for point in kills(words, tmp_path, call):
        points.append(point)
        done = gpubench(*words)
        assert done.returncode == 0, f"{point}: {done.stderr}"
        assert set(made) <= {path.name for path in place.iterdir()}, point
        left = [path for path in tmp_path.rglob(".*") if is_temporary(path.name) or path.name.startswith(".fetch")]
        assert not left, f"{point}: {left}"
        if words[1] != "pack":
            checked = gpubench("results", "fsck", place)
            assert checked.returncode == 0, f"{point}: {checked.stdout}"
        if place != campaign:
            shutil.rmtree(place)
    assert points or call == "fsync", "strace killed nothing"
    record_property(POINTS, len(points))


@pytest.mark.long
@pytest.mark.parametrize("call", ["rename", "fsync"])
def test_an_image_whose_builder_was_killed_is_whole_after_the_next_build(
    gpubench: Run, tmp_path: Path, record_property: Count, call: str
) -> None:
    need(bool(shutil.which("strace")), "strace (requirements/system.sh)")
    uv_cache = os.environ.get("UV_CACHE_DIR") or str(Path(platformdirs.user_cache_dir("uv", appauthor=False)))
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "UV_CACHE_DIR": uv_cache}
    words = ["images", "build", "1.22.0", "--runtime", "venv"]
    home = tmp_path / "cache" / "gpubench" / "venv"
    points = []
    for point in kills(words, tmp_path, call, env):
        points.append(point)
        built = gpubench(*words, env=env)
        assert built.returncode == 0, f"{point}: {built.stderr}"
        verified = gpubench("images", "verify", "1.22.0", "--runtime", "venv", env=env)
        assert verified.returncode == 0, f"{point}: {verified.stdout}{verified.stderr}"
        folders = sorted(path.name.partition("-")[0] for path in home.iterdir() if path.name != "logs")
        assert folders == [".lock", "ucx", "ucxx"], point
        shutil.rmtree(home)
    assert points, "strace killed nothing"
    record_property(POINTS, len(points))
