"""Users' own functions and classes on a real cluster: what is timed, what is checked, where an error is."""

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import gpubench.node.workloads
from gpubench.node.spec import WorkloadSpec
from gpubench.node.workload_limits import describe_error
from gpubench.node.workloads import device, families
from gpubench.node.workloads.base import Measurement, UnavailableError, WorkloadContext
from tests.workloads import own_files
from tests.workloads.running import run

pytestmark = pytest.mark.integration

Make = Callable[..., Measurement]

TEXT = """
import threading
import time
import dask
import dask.array
from gpubench.node.workloads.base import UnavailableError
from .helper import Liar, OwnClock, divide, unavailable

LOG = []

def nap():
    time.sleep(0.25)
    return 7

def lazy(client, params):
    return [dask.delayed(nap)(), client.submit(nap, pure=False), params["rows"]]

def plain(client, params):
    assert sorted(params) == ["rows"]
    return client.submit(nap, pure=False).result()

def lock():
    return threading.Lock()

def stays(client, params):
    return client.submit(lock, pure=False)

def fails():
    raise KeyError("a task")

def in_a_task(client, params):
    return {"x": client.submit(fails, pure=False)}

def in_a_helper(client, params):
    return client.submit(divide, 1, pure=False)

def leaves(client, params):
    raise SystemExit("enough")

def here(client, params):
    raise ValueError("two\\nlines")

class Sum:
    nominal_bytes = 800

    def setup(self, client, params):
        LOG.append("setup")
        self.rows = params["rows"]

    def prepare(self):
        LOG.append("prepare")

    def once(self):
        return dask.array.ones(self.rows, chunks=10).sum()

    def check(self, result):
        return result.compute() == self.rows

    def teardown(self):
        LOG.append("teardown")

class Wrong(Sum):
    def check(self, result):
        assert result.compute() != self.rows, "as it should be"
        return True

class False_(Sum):
    def check(self, result):
        return False

class Forgetful(Sum):
    def check(self, result):
        result.compute() == self.rows

class Bare:
    def plan(self):
        "No dict of ours."

    def once(self):
        return 1

class Lacking:
    def setup(self, client, params):
        raise UnavailableError("this image has no such thing")

    def once(self):
        return 1

def lacks(client, params):
    unavailable()

lacks.plan = {"backends": {"dask": [], "no_such": ["dask", "no_such_module"]}}

def on_gpus(client, params):
    return 1

on_gpus.plan = {"devices": ["gpu"]}
"""
HELPER = """from gpubench.node.workloads.base import Answer, Measurement, UnavailableError

def unavailable():
    raise UnavailableError("said by another file")

def hold(block):
    return len(block)

def divide(number):
    return number / 0

class OwnClock(Measurement):
    uses_transfer_log = False
    nominal_bytes = 64
    least_moved_bytes = 48
    said = 0.125

    @property
    def links_own(self):
        here, there = self.context.workers
        return [{"sender": here, "receiver": there, "bytes": 48, "count": 1, "seconds": 0.1}]

    def prepare(self):
        context = self.context
        self.seen = (sorted(self.params), self.backend, context.device, context.seed, context.threads_per_worker)

    def once(self):
        return self.said, self.seen

    def check(self, answer):
        return Answer("ok" if answer == self.seen else "wrong", {"seen": list(answer)})

class Liar(OwnClock):
    def once(self):
        return self.params["says"], self.seen
"""
PARAMS = {"rows": 100}
FILES = {"mine.py": TEXT, "helper.py": HELPER}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cluster: WorkloadContext) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("own")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    with own_files.packed(cluster, tmp_path_factory.mktemp("packed"), own_files.parsed("mine.py:plain", folder)):
        yield folder


@pytest.fixture(scope="module")
def own(folder: Path, cluster: WorkloadContext) -> Make:
    def make(name: str, params: Mapping[str, Any] = PARAMS, backend: str = "dask") -> Measurement:
        return own_files.create(own_files.parsed(f"mine.py:{name}", folder), cluster, params, backend=backend)

    return make


def test_the_clock_stands_around_the_results_that_a_function_returns(own: Make) -> None:
    for name in ("lazy", "plain"):
        result, lines = run(own(name))
        assert (result.status, [line["answer"] for line in lines]) == ("ok", ["unchecked"] * 3)
        assert all(line["wall_s"] >= 0.25 for line in lines), name
        assert result.keys_left == 0


def test_a_result_stays_on_its_worker(own: Make) -> None:
    """A lock can't leave its process, so a result that is fetched inside of the clock is an error."""
    assert run(own("stays"))[0].status == "ok"


def test_what_gpus_still_do_is_waited_for_before_the_clock_starts_and_before_it_stops(
    own: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of cupy is finished when its kernels are launched (dask/distributed#2837)."""
    measurement: Any = own("Sum")
    log = sys.modules[type(measurement._what).__module__].LOG
    log.clear()

    def synchronise(*_: object) -> None:
        log.append("GPUs are done")
        time.sleep(0.25)

    monkeypatch.setattr(device, "synchronize_workers", synchronise)
    monkeypatch.setattr(type(measurement._what), "once", lambda _self: log.append("once"))
    monkeypatch.setattr(type(measurement._what), "check", lambda *_: True)
    _, (line,) = run(measurement, warmup=0, reps=1)
    assert log == ["setup", "prepare", "GPUs are done", "once", "GPUs are done", "teardown"]
    assert 0.25 <= line["wall_s"] < 0.5


def test_a_class_is_set_up_prepared_checked_and_torn_down(own: Make) -> None:
    measurement: Any = own("Sum")
    log = sys.modules[type(measurement._what).__module__].LOG
    log.clear()
    result, lines = run(measurement)
    assert log == ["setup", "prepare", "prepare", "prepare", "teardown"]
    assert (result.status, [line["answer"] for line in lines]) == ("ok", ["ok"] * 3)
    assert {line["bytes"] for line in lines} == {800}
    result, lines = run(own("Bare"))
    assert [line["answer"] for line in lines] == ["unchecked"] * 3


@pytest.mark.parametrize(("name", "said"), [("Wrong", "check as it should be"), ("False_", "check False")])
def test_a_check_that_fails_ends_the_workload(own: Make, name: str, said: str) -> None:
    result, lines = run(own(name))
    assert (result.status, result.reason) == ("failed", f"wrong answer: {said}")
    assert [line["answer"] for line in lines] == ["wrong"]


def line_of(text: str, line: str) -> int:
    return text.split("\n").index(line) + 1


@pytest.mark.parametrize(
    ("name", "file", "line", "said"),
    [
        ("here", "mine.py", '    raise ValueError("two\\nlines")', "ValueError: two"),
        ("leaves", "mine.py", '    raise SystemExit("enough")', "SystemExit: enough"),
        ("in_a_task", "mine.py", '    raise KeyError("a task")', "KeyError: 'a task'"),
        ("in_a_helper", "helper.py", "    return number / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_an_error_is_one_line_with_the_files_name_and_line(
    own: Make, name: str, file: str, line: str, said: str
) -> None:
    with pytest.raises((Exception, SystemExit)) as caught:
        run(own(name))
    assert describe_error(caught.value) == f"{file}:{line_of(FILES[file], line)}: {said}"


def test_a_check_that_forgets_to_return_passes_nothing(own: Make) -> None:
    with pytest.raises(TypeError, match="check of Forgetful returned None"):
        run(own("Forgetful"))


def test_an_error_of_the_run_itself_is_not_the_users(own: Make) -> None:
    from gpubench.node.workload_limits import Limit, WorkloadTimeoutError

    with pytest.raises(WorkloadTimeoutError), Limit(0.05):
        run(own("lazy"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import dask\nimport no_such_library\n", "mine.py:2: ModuleNotFoundError: No module named 'no_such_library'"),
        ("x = 1\n\ndef join(:\n", "mine.py:3: SyntaxError: invalid syntax"),
    ],
)
def test_a_file_that_cannot_be_imported_is_said_when_it_is_measured(
    cluster: WorkloadContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(gpubench.node.workloads, "__path__", [*gpubench.node.workloads.__path__, str(tmp_path)])
    params = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    package = tmp_path / f"own_{params['sha256'][:16]}"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "mine.py").write_text(text)
    families.load([WorkloadSpec("mine.py:join", "dask", params, 1, 0, 9.0)])
    with pytest.raises((ImportError, SyntaxError)) as caught:
        families.create("mine.py:join", cluster, "dask", params)
    assert describe_error(caught.value) == said


def test_what_an_image_lacks_is_unavailable_whichever_file_says_it(own: Make) -> None:
    for name, said in (("Lacking", "this image has no such thing"), ("lacks", "said by another file")):
        with pytest.raises(UnavailableError, match=said):
            run(own(name))
    with pytest.raises(UnavailableError, match=r"mine\.py:lacks with back-end no_such needs no_such_module"):
        own("lacks", backend="no_such")


def test_a_workload_for_another_device_fails_where_the_node_decides_the_device(own: Make) -> None:
    with pytest.raises(ValueError, match=r"mine\.py:on_gpus doesn't run on 'cpu'"):
        own("on_gpus")


def test_a_class_of_the_public_base_has_its_own_clock_bytes_and_links(own: Make, cluster: WorkloadContext) -> None:
    result, lines = run(own("OwnClock"))
    assert [(line["wall_s"], line["bytes"], line["answer"]) for line in lines] == [(0.125, 64, "ok")] * 3
    assert (result.seen_bytes, result.least_moved_bytes) == (96, 96)
    sender, receiver = cluster.workers
    assert [(one["sender"], one["receiver"], one["bytes"]) for one in result.links] == [(sender, receiver, 96)]
    assert result.details["seen"] == [["rows"], "dask", "cpu", cluster.seed, 1]


@pytest.mark.parametrize("says", [float("inf"), 0.0, -1.0, float("nan")])
def test_an_own_clock_that_says_what_no_clock_can_makes_no_sample(own: Make, says: float) -> None:
    with pytest.raises(ValueError, match="a repetition took"):
        run(own("Liar", {"says": says}))
