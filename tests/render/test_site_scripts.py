"""Scripts of the shipped profiles, known issues included. GPUBENCH_UPDATE_GOLDEN=1 rewrites the golden ones."""

from pathlib import Path

import pytest

from gpubench import resources
from gpubench.errors import PlanRefusedError
from gpubench.launchers.resource_sets import ResourceSetStep, parse
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.plan.adapter_combinations import VALID
from gpubench.render.check import render_check, render_clean
from gpubench.render.context import PYTHON
from gpubench.render.job import job_file
from gpubench.resources.profiles import known_issues, load_site, site_names
from gpubench.runtimes import RUNTIMES
from tests.plan.requests_by_hand import image, plan
from tests.rendering import check_golden, check_shell, render_jobs, specs_of

GOLDEN = Path(__file__).parents[1] / "golden"
TEMPLATES = resources.job_templates()
SITES = [
    name
    for name in site_names()
    if (load_site(name).scheduler, load_site(name).launcher, load_site(name).runtime) in VALID
    and job_file(load_site(name).scheduler, TEMPLATES) == "job.sh"
]
QUEUED = [name for name in SITES if load_site(name).scheduler != "local"]


def an_image(site: Site, spec: str) -> Image:
    made, kind = image(spec), RUNTIMES[site.runtime].KIND
    return made.model_copy(
        update={
            "kind": kind,
            "python": PYTHON if kind == "squashfs" else made.python,
            "ucx_spec": spec,
            "ucx_version": spec,
            "reference": f"/images/{spec}.sqsh",
        }
    )


def scripts(name: str) -> dict[int, str]:
    """One script per default node count."""
    site = load_site(name)
    words = site.defaults.variants or ["1.21.0", "1.22.0"]
    made = plan(
        " ".join(words),
        site=site,
        images={word.partition("=")[2].partition(",")[0] or word: an_image(site, word) for word in words},
        nodes=site.defaults.nodes,
        blocks=len(words),
        device=site.device,
        known_issues=known_issues(site),
    )
    files = render_jobs(made, made.jobs, TEMPLATES, b"node half")
    return {job.nodes: files[f"jobs/{job.job}/job.sh"].decode() for job in made.jobs}


@pytest.mark.parametrize("name", SITES)
def test_every_script_of_a_shipped_profile_is_sound_shell(name: str, tmp_path: Path) -> None:
    for nodes, script in scripts(name).items():
        check_shell(tmp_path / f"{nodes}.sh", script)


@pytest.mark.parametrize(("name", "nodes"), [("draco", 2), ("draco", 8), ("summit", 4)])
def test_a_script_is_what_a_person_has_read(name: str, nodes: int) -> None:
    check_golden(GOLDEN / name / f"n{nodes}.sh", scripts(name)[nodes])


def directives(name: str, *settings: str) -> list[str]:
    """The lines for the scheduler in the script for two nodes, and those that load modules."""
    site = load_site(name, [*settings])
    images = {spec: an_image(site, spec) for spec in ("1.21.0", "1.22.0")}
    made = plan("1.21.0 1.22.0", site=site, images=images, nodes=[2], blocks=1, device="gpu")
    (script,) = (data for path, data in render_jobs(made, made.jobs, TEMPLATES, b"").items() if path.endswith(".sh"))
    return [line for line in script.decode().splitlines() if line.startswith(("#PBS", "#SBATCH", "shape=", "module"))]


def test_a_site_that_refuses_select_is_asked_for_sums() -> None:
    """NCI Gadi, deepmodeling/dpgen#1373: "The system doesn't support the use of "-l select". Please use "-l ncpus" and
    "-l mem" instead." (code 32)"""
    asked = directives("polaris", "batch.select=false", "batch.constraint=", "node.memory=512GiB")
    assert {"#PBS -l ncpus=128", "#PBS -l ngpus=8", "#PBS -l mem=1048576mb"} <= set(asked)
    assert not [line for line in asked if "select" in line or "place" in line]
    assert "#PBS -l select=2:ncpus=64:ngpus=4:system=polaris" in directives("polaris")
    for lacks, why in (("node.cores=0", "node.cores isn't set"), ("node.cores=64", "batch.constraint is a part")):
        with pytest.raises(PlanRefusedError, match=why):
            directives("polaris", "batch.select=false", lacks)


@pytest.mark.parametrize("name", ["draco", "polaris"])
def test_gpus_that_the_scheduler_does_not_count_are_not_asked_for(name: str) -> None:
    """TACC Longhorn, radical.saga#835: "Requested GRES option unsupported by configured SelectType plugin"."""
    asked = directives(name, "batch.request_gpus=false")
    assert not [line for line in asked if "gpu" in line.partition("#PBS -l filesystems")[0].replace("--nv-", "")]
    assert [line for line in directives(name) if "gpus" in line]


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ((), ["--mem=0"]),
        (("node.memory=400GB",), ["--mem=381469M"]),
        (("batch.options=['--mem-per-cpu=4G']",), ["--mem-per-cpu=4G"]),  # --mem beside it is fatal: slurm_opt.c
    ],
)
def test_a_job_of_slurm_asks_for_all_the_memory_unless_the_site_says_how_much(
    settings: tuple[str, ...], asked: list[str]
) -> None:
    assert [line.split()[1] for line in directives("draco", *settings) if line.startswith("#SBATCH --mem")] == asked


def test_folders_of_modules_are_named_before_modules_are_loaded() -> None:
    loads = [line for line in directives("polaris") if line.startswith("module")]
    assert loads == ["module use /soft/modulefiles", "module load spack-pe-base", "module load apptainer"]


def test_summit_on_921_nodes_has_921_supervisors_with_6_workers_each() -> None:
    site = load_site("summit", ["layout.scheduler=launch-node"])
    images = {spec: an_image(site, spec) for spec in ("1.21.0", "1.22.0")}
    made = plan("1.21.0 1.22.0", site=site, images=images, nodes=[921], blocks=1, device="gpu")
    script = render_jobs(made, made.jobs, TEMPLATES, b"")["jobs/j001-n921/job.sh"].decode()
    assert "#BSUB -nnodes 921\n" in script
    (line,) = [line for line in script.splitlines() if "exec jsrun" in line]
    (shape,) = [line for line in script.splitlines() if line.startswith("shape=(")]
    words = [word for word in line.split() if word.startswith("--nrs")] + shape[len("shape=(") : -1].split()
    step = ResourceSetStep.of("the supervisors", parse(words))
    assert (step.sets, step.per_host, step.tasks, step.cores, step.gpus, step.bind) == (921, 1, 1, 42, 6, "rs")
    spec, _ = specs_of(made)
    assert (spec.nodes, spec.workers_per_node, spec.workers) == (921, 6, 5526)
    assert (len(spec.ranks), spec.scheduler_rank, spec.leader_rank) == (922, 921, 0)
    assert spec.env["OMP_PROC_BIND"] == "FALSE"


@pytest.mark.parametrize("name", QUEUED)
def test_a_check_runs_under_the_header_of_the_sites_own_jobs(name: str, tmp_path: Path) -> None:
    site = load_site(name)
    files = render_check(site, 8, an_image(site, "1.22.0"), TEMPLATES, inside="", node_pyz=b"", gpubench="0")
    script = files["jobs/check/job.sh"].decode()
    mark, shaped, limit = {
        "slurm": ("#SBATCH", ("--time", "--signal", "--nodes="), "--time=5"),
        "lsf": ("#BSUB", ("-W", "-wt", "-nnodes", "-J"), "-W 0:05"),
        "pbs": ("#PBS", ("select=", "walltime="), "-l walltime=0:05:00"),
    }[site.scheduler]
    header, own = (
        [line for line in text.splitlines() if line.startswith(mark) and not any(f" {word}" in line for word in shaped)]
        for text in (script, scripts(name).get(8) or scripts(name)[site.defaults.nodes[-1]])
    )
    assert header == own
    assert f"{mark} {limit}\n" in script
    assert f"\nrun bash facts.sh {site.interface}\n" in script
    check_shell(tmp_path / "job.sh", script)
    check_shell(tmp_path / "facts.sh", files["jobs/check/facts.sh"])


@pytest.mark.parametrize("name", SITES)
def test_a_cleaning_is_sound_shell_and_removes_only_when_it_is_told(name: str, tmp_path: Path) -> None:
    for remove in (False, True):
        files = render_clean(load_site(name), 8, TEMPLATES, remove=remove, gpubench="0")
        script = files["jobs/check/job.sh"].decode()
        assert f"\nrun bash left.sh {'remove' if remove else 'list'}\n" in script
        assert "enroot remove" not in script
        check_shell(tmp_path / "job.sh", script)
        check_shell(tmp_path / "left.sh", files["jobs/check/left.sh"])
