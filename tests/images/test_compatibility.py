"""Which stack carries which UCX, and what the locks hold."""

import re

import pytest

from gpubench.errors import PlanRefusedError
from gpubench.images.compatibility import Stack, choose, stacks
from gpubench.images.specs import releases, resolve, wheels
from gpubench.resources import docker_file


def wanted(*specs: str):
    return [resolve(spec) for spec in specs]


def test_the_first_row_that_runs_them_all_is_taken() -> None:
    old, new = stacks()
    assert choose(wanted("1.15.0", "1.22.0")) == old
    assert choose(wanted("1.19.0", "1.22.0")) == old
    assert choose(wanted("1.19.0", "1.22.0"), [new, old]) == new
    assert choose(wanted("1.17.0", "1.22.0"), [new, old]) == old


def test_a_version_that_no_stack_runs_is_refused_with_the_nearest_that_can() -> None:
    with pytest.raises(
        PlanRefusedError, match=r"no Python stack runs UCX 1\.14\.1 .*1\.15\.0 to 1\.22\.0.*; nearest: 1\.15\.0"
    ):
        choose(wanted("1.19.0", "1.14.1"))


def test_versions_that_only_different_stacks_run_are_refused_together() -> None:
    old, new = stacks()
    narrow = old.model_copy(update={"ucx": old.ucx.model_copy(update={"max": "1.18.1"})})
    with pytest.raises(PlanRefusedError, match=r"runs UCX 1\.17\.0, 1\.22\.0 together"):
        choose(wanted("1.17.0", "1.22.0"), [narrow, new])


@pytest.mark.parametrize("stack", stacks(), ids=lambda stack: stack.name)
def test_a_lock_holds_hashes_the_row_s_versions_and_no_libucx(stack: Stack) -> None:
    lock = stack.lock_file.read_text("utf-8")
    entries = re.findall(r"^([\w.-]+)==([^ ]+)(.*(?:\n .*)*)", lock, re.MULTILINE)
    packages = {name: version for name, version, _ in entries}
    assert all("--hash=sha256:" in rest for _, _, rest in entries)
    assert packages["distributed-ucxx-cu12"] == stack.binding_version
    assert packages["dask"] == packages["distributed"] == stack.dask
    assert {"numpy", "pandas", "pyarrow"} <= packages.keys()
    assert "libucx-cu12" not in packages


def test_what_was_tested_lies_inside_what_is_claimed_and_exists() -> None:
    for stack in stacks():
        assert stack.ucx.tested
        assert set(stack.ucx.tested) <= set(releases())
        assert all(stack.ucx.holds(release) for release in stack.ucx.tested)


def test_no_index_host_stands_in_any_file() -> None:
    for path in docker_file("").rglob("*.t*"):
        assert "://" not in path.read_text("utf-8"), path


def test_every_wheel_is_hashed_for_both_architectures() -> None:
    for wheel in wheels():
        assert wheel.sha256.keys() == {"aarch64", "x86_64"}
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in wheel.sha256.values())
