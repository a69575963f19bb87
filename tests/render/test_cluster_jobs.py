"""The script and the specs of a standing cluster's job: a golden file, and who can't have one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench import resources
from gpubench.errors import PlanRefusedError
from gpubench.model.cluster import ClusterJob, ClusterRecord
from gpubench.model.image import Variant
from gpubench.render.cluster import client_script, render_cluster_job
from gpubench.spec import RunSpec
from gpubench.spec.cluster import ClusterSpec
from tests.plan.requests_by_hand import image, site

TEMPLATES = resources.texts("templates", "**/*.sh.j2")
GOLDEN = Path(__file__).parents[1] / "golden" / "clusters"
FURTHER = ClusterJob(job="j002-n2", nodes=2, first_rank=4, limit_s=7200)


def record(**changes: Any) -> ClusterRecord:
    return ClusterRecord(
        **{
            "name": "mine",
            "identity": "0123456789ab",
            "directory": "/shared/it's mine/clusters/mine",
            "created_at": "2026-11-21T12:00:00+00:00",
            "gpubench": "0.1",
            "site": site(scheduler="slurm", launcher="srun"),
            "variant": Variant(label="new", ucx="1.19.0", env={"UCX_PROTO_ENABLE": "n"}),
            "image": image("1.19.0"),
            "protocol": "ucx",
            "memory_limit": 2**30,
            "limit_s": 7200.0,
            "workarounds": {"UCX_OF_AN_ISSUE": "y"},
            **changes,
        }
    )


def test_a_further_job_is_the_golden_script_and_knows_its_place() -> None:
    files = render_cluster_job(record(), FURTHER, TEMPLATES, "hash")
    script, golden = files["jobs/j002-n2/job.sh"].decode(), GOLDEN / "slurm-srun-venv.sh"
    if os.environ.get("GPUBENCH_UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(script)
    assert script == golden.read_text()
    told = ClusterSpec.parse(files["jobs/j002-n2/specs/cluster.json"].decode())
    assert (told.leads, told.first_rank, told.run) == (False, 4, "nodes.json")
    nodes = RunSpec.parse(files["jobs/j002-n2/specs/nodes.json"].decode())
    assert (nodes.nodes, nodes.run, nodes.workloads, nodes.memory_limit) == (2, "0123456789ab", [], 2**30)
    assert nodes.env["UCX_PROTO_ENABLE"] == "n"
    assert nodes.env["UCX_OF_AN_ISSUE"] == "y"


def test_the_script_passes_shellcheck(tmp_path: Path) -> None:
    for name, data in {
        "job.sh": render_cluster_job(record(), FURTHER, TEMPLATES, "hash")["jobs/j002-n2/job.sh"],
        "client.sh": client_script(record(protocol="tls")),
    }.items():
        (tmp_path / name).write_bytes(data)
        words = [Path(sys.executable).with_name("shellcheck"), "--shell=bash", tmp_path / name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_what_a_client_sources_sets_what_the_cluster_has_and_survives_odd_paths(tmp_path: Path) -> None:
    script = tmp_path / "client.sh"
    script.write_bytes(client_script(record(protocol="tls")))
    python = f"{sys.executable} -I -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    done = subprocess.run(["bash", "-c", f". {script}; {python}"], capture_output=True, text=True, check=True)
    env = json.loads(done.stdout)
    assert env["DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"] == "/shared/it's mine/clusters/mine/tls/client.key"
    assert env["UCX_PROTO_ENABLE"] == "n"
    assert env["PATH"].startswith(f"{Path(image('1.19.0').python).parent}:")


def test_keys_are_named_under_tls_only_and_the_file_says_how_to_connect() -> None:
    def told(protocol: str) -> tuple[ClusterSpec, RunSpec]:
        files = render_cluster_job(record(protocol=protocol), FURTHER, TEMPLATES, "hash")
        specs = [files[f"jobs/j002-n2/specs/{name}.json"].decode() for name in ("cluster", "nodes")]
        return ClusterSpec.parse(specs[0]), RunSpec.parse(specs[1])

    cluster, nodes = told("tls")
    assert nodes.env["DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY"].endswith("/tls/cluster.key")
    assert nodes.protocol == "tls"
    compile(cluster.connect["security"], "security", "eval")
    compile("\n".join(cluster.connect["client"]), "client", "exec")
    cluster, nodes = told("tcp")
    assert "security" not in cluster.connect
    assert not [name for name in nodes.env if "TLS__" in name]


def test_a_scheduler_whose_jobs_are_no_scripts_can_hold_no_cluster() -> None:
    without = {name: text for name, text in TEMPLATES.items() if not name.startswith("slurm/")}
    with pytest.raises(PlanRefusedError, match="a standing cluster can't run on slurm"):
        render_cluster_job(record(), FURTHER, without, "hash")
