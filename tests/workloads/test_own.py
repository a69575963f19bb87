"""Users' own functions and classes on a real cluster: what is timed, what is checked, where an error is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Future

import gpubench.workloads
from gpubench.spec import WorkloadSpec
from gpubench.workloads import families
from gpubench.workloads.base import Measurement, WorkloadContext
from gpubench.workloads.own import OwnWorkloadError
from tests.workloads.running import run

pytestmark = pytest.mark.integration

TEXT = """
import time
import dask
import dask.array

LOG = []

def nap():
    time.sleep(0.25)
    return 7

def lazy(client, params):
    return [dask.delayed(nap)(), client.submit(nap, pure=False), params["rows"]]

def plain(client, params):
    assert sorted(params) == ["rows"]
    return client.submit(nap, pure=False).result()

def fails():
    raise KeyError("a task")

def in_a_task(client, params):
    return {"x": client.submit(fails, pure=False)}

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
    def once(self):
        return 1
"""
PARAMS = {"rows": 100, "sha256": hashlib.sha256(TEXT.encode()).hexdigest()}
MODULE = f"own_{PARAMS['sha256'][:16]}"


@pytest.fixture(scope="module", autouse=True)
def file(tmp_path_factory: pytest.TempPathFactory, cluster: WorkloadContext) -> Iterator[None]:
    """The file where ``node.pyz`` has it, for this process and for the workers, whom the cluster serves all tests."""
    folder = tmp_path_factory.mktemp("own")
    (folder / f"{MODULE}.py").write_text(TEXT)

    def place(add: bool, path: str = str(folder)) -> None:
        import gpubench.workloads

        if add:
            gpubench.workloads.__path__.append(path)
        else:
            gpubench.workloads.__path__.remove(path)

    gpubench.workloads.__path__.append(str(folder))
    cluster.client.run(place, True)
    yield
    cluster.client.run(place, False)
    gpubench.workloads.__path__.remove(str(folder))
    # Errors hold the frames that raised them, and these the futures of tasks: the next tests want workers without any.
    cluster.client.cancel([Future(key, cluster.client) for key in list(cluster.client.futures)], force=True)


def own(cluster: WorkloadContext, name: str) -> Measurement:
    return families.create(f"mine.py:{name}", cluster, "dask", PARAMS)


def test_the_clock_stands_around_the_results_that_a_function_returns(cluster: WorkloadContext) -> None:
    for name in ("lazy", "plain"):
        result, lines = run(own(cluster, name))
        assert (result.status, [line.answer for line in lines]) == ("ok", ["unchecked"] * 3)
        assert all(line.wall_s >= 0.25 for line in lines), name
        assert result.keys_left == 0


def test_a_class_is_set_up_prepared_checked_and_torn_down(cluster: WorkloadContext) -> None:
    measurement: Any = own(cluster, "Sum")
    log = families.importlib.import_module(f"gpubench.workloads.{MODULE}").LOG
    log.clear()
    result, lines = run(measurement)
    assert log == ["setup", "prepare", "prepare", "prepare", "teardown"]
    assert (result.status, [line.answer for line in lines]) == ("ok", ["ok"] * 3)
    assert {line.bytes for line in lines} == {800}
    result, lines = run(own(cluster, "Bare"))
    assert [line.answer for line in lines] == ["unchecked"] * 3


@pytest.mark.parametrize(("name", "said"), [("Wrong", "check as it should be"), ("False_", "check False")])
def test_a_check_that_fails_ends_the_workload(cluster: WorkloadContext, name: str, said: str) -> None:
    result, lines = run(own(cluster, name))
    assert (result.status, result.reason) == ("failed", f"wrong answer: {said}")
    assert [line.answer for line in lines] == ["wrong"]


def line_of(text: str) -> int:
    return TEXT.split("\n").index(text) + 1


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("here", '    raise ValueError("two\\nlines")', "ValueError: two"),
        ("leaves", '    raise SystemExit("enough")', "SystemExit: enough"),
        ("in_a_task", '    raise KeyError("a task")', "KeyError: 'a task'"),
    ],
)
def test_an_error_is_one_line_with_the_files_name_and_line_and_the_log_has_the_rest(
    cluster: WorkloadContext, name: str, line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OwnWorkloadError) as caught:
        run(own(cluster, name))
    assert str(caught.value) == f"mine.py:{line_of(line)}: {said}"
    assert "Traceback" in capsys.readouterr().err


def test_a_check_that_forgets_to_return_passes_nothing(cluster: WorkloadContext) -> None:
    with pytest.raises(OwnWorkloadError, match=r"mine\.py: TypeError: check returned None"):
        run(own(cluster, "Forgetful"))


def test_an_error_of_the_run_itself_is_not_the_users(cluster: WorkloadContext, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpubench.node.limit import Limit, WorkloadTimeoutError

    measurement: Any = own(cluster, "lazy")
    with pytest.raises(WorkloadTimeoutError), Limit(0.05):
        run(measurement)


def test_a_file_that_cannot_be_imported_is_said_when_it_is_measured(
    cluster: WorkloadContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpubench.workloads, "__path__", [*gpubench.workloads.__path__, str(tmp_path)])
    for text, said in (
        ("import dask\nimport no_such_library\n", "mine.py:2: ModuleNotFoundError: No module named 'no_such_library'"),
        ("x = 1\n\ndef join(:\n", "mine.py:3: SyntaxError: invalid syntax"),
    ):
        params = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
        (tmp_path / f"own_{params['sha256'][:16]}.py").write_text(text)
        families.load([WorkloadSpec("mine.py:join", "dask", params, 1, 0, 9.0)])
        with pytest.raises(OwnWorkloadError) as caught:
            families.create("mine.py:join", cluster, "dask", params)
        assert str(caught.value) == said
