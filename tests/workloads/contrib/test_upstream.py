"""dask-cuda's own benchmarks and its explicit-comms join, for real: from the image's dask-cuda, on our cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contrib.upstream.upstream import ADMITTED, Upstream, UpstreamError, lack_of_rapidsmpf, read
from gpubench import resources
from gpubench.model.own_workload import packed_together
from gpubench.node.workloads.base import Answer, UnavailableError, WorkloadContext
from gpubench.node.workloads.catalogue.own import module_name
from gpubench.render.node_half import pack
from tests.cli.campaigns import campaign_in, records
from tests.conftest import Run
from tests.workloads.contrib.conftest import CONTRIB, Family
from tests.workloads.own_files import parsed
from tests.workloads.running import created

pytestmark = pytest.mark.system

FILE = "upstream/upstream.py"
ANY = "Upstream"
SUITE = f"""
name = "theirs"
reps = 1
warmup = 0
[[workload]]
file = "{CONTRIB / FILE}:Upstream"
[workload.params]
benchmark = "local_cudf_merge"
options = "-c 20000"
[[workload]]
name = "merge"
backend = "explicit-comms"
[workload.params]
rows_per_worker = 20_000
"""
PARAMS = {"benchmark": "local_cupy", "options": ""}
PRINT_ROOT = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
from gpubench.node.workloads.base import WorkloadContext
module = importlib.import_module(sys.argv[2])
class Client:
    class scheduler:
        address = "tcp://a:1"
measurement = module.Upstream(WorkloadContext(Client, [], 1, "cpu", "tcp"), {"benchmark": "local_cupy", "options": ""})
print(module.__file__, measurement.words()[3], sep="\\n")
"""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--runs 3", "options can't have --runs: say reps"),
        ("--scheduler-file=x", "options can't have --scheduler-file: the cluster is ours"),
        ("-c 'x", "options: No closing quotation"),
    ],
)
def test_options_that_are_ours_are_refused_with_the_reason(options: str, reason: str) -> None:
    measurement = Upstream(WorkloadContext(None, [], 1, "cpu", "tcp"), {**PARAMS, "options": options})
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - compared below
        measurement.setup()
    assert str(raised.value) == reason


def result(folder: Path, workers: list[str], seconds: dict[str, float]) -> None:
    table = {"wallclock": seconds, "data_processed": {"0": 8_000}}
    (folder / "result.json").write_text(json.dumps(table))
    (folder / "result.address_map.json").write_text(json.dumps({each: rank for rank, each in enumerate(workers)}))


@pytest.mark.parametrize(
    ("workers", "seconds", "process_s", "status"),
    [
        (["tcp://b", "tcp://a"], {"0": 0.5}, 2.0, "unchecked"),
        (["tcp://a"], {"0": 0.5}, 2.0, "wrong"),
        (["tcp://a", "tcp://c"], {"0": 0.5}, 2.0, "wrong"),
        (["tcp://a", "tcp://b"], {"0": 2.5}, 2.0, "wrong"),
        (["tcp://a", "tcp://b"], {"0": 0.0}, 2.0, "wrong"),
        (["tcp://a", "tcp://b"], {"0": 0.5, "1": 0.5}, 2.0, "wrong"),
    ],
)
def test_a_result_counts_only_if_it_is_one_run_on_our_workers_within_the_time_of_its_process(
    tmp_path: Path, workers: list[str], seconds: dict[str, float], process_s: float, status: str
) -> None:
    result(tmp_path, workers, seconds)
    measurement = Upstream(WorkloadContext(None, ["tcp://a", "tcp://b"], 1, "cpu", "tcp"), PARAMS)
    answer: Answer = measurement.check(read(tmp_path, process_s))
    assert answer.status == status


@pytest.mark.parametrize("text", ["", "[]", '{"wallclock": {}, "data_processed": {}}', '{"wallclock": {"0": null}}'])
def test_a_torn_or_foreign_result_is_no_result(tmp_path: Path, text: str) -> None:
    result(tmp_path, [], {})
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(UpstreamError, match="no result that can be read"):
        read(tmp_path, 1.0)


def test_an_image_without_dask_cuda_skips_it(cluster: WorkloadContext, family: Family) -> None:
    with pytest.raises(UnavailableError, match="needs dask_cuda, and this image has none"):
        created(cluster, family("Upstream"), PARAMS)


def test_an_image_without_rapidsmpf_skips_the_back_end_that_needs_it() -> None:
    asked = {"benchmark": "local_cudf_shuffle", "options": "--backend rapidsmpf"}
    measurement = Upstream(WorkloadContext(None, [], 1, "cpu", "tcp"), asked)
    with pytest.raises(UnavailableError, match="local_cudf_shuffle with rapidsmpf: this image has no rapidsmpf"):
        measurement.setup()


@pytest.mark.parametrize(("part", "lack"), [("ray.py", "no part for Dask"), ("dask/core.py", ""), ("dask.py", "")])
def test_a_rapidsmpf_without_its_part_for_dask_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, lack: str
) -> None:
    file = tmp_path / "rapidsmpf" / "integrations" / part
    file.parent.mkdir(parents=True)
    file.touch()
    (tmp_path / "rapidsmpf" / "__init__.py").write_text("raise AssertionError('it is not imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert lack_of_rapidsmpf().endswith(lack)
    assert bool(lack_of_rapidsmpf()) is bool(lack)


def test_a_benchmark_is_started_from_the_node_half_that_the_file_is_packed_into(tmp_path: Path) -> None:
    own = parsed("upstream.py:Upstream", CONTRIB / "upstream")
    pyz = tmp_path / "node.pyz"
    pyz.write_bytes(pack({**resources.node_half(), **packed_together([own])}))
    (tmp_path / "theirs.py").write_text(
        "import sys\nprint(__name__, *sys.argv[1:], sys.modules['gpubench'].__file__)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def printed(*words: str) -> list[str]:
        command = [sys.executable, "-S", "-c", *words]  # -S: this Python has gpubench installed, an image has not
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    file, root = printed(PRINT_ROOT, str(pyz), module_name(own.described.name, own.identity))
    assert (Path(file).parents[4], root) == (pyz, str(pyz))
    assert printed(ADMITTED, root, "theirs", "--size", "9") == [
        "__main__",
        "--size",
        "9",
        f"{pyz}/gpubench/__init__.py",
    ]


def test_dask_cudas_own_merge_and_its_explicit_comms_run_on_our_cluster(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "theirs.toml").write_text(SUITE)
    variants = ("--variants", "a=1.19.0 b=1.19.0", "--protocol", "tcp", "--blocks", "1")
    done = gpubench("bench", "--suite", "theirs.toml", *variants)
    assert done.returncode == 0, done.stdout + done.stderr
    campaign = campaign_in(tmp_path)
    for record in records(campaign).values():
        theirs, ours = sorted(record["workloads"], key=lambda one: str(one["workload"]), reverse=True)
        assert (theirs["status"], theirs["details"]["dask_cuda"], theirs["details"]["workers"]) == ("ok", "25.8.0", 2)
        assert (ours["status"], ours["backend"], ours["details"]["rows"]) == ("ok", "explicit-comms", 12_000)
    lines = [json.loads(line) for line in next(campaign.glob("runs/*/samples.jsonl")).read_text().splitlines()]
    answers = {(line["workload"], line["answer"]) for line in lines}
    assert answers == {("upstream.py:Upstream", "unchecked"), ("merge", "ok")}
