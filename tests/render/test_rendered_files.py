"""What `render` makes of a plan: compared with files that a person has read. GPUBENCH_UPDATE_GOLDEN=1 rewrites them."""

import ast
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpubench import resources
from gpubench.model.image import Image
from gpubench.model.plan import Plan
from gpubench.model.site import (
    Batch,
    ContainerSettings,
    KubernetesSettings,
    LaunchSettings,
    Layout,
    Node,
    Paths,
    Setup,
    Toleration,
)
from gpubench.node.spec import RunSpec
from tests.plan.requests_by_hand import image, plan, site
from tests.rendering import check_golden, check_shell, render_jobs, specs_of

GOLDEN = Path(__file__).parents[1] / "golden"
TEMPLATES = resources.job_templates()
NODE_HALF = b"the packed node half"  # its real hash changes with every edit; the golden spec shall not
VARIANTS = "1.17.0 new=1.19.0,UCX_PROTO_ENABLE=n,UCX_TLS=tcp,sm"
CONTAINERS = {
    version: image(version).model_copy(
        update={
            "kind": "docker",
            "id": f"sha256:{number:064d}",
            "reference": f"registry.example/team/bench@sha256:{number:064d}",
            "python": "/opt/gpubench/stack/bin/python",
            "build_id": f"b{number}",
            "build_manifest": "/gpubench/manifest.json",
        }
    )
    for number, version in enumerate(("1.17.0", "1.19.0"))
}
SQUASHFS = {
    spec: one.model_copy(update={"kind": "squashfs", "reference": f"/images/{one.id.replace(':', '-')}/image.sqsh"})
    for spec, one in CONTAINERS.items()
}
MODULES = {
    spec: one.model_copy(
        update={
            "kind": "modules",
            "id": f"m{one.build_id}",
            "reference": f"/home/o'neill & co/modules/summit-{one.build_id}/load.sh",
            "python": "/sw/python/bin/python3",
            "build_manifest": f"/home/o'neill & co/modules/summit-{one.build_id}/manifest.json",
        }
    )
    for spec, one in CONTAINERS.items()
}
VENVS = {version: image(version) for version in ("1.17.0", "1.19.0")}
SLURM = {
    "scheduler": "slurm",
    "launcher": "srun",
    "node": Node(cores=16, gpus=8, memory="64GiB"),
    "batch": Batch(queue="batch m2", account="team", options=["--nv-meta=ml-model.x"]),
    "setup": Setup(modules=["cuda/11.2", "a b"]),
}
LSF = {
    "scheduler": "lsf",
    "launcher": "jsrun",
    "node": Node(cores=42, gpus=6, memory="512GiB"),
    "batch": Batch(queue="batch hm", account="team", alloc_flags="gpumps smt4", memory_unit="MB", options=["-B"]),
    "launch": LaunchSettings(options=["-l", "gpu-cpu"]),
    "setup": Setup(modules=["cuda/11.2", "a b"]),
}


PBS = {
    "scheduler": "pbs",
    "launcher": "ssh",
    "node": Node(cores=64, gpus=4, memory="512GiB"),
    "batch": Batch(queue="prod", account="team", constraint="system=polaris", options=["-l filesystems=home:eagle"]),
    "setup": Setup(modules=["cuda/11.2", "a b"]),
}


def on(images: Mapping[str, Image], nodes: Sequence[int] = (2,), blocks: int = 1, **of_site: Any) -> Plan:
    """The plan of a site with these fields."""
    return plan(VARIANTS, site=site(**of_site), nodes=[*nodes], blocks=blocks, images=images)


def lsf(scheduler: str = "rank0", client: str = "rank0") -> dict[str, Any]:
    """Like Summit, with another placement."""
    return {
        **LSF,
        "layout": Layout(workers=6, threads=7 - (scheduler == "own-set"), scheduler=scheduler, client=client),
    }


def mounting(*mounts: str, **more: Any) -> ContainerSettings:
    return ContainerSettings(mounts=[*mounts], **more)


DATA = mounting("/data sets:/data:ro")
ON_LAUNCH_NODE = lsf("launch-node", "launch-node")
SSH = {**SLURM, "launcher": "ssh"}
FOUR_GPUS = {**SLURM, "node": Node(cores=16, gpus=4, memory="64GiB")}
CONDA = {spec: one.model_copy(update={"kind": "conda"}) for spec, one in VENVS.items()}
IN_TURNS = Layout(workers=2, one_machine=True, arrangement="interleaved")
SCRATCH = Paths(scratch="$SLURM_TMPDIR/my scratch")
KUBERNETES = {
    "scheduler": "kubernetes",
    "launcher": "indexed-job",
    "runtime": "pod",
    "node": Node(cores=16, gpus=8, memory="64GiB"),
    "kubernetes": KubernetesSettings(
        namespace="teams-own",
        context="big cluster",
        node_selector={"pool": "dgx"},
        tolerations=[Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")],
        image_pull_secrets=["registry"],
        run_as_user=0,
        capabilities=["IPC_LOCK"],
        labels={"team": "no"},
    ),
}
PLANS = {
    "local-fork-venv": on(VENVS, (1, 2), 2),
    "local-fork-venv-interleaved": on(VENVS, (1,), layout=IN_TURNS),
    "local-fork-docker": on(
        *(CONTAINERS, (1,), 2),
        runtime="docker",
        container=mounting("/data sets:/data sets:ro", options=["--ulimit", "memlock=-1"]),
    ),
    "local-fork-modules": on(MODULES, (1,), runtime="modules"),
    "local-fork-enroot": on(SQUASHFS, (1,), runtime="enroot"),
    "lsf-jsrun-modules": on(MODULES, **ON_LAUNCH_NODE, runtime="modules"),
    "lsf-jsrun-venv": on(VENVS, (1, 4), **lsf("launch-node"), runtime="venv"),
    "lsf-jsrun-conda": on(CONDA, **lsf("own-set"), runtime="conda"),
    "lsf-jsrun-apptainer": on(SQUASHFS, **lsf(), runtime="apptainer"),
    "slurm-srun-pyxis": on(SQUASHFS, (8,), 2, **SLURM, runtime="pyxis", container=mounting("/data:/data:ro")),
    "slurm-srun-enroot": on(SQUASHFS, **SLURM, runtime="enroot", container=DATA),
    "slurm-srun-apptainer": on(
        SQUASHFS, **FOUR_GPUS, runtime="apptainer", container=mounting(*DATA.mounts, options=["--writable-tmpfs"])
    ),
    "slurm-srun-modules": on(MODULES, **SLURM, runtime="modules"),
    "slurm-srun-venv": on(VENVS, (1, 4), 2, scheduler="slurm", launcher="srun", paths=SCRATCH),
    "slurm-ssh-venv": on(VENVS, **SSH),
    "slurm-ssh-apptainer": on(SQUASHFS, **SSH, runtime="apptainer"),
    "pbs-ssh-venv": on(VENVS, **PBS),
    "pbs-ssh-apptainer": on(SQUASHFS, **PBS, runtime="apptainer"),
    "kubernetes-indexed-job-pod": on(CONTAINERS, **KUBERNETES),
}
PLAN = PLANS["local-fork-venv"]
RENDERED = {triple: render_jobs(one, one.jobs, TEMPLATES, NODE_HALF) for triple, one in PLANS.items()}
FILES = RENDERED["local-fork-venv"]
SCRIPTS = {name: data for name, data in FILES.items() if name.endswith("job.sh")}


def kept(triple: str) -> dict[str, bytes]:
    """Every script, and one run spec."""
    files = RENDERED[triple]
    spec = next(name for name, data in files.items() if b'"variant": "new"' in data)
    return {
        name: data
        for name, data in files.items()
        if name.endswith(("/job.sh", "/job.yaml", "-turns.json")) or name == spec
    }


KEPT = [(triple, name) for triple in PLANS for name in kept(triple)]


@pytest.mark.parametrize(("triple", "name"), KEPT)
def test_a_rendered_file_is_what_a_person_has_read(triple: str, name: str) -> None:
    check_golden(GOLDEN / triple / name, RENDERED[triple][name].decode())


@pytest.mark.parametrize("triple", PLANS)
def test_no_golden_file_is_left_over(triple: str) -> None:
    stored = {str(path.relative_to(GOLDEN / triple)) for path in (GOLDEN / triple).rglob("*") if path.is_file()}
    assert stored == set(kept(triple))


def test_the_same_plan_gives_the_same_bytes() -> None:
    copy = Plan.parse(PLAN.dump(), "plan.json")
    assert render_jobs(copy, copy.jobs, dict(reversed(TEMPLATES.items())), NODE_HALF) == FILES


def test_every_run_has_a_spec_that_parses_and_stands_in_the_script_once() -> None:
    assert len(FILES) == len(SCRIPTS) + sum(1 for _ in PLAN.runs())
    for job, _, run in PLAN.runs():
        (name,) = [name for name in FILES if f"-{run.run}.json" in name]
        spec = RunSpec.parse(FILES[name].decode(), name)
        assert (spec.run, spec.variant, spec.nodes, spec.order) == (run.run, run.variant, job.nodes, run.order)
        assert [item.params_id for item in spec.workloads] == run.workloads
        script = SCRIPTS[f"jobs/{job.job}/job.sh"].decode()
        assert script.count(name.removeprefix(f"jobs/{job.job}/")) == 1


def test_the_variants_settings_beat_the_sites_and_the_sites_the_images() -> None:
    made = plan(
        "a=1.17.0,UCX_TLS=sm b=1.17.0",
        site=site(env={"UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/site"}),
        blocks=1,
    )
    specs = {spec.variant: spec for spec in specs_of(made)}
    assert specs["a"].env == {"UCX_TLS": "sm", "LD_LIBRARY_PATH": "/site"}
    assert specs["b"].env == {"UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/site"}


def test_a_post_release_of_the_wheel_is_expected_to_load_as_its_release() -> None:
    made = plan(blocks=1, images={"1.17.0": image("1.17.0.post1"), "1.19.0": image("1.19.0")})
    found = {(spec.ucx_version, spec.expect_ucx) for spec in specs_of(made)}
    assert found == {("1.17.0.post1", "1.17.0"), ("1.19.0", "1.19.0")}


@pytest.mark.parametrize(("triple", "name"), [pair for pair in KEPT if pair[1].endswith(".sh")])
def test_a_script_is_sound_shell(triple: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    check_shell(path, RENDERED[triple][name])
    parsed = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert (parsed.returncode, parsed.stderr) == (0, "")


SHIPPED = {path.stem for path in (resources.root() / "sites").glob("*.toml")} - {"local", "kubernetes"}
"""Names of profiles that are no scheduler's, too."""


def test_no_template_tests_the_name_of_a_site() -> None:
    templates = [path for path in (resources.root() / "templates").rglob("*") if path.is_file()]
    assert len(templates) > len(TEMPLATES)
    for path in templates:
        text = path.read_text("utf-8")
        assert not re.search(r"{%[^}]*site\.name", text), path
        assert not [name for name in SHIPPED if name in text], path


def test_no_code_knows_the_name_of_a_shipped_site() -> None:
    """Where old results come from is another matter: importers and exporters know the formats of prior systems."""
    for path in resources.PACKAGE.rglob("*.py"):
        if path.parent.name in ("importers", "exporters"):
            continue
        found = [node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)]
        assert not SHIPPED & {value for value in found if isinstance(value, str)}, path
