"""Shared by all tests: the command line as users call it, and what must be there under CI."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from gpubench.cli.say import show_log
from tests import in_process

pytest_plugins = ["tests.second_try", "tests.bytecode", "tests.point_counts", "tests.time_by_file"]
pytest_plugins += ["tests.real_parts", "pytester"]

THOROUGH = int(os.environ.get("PYTEST_THOROUGH", "1"))
"""How many times as many examples property tests try that don't fix their own number; ``make test-long`` sets it."""

# No timed asserts, hypothesis' own included: a loaded machine is not a wrong result.
hypothesis.settings.register_profile(
    "gpubench",
    max_examples=100 * THOROUGH,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("gpubench")

# A library that is called directly says what the command line would show, whichever tests ran before in this process.
show_log()

# No test cuts the power, and what was written is read by other processes at once, on its disk or not: waiting for the
# disk, a thousand times in a search, would only take time. Commands in processes of their own (tests/kills) do wait.
os.fsync = lambda _descriptor: None

# Under nohup a SIGHUP is ignored, and so it would be by every script of a test: what comes in ignored can't be trapped.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parent.parent
GPUBENCH = Path(sys.executable).with_name("gpubench")

READ_AT_START = ("PYTHON", "LC_")
"""Beginnings of variables that Python reads when it starts."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TOGETHER = {
    "squashfs images under Slurm": {"imported", "squashfs"},
    "images of the venv kind": {"built"},
    "a wheel in a fresh environment": {"wheel_environment"},
    "a Dask cluster": {"two_workers", "tpch"},
}
"""Fixtures that take long to make, so that all their users run in one process. The first name that fits counts."""

LIBRARIES = {"tests/stats/": "statistics"}
"""Directories of tests whose libraries take a second to import: one process imports them. The groups' names."""

LONGEST = (
    *(*TOGETHER, *LIBRARIES.values(), "tests/docker/test_image_commands.py", "tests/docker/test_old_stack.py"),
    *("tests/images/test_conda_prefixes.py", "tests/exporters/test_export_mlflow.py"),
    *("tests/kills/test_kill_campaign.py", "tests/kills/test_repeated_commands.py"),
    *("tests/kubernetes/test_parsl_on_kubernetes.py", "tests/kubernetes/test_kubernetes_campaigns.py"),
    *("tests/slurm/test_campaigns_broken.py", "tests/slurm/test_campaigns.py"),
    *("tests/slurm/test_campaigns_under_pbs.py", "tests/cli/test_interleaved.py", "tests/cli/test_going_on.py"),
    *("tests/gpu/test_gpu_starts.py", "tests/workloads/test_gpu_lines.py"),
)
"""Groups that take long."""


def pytest_configure() -> None:
    """What scripts inherit.

    A shell without job control starts what is in its background with SIGINT ignored. And ``python3`` is the one that
    runs the tests: where it is a version manager's shim, each of thousands of starts takes ten times as long.
    """
    own = f"{sys.base_prefix}/bin"
    if not os.environ["PATH"].startswith(f"{own}:"):
        os.environ["PATH"] = f"{own}:{os.environ['PATH']}"
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of ``-m 'system …'``: each test process imports all files that it collects."""
    wanted = config.getoption("markexpr").partition(" ")[0]
    if wanted not in {"system", "testbed"} or not collection_path.name.startswith("test_"):
        return None
    return (collection_path.is_file() and f"pytest.mark.{wanted}" not in collection_path.read_text()) or None


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests run in one process when there are several: those of a file, those that share what takes long.

    The longest groups come first, then those that start real processes: the short ones fill the gaps at the end.
    """
    from tests.second_try import on_real_parts  # not before pytest has loaded it as a plugin

    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        file = str(item.path.relative_to(ROOT))
        shared = (name for name, those in TOGETHER.items() if fixtures & those)
        libraries = (name for folder, name in LIBRARIES.items() if file.startswith(folder))
        group = next(itertools.chain(shared, libraries), file)
        item.add_marker(pytest.mark.xdist_group(group))
        groups.setdefault(group, []).append(item)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")
    long_first = sorted(groups, key=lambda name: (name not in LONGEST, not any(map(on_real_parts, groups[name]))))
    items[:] = [item for name in long_first for item in groups[name]]


def pytest_collection_finish() -> None:
    """Take what stays until the end, modules and tests, out of what the garbage collector looks through each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def examples(count: int) -> int:
    """How many examples a property test tries that needs fewer or more than others."""
    return count * THOROUGH


def in_long_tests(*values: object) -> list[Any]:
    """Parameters that only `make test-long` tries: CI has one like them."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


def need(condition: bool, what: str) -> None:
    """Skip where a test's real part is missing; under CI that is a failure."""
    if condition:
        return
    if os.environ.get("CI"):
        pytest.fail(f"CI needs {what}")
    pytest.skip(f"needs {what}")


def need_compiler() -> None:
    """What UCX is compiled with: gpubench asks for all of it before it begins."""
    tools = ("autoreconf", "libtoolize", "make", "cc", "c++")
    need(all(map(shutil.which, tools)), "autoconf, automake, libtool, make, gcc and g++")


def optional(condition: bool, what: str, how: str) -> None:
    """Skip where a part is missing that takes too long to make at every check, under CI too; ``how`` makes it."""
    if not condition:
        pytest.skip(f"optional, also under CI: {what}; to have it: {how}")


def free_port(count: int = 1) -> int:
    """The first of ``count`` ports of the loopback that nobody listens on, one after the other.

    Not one of those that the kernel gives to whoever asks for any: until a daemon listens there, any connection of a
    test beside this one could get it.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, max(lowest, 20_000) - count)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for number in range(port, port + count):
                held.enter_context(socket.socket()).bind(("", number))
            return port


def plain_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without what pytest and make put there, and with Python's cache of compiled files.

    Without settings of numerical libraries, too, which a machine may have for all: each run would warn of them.
    """
    dropped = ("PYTEST", "MAKE", "COLUMNS", "PYTHONDONTWRITEBYTECODE", "OMP_", "MKL_", "OPENBLAS_", "NUMBA_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, **(more or {})}


def own_queue(directory: Path) -> dict[str, str]:
    """Variables that give a test its own queue: a benchmark in the next window must not hold it up."""
    return {"XDG_STATE_HOME": str(directory / "state")}


def run_gpubench(
    words: Sequence[str | Path],
    directory: Path,
    environment: Mapping[str, str] | None = None,
    *,
    one_stream: bool = False,
    timeout: float = 500,
) -> subprocess.CompletedProcess[str]:
    """Run the command line in ``directory`` with these variables beside the caller's own; output as text.

    It runs in this process, unless it replaces its process, leaves one behind, or needs a variable that counts when
    Python starts.
    ``one_stream`` puts standard error into standard output. ``timeout``, in seconds, counts for a process of its own;
    in this one pytest-timeout's does.
    """
    given = environment or {}
    if not {"run", "cluster"}.intersection(map(str, words[:1])) and not any(
        name.startswith(READ_AT_START) for name in given
    ):
        return in_process.run(words, directory, plain_environment(given), one_stream=one_stream)
    return subprocess.run(
        [str(GPUBENCH), *map(str, words)],
        cwd=directory,
        env=plain_environment(given),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if one_stream else subprocess.PIPE,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture
def gpubench(tmp_path: Path) -> Run:
    """Run the command line in an empty directory; stdout and stderr as text. ``code``: how it must end."""

    def run(
        *words: str | Path, env: Mapping[str, str] | None = None, timeout: float = 500, code: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = run_gpubench([*words], tmp_path, {**own_queue(tmp_path), **(env or {})}, timeout=timeout)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    return run
