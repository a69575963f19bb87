"""A command that is killed, or whose disk fails, at any of its calls is repeated, and does then what it was to do."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import platformdirs
import pytest

from gpubench.store.rundirs import is_temporary
from tests.cli.archive import draco_archive
from tests.cli.campaigns import until
from tests.conftest import GPUBENCH, ROOT, Run, need, own_queue, plain_environment
from tests.importing.nodes import REPOSITORY, Importer, image_files, item
from tests.importing.registry import Registry
from tests.kills.points import CALLS, CUT, ERRORS, INJECTED
from tests.point_counts import POINTS, Count

pytestmark = pytest.mark.system

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    need(bool(shutil.which("strace")), "strace (requirements/system.sh)")
    return Path(shutil.copytree(GOLDEN, tmp_path / "far" / "tiny"))


def struck(words: list[str], directory: Path, calls: str, injected: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Run the command under strace: the call that was injected, empty where it made no so many, and what it said."""
    log = directory / "strace.log"
    done = subprocess.run(
        ["strace", "-qqq", "-y", "-o", log, "-e", f"trace={calls}", "-e", f"inject={calls}:{injected}", "--", *words],
        cwd=directory,
        env=dict(env),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = log.read_text(errors="replace").splitlines()
    found = [line for line in lines if line.endswith((*CUT, INJECTED))]
    return found[0] if found else "", f"exit {done.returncode}\n{done.stderr}"


def killed(words: list[str], directory: Path, call: str, number: int, env: Mapping[str, str] | None = None) -> bool:
    """Run the command and kill it at that call; False where it makes no so many, and comes to its end."""
    named = plain_environment({**own_queue(directory), **(env or {})})
    return bool(struck([str(GPUBENCH), *words], directory, CALLS[call], f"signal=KILL:when={number}", named)[0])


def kills(words: list[str], directory: Path, call: str, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """Kill the command at its first such call, at its second, and so on; comes back after each."""
    number = 1
    while killed(words, directory, call, number, env):
        yield f"{call} {number}"
        number += 1


COMPARE = ("compare --fail-on regression far/tiny", ("results.parquet", "verdicts.json"))
each_command = pytest.mark.parametrize(
    ("command", "made"),
    [
        ("results import draco-csv {archive} --date 2025-11-07 --out made", ("import.json", "results.parquet")),
        ("report far/tiny", ("report.html", "report.md", "results.parquet", "verdicts.json")),
        pytest.param(*COMPARE, marks=pytest.mark.long),
    ],
    ids=["import", "report", "compare"],
)


@pytest.mark.parametrize("call", ["rename", pytest.param("fsync", marks=pytest.mark.long)])
@each_command
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
    words = words_of(command)
    points = []
    for point in kills(words, tmp_path, call):
        points.append(point)
        repeat(gpubench, words, made, tmp_path, campaign, point)
    assert points or call == "fsync", "strace killed nothing"
    record_property(POINTS, len(points))


@pytest.mark.long
@pytest.mark.parametrize("call", ["write", "rename", "fsync", "mkdir"])
@each_command
def test_a_command_whose_disk_fails_says_so_in_a_line_and_is_repeated(
    gpubench: Run,
    tmp_path: Path,
    campaign: Path,
    record_property: Count,
    *,
    command: str,
    made: tuple[str, ...],
    call: str,
) -> None:
    words = words_of(command)
    env = plain_environment(own_queue(tmp_path))
    points = 0
    for number in itertools.count(1):
        error = ERRORS[number % len(ERRORS)]
        failed, said = struck([str(GPUBENCH), *words], tmp_path, CALLS[call], f"error={error}:when={number}", env)
        if not failed:
            break
        if "<anon_inode:" in failed:  # wakes a thread: no disk is behind it
            continue
        points += 1
        point = f"{call} {number}: {error}"
        assert not {"exit 1", "Traceback (most recent call last):"} & set(said.splitlines()), f"{point}: {said}"
        repeat(gpubench, words, made, tmp_path, campaign, point)
    assert points or call in ("fsync", "mkdir"), "strace injected nothing"
    record_property(POINTS, points)


def words_of(command: str) -> list[str]:
    return [word.format(archive=draco_archive()) for word in command.split()]


def repeat(  # noqa: PLR0917 - what both tests have
    gpubench: Run, words: list[str], made: tuple[str, ...], directory: Path, campaign: Path, point: str
) -> None:
    """Run the command again; everything is there, nothing is left, and nothing is torn."""
    places = {"compare": campaign, "report": campaign}
    place = places.get(words[0], directory / "made")
    done = gpubench(*words)
    assert done.returncode == 0, f"{point}: {done.stderr}"
    assert set(made) <= {path.name for path in place.iterdir()}, point
    left = [path for path in directory.rglob(".*") if is_temporary(path.name)]
    assert not left, f"{point}: {left}"
    checked = gpubench("results", "fsck", place)
    assert checked.returncode == 0, f"{point}: {checked.stdout}"
    if place != campaign:
        shutil.rmtree(place)


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
        measured = gpubench("measure", "message", "--ucx", "1.22.0", "--runtime", "venv", env=env)
        assert measured.returncode == 0, f"{point}: {measured.stdout}{measured.stderr}"
        folders = sorted(path.name.partition("-")[0] for path in home.iterdir() if path.name != "logs")
        assert folders == [".lock", "ucx", "ucxx"], point
        shutil.rmtree(home)
    assert points, "strace killed nothing"
    record_property(POINTS, len(points))


@pytest.mark.long
def test_an_image_whose_import_was_killed_between_any_two_of_its_commands_is_whole_after_the_next(
    tmp_path: Path, record_property: Count
) -> None:
    need(bool(shutil.which("strace")), "strace (requirements/system.sh)")
    need(bool(shutil.which("mksquashfs")), "squashfs-tools")
    points, seen = 0, set()
    with Registry() as registry:
        digest = registry.push(REPOSITORY, "killed", image_files())
        importer = Importer(tmp_path / "node", tmp_path / "squash files")
        image = item(registry.host, digest)
        script = ["bash", str(importer.write([image]))]
        while struck(script, tmp_path, "wait4", f"signal=KILL:when={points + 1}", importer.env)[0]:
            points += 1
            code, said = importer.run(image)
            assert code == 0, f"command {points}: {said}"
            importer.check(digest)
            left = importer.left_over()
            assert all(name.endswith((".beat", ".lease", ".part")) for name in left), f"command {points}: {left}"
            kinds = {Path(name).suffix for name in left}
            if kinds - seen:  # a later import removes them, when they have been silent for a while
                until(lambda: bool(importer.run(image)[0]) or importer.left_over() == [], "the end of the marks")
                seen |= kinds
            shutil.rmtree(importer.folder)
            shutil.rmtree(importer.cache, ignore_errors=True)
    assert points, "strace killed nothing"
    assert seen, "no kill left a mark of its own"
    record_property(POINTS, points)
