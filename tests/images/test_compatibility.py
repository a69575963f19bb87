"""Which stack carries which UCX, what the locks hold, what bindings set by themselves, and who can wait asleep."""

import re
import tomllib

import pytest

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.images.compatibility import Range, Stack, choose, event_environment, set_by_binding, stacks, with_waiting
from gpubench.images.wheels import releases, resolve, wheels
from gpubench.model.site import Site
from gpubench.node.spec.waiting import ASLEEP
from gpubench.resources import docker_file
from tests.plan.requests_by_hand import site

ROWS = {stack.name: stack for stack in stacks()}
OLD, NEW = ROWS["ucxx-0.45.1"], ROWS["ucxx-0.52.0"]
WHEELS = [stack for stack in stacks() if stack.packages == "wheels"]


def wanted(*specs: str):
    return [resolve(spec).release for spec in specs]


def test_the_first_row_that_runs_them_all_is_taken() -> None:
    assert choose(wanted("1.15.0", "1.22.0")) == OLD
    assert choose(wanted("1.19.0", "1.22.0")) == OLD
    assert choose(wanted("1.19.0", "1.22.0"), [NEW, OLD]) == NEW
    assert choose(wanted("1.17.0", "1.22.0"), [NEW, OLD]) == OLD


def test_a_version_that_no_stack_runs_is_refused_with_the_nearest_that_can() -> None:
    with pytest.raises(
        PlanRefusedError, match=r"no Python stack runs UCX 1\.14\.1 .*1\.15\.0 to 1\.22\.0.*; nearest: 1\.15\.0"
    ):
        choose(wanted("1.19.0", "1.14.1"))


def test_versions_that_only_different_stacks_run_are_refused_together() -> None:
    assert OLD.ucx
    narrow = OLD.model_copy(update={"ucx": OLD.ucx.model_copy(update={"max": "1.18.1"})})
    with pytest.raises(PlanRefusedError, match=r"runs UCX 1\.17\.0, 1\.22\.0 together"):
        choose(wanted("1.17.0", "1.22.0"), [narrow, NEW])


@pytest.mark.parametrize(
    "stack", [*WHEELS, *(row.on_gpus(True) for row in WHEELS if row.gpu_lock)], ids=lambda stack: stack.lock
)
def test_a_lock_holds_hashes_the_row_s_versions_and_no_libucx(stack: Stack) -> None:
    lock = stack.lock_file.read_text("utf-8")
    entries = re.findall(r"^([\w.-]+)==([^ ]+)(.*(?:\n .*)*)", lock, re.MULTILINE)
    packages = {name: version for name, version, _ in entries}
    assert all("--hash=sha256:" in rest for _, _, rest in entries)
    assert packages.get("distributed-ucxx-cu12", "") == stack.binding_version
    assert packages["dask"] == packages["distributed"] == stack.dask
    assert {"numpy", "pandas"} <= packages.keys()
    assert "libucx-cu12" not in packages


@pytest.mark.parametrize("stack", [row for row in WHEELS if row.ucx], ids=lambda stack: stack.name)
def test_with_gpus_a_stack_has_what_gpu_workers_load_and_else_the_same(stack: Stack) -> None:
    assert stack.on_gpus(False) == stack
    plain, more = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", row.lock_file.read_text("utf-8"), re.MULTILINE))
        for row in (stack, stack.on_gpus(True))
    )
    assert {"cupy-cuda12x", "cudf-cu12", "dask-cudf-cu12", "nvidia-cublas-cu12"} <= more.keys() - plain.keys()
    same = ("dask", "distributed", "dask-cuda", "rmm-cu12", "ucxx-cu12", "distributed-ucxx-cu12", "tpchgen-cli")
    assert [more[name] for name in same] == [plain[name] for name in same]
    assert "libucx-cu12" not in more


IMPORTED_BY_SETUP = {"0.29.00": {"cython", "setuptools", "tomli", "versioneer"}, "0.35.00": {"cython", "setuptools"}}
"""By ucx-py's tag, what its setup.py imports: a build without isolation (``pip --no-build-isolation``) fetches none."""


@pytest.mark.parametrize("name", [row.name for row in stacks() if row.packages == "conda"])
def test_the_pins_of_a_conda_row_are_its_versions_and_hold_no_ucx(name: str) -> None:
    row = ROWS[name]
    pins = tomllib.loads(row.lock_file.read_text("utf-8"))
    found = dict(pin.split("=") for pin in [*pins["packages"], *pins["cuda"]])
    assert found["dask"] == found["distributed"] == row.dask
    assert found["cudf"] == found["dask-cuda"] == found["rmm"] == row.rapids
    assert not {"ucx", "ucx-py", "ucx-proc"} & found.keys()
    assert found.keys() >= IMPORTED_BY_SETUP[row.binding_version]
    assert row.python.min == row.python.max
    assert set(row.architectures) == set(tomllib.loads(docker_file("locks/miniforge.toml").read_text())["sha256"])


def test_a_gpu_row_says_what_it_runs_on_and_every_row_why_it_is_believed() -> None:
    for row in stacks():
        assert row.source
        assert bool(row.rapids) == bool(row.cuda) == bool(row.compute_capability) == (row.binding != "none")


def test_what_was_tested_lies_inside_what_is_claimed_and_exists() -> None:
    for stack in (OLD, NEW):
        assert stack.ucx
        assert stack.ucx.tested
        assert set(stack.ucx.tested) <= set(releases())
        assert all(stack.runs(release) for release in stack.ucx.tested)


@pytest.mark.parametrize(
    ("release", "inside"),
    [("1.12", True), ("1.14", True), ("1.15", False), ("1.11", False), ("1.14.1", True), ("1.14.2", False)],
)
def test_a_branch_lies_inside_where_one_of_its_releases_does(release: str, inside: bool) -> None:
    assert Range(min="1.12.0", max="1.14.1").holds(release) == inside


def test_a_stack_without_wheels_or_without_a_binding_is_no_venv() -> None:
    with pytest.raises(PlanRefusedError) as refused:
        choose(wanted("1.14.1"))
    assert "ucx-py" not in str(refused.value)
    assert "dask-2023" not in str(refused.value)


def test_no_index_host_stands_in_any_file() -> None:
    for path in docker_file("").rglob("*.t*"):
        hosts = set(re.findall(r"://([^/]+)", path.read_text("utf-8")))
        assert hosts <= ({"github.com"} if path.name == "miniforge.toml" else set()), path


def test_every_wheel_is_hashed_for_both_architectures() -> None:
    for wheel in wheels():
        assert wheel.sha256.keys() == {"aarch64", "x86_64"}
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in wheel.sha256.values())


@pytest.mark.parametrize(
    ("ucx", "variables"),
    [
        ("1.17.0.post1", {"UCX_PROTO_ENABLE": "n"}),
        ("1.17.0", {"UCX_PROTO_ENABLE": "n"}),
        ("1.18.0", {}),
        ("1.19.0", {}),
        ("none", {}),
        ("master", {}),
    ],
)
def test_ucxx_0_45_1_turns_protocols_v2_off_before_ucx_1_18(ucx: str, variables: dict[str, str]) -> None:
    assert set_by_binding("ucxx-0.45.1", ucx) == variables


def waits(how: str, **changes: object) -> Site:
    layout = site().layout.model_copy(update={"waiting": how})
    return site(layout=layout, **changes)


def manifest(binding: str, version: str) -> dict[str, object]:
    return {"binding": {"name": binding, "version": version}}


def test_every_stack_that_can_wait_asleep_takes_the_same_variables_and_says_why_it_is_believed() -> None:
    rows = [row.event for row in stacks() if row.event]
    assert [row.env for row in rows] == [ASLEEP] * len(rows) != []
    assert event_environment() == ASLEEP
    assert all(row.source for row in rows)


@pytest.mark.parametrize("how", ["auto", "event"])
def test_the_environment_of_every_process_gets_them_only_where_asked_and_only_with_ucx(how: str) -> None:
    before = waits(how, env={"UCX_TLS": "tcp"})
    assert with_waiting(before, "ucx", {}) == waits("event", env={"UCX_TLS": "tcp", **ASLEEP})
    assert with_waiting(before, "tcp", {}).env == before.env
    assert with_waiting(site(), "ucx", {}) == site()


def test_a_profile_that_says_both_is_refused_and_one_that_leaves_it_open_is_not() -> None:
    env = {"UCXPY_PROGRESS_MODE": "polling"}
    said = "layout.waiting = event sets UCXPY_PROGRESS_MODE=thread, and env says polling"
    with pytest.raises(UsageError, match=said):
        with_waiting(waits("event", env=env), "ucx", {})
    assert with_waiting(waits("auto", env=env), "ucx", {}) == waits("default", env=env)


def test_a_binding_that_cannot_is_refused_by_name_or_left_to_poll() -> None:
    known = next(row for row in stacks() if row.event)
    images = {"1.17.0": manifest(known.binding, known.binding_version), "1.13.1": manifest("ucx-py", "0.35.00")}
    with pytest.raises(PlanRefusedError, match=r"processes of 1\.13\.1 would poll .* ucx-py 0\.35\.00 isn't known"):
        with_waiting(waits("event"), "ucx", images)
    assert with_waiting(waits("auto"), "ucx", images) == waits("default")
    assert with_waiting(waits("auto"), "ucx", {"1.17.0": images["1.17.0"]}).layout.waiting == "event"
    assert with_waiting(waits("event"), "tcp", images) == waits("event")
    assert with_waiting(site(), "ucx", images) == site()
