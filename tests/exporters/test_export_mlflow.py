"""``export mlflow`` against a real MLflow: a database file, and its server. It gets a Python of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_builder import begin, finish, make_plan

from tests.conftest import ROOT, free_port, need, own_queue, plain_environment

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # seven more processes for what no test asks
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With gpubench and MLflow."""
    uv = Path(sys.executable).with_name("uv")
    folder = tmp_path_factory.mktemp("with-mlflow")
    made = [uv, "venv", "--python", sys.executable, folder / "venv"]
    filled = [uv, "pip", "install", "--python", folder / "venv", "mlflow>=3.5", "-e", ROOT]
    done = [subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False) for words in (made, filled)]
    need(all(one.returncode == 0 for one in done), f"mlflow from the package index ({done[-1].stderr[-300:]})")
    return folder / "venv" / "bin" / "python"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    finish(begin(tmp_path / "campaign", make_plan(blocks=2)))
    return tmp_path / "campaign"


@pytest.fixture
def server(python: Path, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    (tmp_path / "server").mkdir()
    words = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    store = [
        "--backend-store-uri",
        f"sqlite:///{tmp_path}/server/m.db",
        "--artifacts-destination",
        tmp_path / "server" / "files",
    ]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*map(str, (*words, *store))], cwd=tmp_path / "server", env=plain_environment(QUIET), stdout=log, stderr=log
        )
        try:
            _wait(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "mlflow server ended"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail("mlflow server didn't answer")


def export(python: Path, directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python.with_name("gpubench")), "results", "export", "mlflow", *words],
        cwd=directory,
        env=plain_environment(own_queue(directory)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_server_gets_nested_runs_once_and_again_only_what_is_new(
    python: Path, server: str, campaign: Path, tmp_path: Path
) -> None:
    first = export(python, tmp_path, "campaign", "--tracking-uri", server)
    assert first.returncode == 0, first.stderr
    assert "5 runs written" in first.stdout
    assert (
        "0 runs written to experiment gpubench" in export(python, tmp_path, "campaign", "--tracking-uri", server).stdout
    )
    runs = _search(server)
    parents = [run for run in runs if "mlflow.parentRunId" not in _tags(run)]
    assert (len(runs), len(parents)) == (5, 1)
    assert {_tags(run).get("mlflow.parentRunId") for run in runs} == {None, parents[0]["info"]["run_id"]}
    ends = [int(run["info"]["end_time"]) for run in runs if run is not parents[0]]
    assert int(parents[0]["info"]["end_time"]) == max(ends)  # a campaign takes as long as its runs
    params = {one["key"]: one["value"] for one in next(run for run in runs if run is not parents[0])["data"]["params"]}
    assert params["cores_per_node"] == "2"
    files = list((tmp_path / "server" / "files").rglob("plan.json"))
    assert [one.read_bytes() for one in files] == [(campaign / "plan.json").read_bytes()]
    shutil.rmtree(next((campaign / "runs").glob("*")))
    # The campaign's own run says something else now; it is brought up to date, and the others still hang on it.
    assert "1 run written" in export(python, tmp_path, "campaign", "--tracking-uri", server).stdout
    assert {_tags(run).get("mlflow.parentRunId") for run in _search(server)} == {None, parents[0]["info"]["run_id"]}


def test_without_an_address_a_database_file_is_written_and_how_to_see_it_is_said(
    python: Path, campaign: Path, tmp_path: Path
) -> None:
    (tmp_path / "outputs").mkdir()
    campaign.rename(tmp_path / "outputs" / "campaign")
    done = export(python, tmp_path)  # the newest
    assert done.returncode == 0, done.stderr
    assert "mlflow ui --backend-store-uri sqlite:///outputs/mlflow.db" in done.stdout
    assert (tmp_path / "outputs" / "mlflow.db").stat().st_size > 0


def test_a_tracker_that_is_down_is_one_line_and_exit_code_5(python: Path, campaign: Path, tmp_path: Path) -> None:
    for login, shown in (("", ""), ("me:s3cr3t@", "***@")):
        done = export(python, tmp_path, "campaign", "--tracking-uri", f"http://{login}127.0.0.1:9")
        assert done.returncode == 5
        assert len(done.stderr.splitlines()) == 1
        assert f"the tracker at http://{shown}127.0.0.1:9" in done.stderr
        assert "s3cr3t" not in done.stdout + done.stderr


def _search(server: str) -> list[dict[str, object]]:
    experiment = _post(server, "experiments/search", {"max_results": 100})["experiments"]
    (own,) = [one["experiment_id"] for one in experiment if one["name"] == "gpubench"]
    return _post(server, "runs/search", {"experiment_ids": [own], "max_results": 1000})["runs"]


def _post(server: str, what: str, asked: dict[str, object]) -> dict[str, list[dict[str, object]]]:
    request = urllib.request.Request(
        f"{server}/api/2.0/mlflow/{what}", json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _tags(run: dict[str, object]) -> dict[str, str]:
    return {one["key"]: one["value"] for one in run["data"]["tags"]}
