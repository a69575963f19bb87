"""A job's script and its run specs."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpubench.launchers import LAUNCHERS
from gpubench.model.image import UNRESOLVED, Image
from gpubench.model.plan import Plan, PlannedBlock, PlannedJob, PlannedRun
from gpubench.model.quantities import format_seconds
from gpubench.model.site import Site
from gpubench.model.variant import Variant
from gpubench.node.spec import Deadlines, RunSpec
from gpubench.node.spec.run import RUN_SPEC
from gpubench.node.spec.turns import END, INTERLEAVED, START, TURNS_SPEC, Turn, TurnsSpec
from gpubench.plan.block_design import SAFETY
from gpubench.render.jinja import environment
from gpubench.render.kubernetes_objects import CLIENT_VARIABLES, block_pods, image_of, objects
from gpubench.render.node_half import NODE_HALF
from gpubench.runtimes import RUNTIMES, Expanded, ImagePlace

TEMPLATE = ".j2"
OBJECTS = "job.yaml"
"""Jobs that are described to a cluster instead of being a script for a node."""
NODE_VARIABLES = (
    "GPUBENCH_CLOCK",
    "GPUBENCH_END",
    "GPUBENCH_JOB_TOKEN",
    "GPUBENCH_STOP_AT_EOF",
    "OUTDIR",
    "SCRATCHDIR",
)
"""What the job script tells the node half; with the rank, all that a container gets of the script's environment."""


GPUS = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_VISIBLE_DEVICES")
"""The GPUs that the scheduler gave to the job, and the service that shares them."""


def rendered(
    plan: Plan, jobs: Iterable[PlannedJob], templates: Mapping[str, str], node_pyz: bytes
) -> Iterator[dict[str, bytes]]:
    """The files of one job after the other, by path below the campaign: those of ten thousand runs are 30 MiB.

    Args:
        node_pyz: the packed node half; its hash goes into every spec.
    """
    shell = environment(templates)
    node_half = hashlib.sha256(node_pyz).hexdigest()
    for job in jobs:
        specs = {
            f"jobs/{job.job}/{block.spec_path(run)}": run_spec(plan, job, block, run, node_half).dump().encode()
            for block in job.blocks
            for run in block.runs
        }
        specs |= {
            f"jobs/{job.job}/{block.turns_path}": turns_spec(plan, job, block).dump().encode()
            for block in job.blocks
            if block.turns
        }
        name = job_file(plan.site.scheduler, templates)
        facts = _facts(plan, job)
        if name == OBJECTS:
            facts |= objects(plan, job, {**specs, NODE_HALF: node_pyz})
        text = shell.get_template(f"{plan.site.scheduler}/{name}{TEMPLATE}").render(facts)
        yield {f"jobs/{job.job}/{name}": text.encode(), **specs}


def job_file(scheduler: str, templates: Iterable[str]) -> str:
    """What a job is handed over as, by its template's name: ``job.sh``, ``job.yaml``."""
    folder = f"{scheduler}/"
    (name,) = [path.removeprefix(folder) for path in templates if path.startswith(f"{folder}job.")]
    return name.removesuffix(TEMPLATE)


def run_spec(plan: Plan, job: PlannedJob, block: PlannedBlock, run: PlannedRun, node_half: str) -> RunSpec:
    """All that the nodes need to know about one run."""
    variant = next(item for item in plan.variants if item.label == run.variant)
    image = variant.image or UNRESOLVED
    site = plan.site
    workloads = {item.params_id: item for item in plan.workloads}
    facts, pods = in_any_run_spec(site, image, variant), block_pods(plan, job, run)
    if pods:
        facts["env_allow"] = sorted({*site.env_allow, *CLIENT_VARIABLES})
    return RunSpec(
        **facts,
        campaign=plan.campaign,
        job=job.job,
        block=block.block,
        run=run.run,
        order=run.order,
        protocol=plan.protocol,
        device=plan.device,
        nodes=job.nodes,
        workers_per_node=job.workers_per_node,
        threads_per_worker=plan.threads_per_worker,
        memory_limit=job.memory_limit,
        env={**image.env, **site.env, **plan.workarounds(job.nodes), **variant.env, **pods},
        workloads=[workloads[params_id] for params_id in run.workloads],
        deadlines=Deadlines(start_s=site.limits.start, stop_s=site.limits.stop, silence_s=site.limits.silence),
        block_s=plan.time.block_s,
        node_half=node_half,
        client_on=site.layout.client,
        turns=[turn for turn in _turns(block) if turn.order == run.order],
        beside=[other.run for other in block.runs if block.turns and other.run != run.run],
    )


def in_any_run_spec(site: Site, image: Image, variant: Variant) -> dict[str, Any]:
    """What the specs of campaigns' runs and of standing clusters say alike of site, image and variant."""
    return {
        "schema": RUN_SPEC,
        "site": site.name,
        "variant": variant.label,
        "image": image.id,
        "ucx_version": image.ucx_version,
        "binding": image.binding,
        "interface": site.interface,
        "manifest": image.manifest,
        "env_allow": sorted(site.env_allow),
        "expect_transport": site.expect_transport,
        "need_transport": site.need_transport.model_dump(),
        "expect_ucx": release(image.ucx_version),
        "build_id": image.build_id,
        "build_manifest": image.build_manifest,
        "rmm_pool": str(site.layout.rmm_pool),
        "scheduler_on": site.layout.scheduler,
    }


def turns_spec(plan: Plan, job: PlannedJob, block: PlannedBlock) -> TurnsSpec:
    """All that the conductor of an interleaved block needs to know: each cluster starts, takes its turns, and ends."""
    limits = plan.site.limits
    runs = {run.order: run.run for run in block.runs if not plan.skip_reason(job.nodes, run.variant)}
    turns = [
        *(Turn(order, START) for order in runs),
        *(turn for turn in _turns(block) if turn.order in runs),
        *(Turn(order, END) for order in runs),
    ]
    # A run bounds its own turns; the conductor's bound is for a run that can't.
    longest = max(limits.start, limits.workload, *(item.timeout_s for item in plan.workloads))
    return TurnsSpec(
        schema=TURNS_SPEC,
        campaign=plan.campaign,
        block=block.block,
        runs={str(order): run for order, run in runs.items()},
        interface=plan.site.interface,
        turns=turns,
        start_s=limits.start,
        turn_s=longest + 2 * limits.stop,
        silence_s=limits.silence,
    )


def _turns(block: PlannedBlock) -> list[Turn]:
    orders = {run.variant: run.order for run in block.runs}
    places = {(run.variant, workload): at for run in block.runs for at, workload in enumerate(run.workloads)}
    return [Turn(orders[turn.variant], places[turn.variant, turn.workload], turn.reps) for turn in block.turns]


def release(version: str) -> str:
    """What the library says of itself: ``1.17.0`` for the wheel ``1.17.0.post1``."""
    return ".".join(version.split(".")[:3])


def _facts(plan: Plan, job: PlannedJob) -> dict[str, Any]:
    site = plan.site
    seconds = math.ceil(plan.time.block_s * SAFETY)
    blocks = [
        {
            "number": block.block,
            "seconds": seconds,
            "conductor": _conductor(plan, job, block),
            "commands": [
                (_step(plan, job, run), _in_image(plan, run, "run", "--spec", block.spec_path(run)))
                for run in block.runs
            ],
        }
        for block in job.blocks
    ]
    running = [run for block in job.blocks for run in block.runs if not plan.skip_reason(job.nodes, run.variant)]
    return {
        "job": job.job,
        "nodes": job.nodes,
        "blocks": blocks,
        "runs": len(running),
        "about": format_seconds(plan.time.run_s * len(running)),
        "limit_s": int(job.limit_s),
        "gpubench": plan.gpubench,
        "in_image": RUNTIMES[site.runtime].prefix(place_of(site, plan.device)),
        "images": make_ready(site.runtime, _started(plan, job)),
        "skips_runs": any(plan.skip_reason(job.nodes, run.variant) for block in job.blocks for run in block.runs),
        **of_the_site(site),
        "without_image": [variant.label for variant in plan.variants if variant.image is None],
        "interleaved": any(block.turns for block in job.blocks),
    }


def _started(plan: Plan, job: PlannedJob) -> list[Image]:
    """The images of the job's runs, but of those that are planned to be skipped, in the order of the variants."""
    labels = {run.variant for block in job.blocks for run in block.runs if not plan.skip_reason(job.nodes, run.variant)}
    return [item.image or UNRESOLVED for item in plan.variants if item.label in labels]


def make_ready(runtime: str, images: Iterable[Image]) -> list[list[str]]:
    """What has to be done with the images before the first run, in their order and each once."""
    commands = [RUNTIMES[runtime].make_ready(image) for image in images]
    return [command for at, command in enumerate(commands) if command and command not in commands[:at]]


def of_the_site(site: Site) -> dict[str, Any]:
    """What every script of a site is rendered with."""
    return {
        "node": site.node,
        "batch": site.batch,
        "interleaved": False,
        "without_image": [],
        "module_paths": site.setup.module_paths,
        "modules": site.setup.modules,
        "scheduler_on": site.layout.scheduler,
        "limits": site.limits,
        "scratch": [Expanded(site.paths.scratch)] if site.paths.scratch else [],
        "launcher": LAUNCHERS[site.launcher].template,
        "step_shape": LAUNCHERS[site.launcher].shape(site),
        "runtime": RUNTIMES[site.runtime].TEMPLATE,
        "leaves": RUNTIMES[site.runtime].DEFINES_LEAVE,
    }


def _step(plan: Plan, job: PlannedJob, run: PlannedRun) -> list[str]:
    """The function of the script that takes the command: runs it, or writes down why it isn't run."""
    why = plan.skip_reason(job.nodes, run.variant)
    if why:
        return ["skip_run", why]
    return ["begin_run"] if plan.site.layout.arrangement == INTERLEAVED else ["run"]


def _conductor(plan: Plan, job: PlannedJob, block: PlannedBlock) -> list[str]:
    """The command of the block's conductor, in the image of its first run; empty where runs follow one another."""
    running = [run for run in block.runs if not plan.skip_reason(job.nodes, run.variant)]
    return _in_image(plan, running[0], "conduct", "--spec", block.turns_path) if block.turns and running else []


def _in_image(plan: Plan, run: PlannedRun, *entry: str) -> list[str]:
    return RUNTIMES[plan.site.runtime].command(image_of(plan, run), [f"../../{NODE_HALF}", *entry])


def place_of(site: Site, device: str) -> ImagePlace:
    return ImagePlace(
        options=site.container.options,
        mounts=site.container.mounts,
        # PATH is the image's own: the host's names programs that aren't inside.
        passed=[
            *sorted([*NODE_VARIABLES, LAUNCHERS[site.launcher].rank, *(GPUS if device != "cpu" else ())]),
            *sorted(set(site.env_allow) - {"PATH"}),
        ],
        device=device,
        # Variables by which hooks of container runtimes give devices to a container; here they are to give none.
        hidden=["NVIDIA_VISIBLE_DEVICES", *([] if site.image.fabric else ["MELLANOX_VISIBLE_DEVICES"])]
        if device == "cpu"
        else [],
    )
