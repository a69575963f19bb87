"""A plan as lines for people."""

import json
from collections import Counter
from collections.abc import Iterator

from gpubench.images.obtain import kind_of, not_imported
from gpubench.images.variant_text import variant_text
from gpubench.model.cell_names import cell_names
from gpubench.model.plan import Plan
from gpubench.model.quantities import digits, format_seconds
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.plan.budget import node_hours
from gpubench.plan.detectable import POWER, assumed_power
from gpubench.plan.image_checks import check_image
from gpubench.plan.known_issues import issue_lines
from gpubench.store.campaign import PLAN_FILE, Campaign


def plan_lines(campaign: Campaign) -> Iterator[str]:
    """What will be run, how long it will take, and what it can find."""
    yield from cost_lines(campaign)
    yield from _finds(campaign.plan)


def cost_lines(campaign: Campaign) -> Iterator[str]:
    """What will be run, and how long it will take; needs no statistics."""
    plan = campaign.plan
    runs = list(campaign.rows())
    blocks = len({block.block for _, block, _ in runs})
    if caution := _undecidable(plan):
        yield caution
    written = (campaign.directory / PLAN_FILE).exists()
    yield f"campaign {campaign.directory}" if written else f"plan of {plan.campaign}: nothing is written or run"
    built = not_imported(plan.site, [variant.ucx for variant in plan.variants if variant.image is None])
    for variant in plan.variants:
        absent = "built, not imported yet" if variant.ucx in built else "not built"
        role = "  (baseline)" if variant.label == plan.baseline else ""
        yield f"  {variant.label}: {variant_text(variant, absent)}{role}"
    skipped = [bool(plan.skip_reason(job.nodes, run.variant)) for job, _, run in runs]
    impossible = [
        bool(plan.skip_reason(comparison.nodes, comparison.baseline, comparison.candidate))
        for comparison in plan.comparisons
    ]
    nodes, workers = (", ".join(map(str, sorted(set(counts)))) for counts in zip(*plan.places, strict=True))
    yield (
        f"  {counted(blocks, 'block')} x {counted(len(plan.variants), 'variant')} = "
        f"{_less_skipped(counted(len(runs), 'run'), sum(skipped))} "
        f"of suite {plan.suite} on site {plan.site.name}, nodes {nodes}, workers per node {workers}, "
        f"{_less_skipped(counted(len(plan.comparisons), 'comparison'), sum(impossible))}, "
        f"seed {plan.seed}"
    )
    costs = list(node_hours(campaign.whole_plan))  # with the blocks that were added
    total_s = sum(cost.seconds for cost in costs)
    yield f"  about {format_seconds(total_s)}: {format_seconds(plan.time.run_s)} a run ({plan.time.source})"
    sweep = len({workers_per_node for _, workers_per_node in plan.places}) > 1
    for cost in costs:
        layout = f" x {counted(cost.workers_per_node, 'worker')}" if sweep else ""
        yield (
            f"    {counted(cost.nodes, 'node')}{layout}: {counted(cost.jobs, 'job')}, {counted(cost.runs, 'run')}, "
            f"about {format_seconds(cost.seconds)} = {digits(cost.node_hours)} node-hours"
        )
    if plan.site.batch.jobs_per_user:
        yield f"  {queue_limit(plan.site)}: bench submits one after the other, submit has to be called again"
    for line in issue_lines(plan.known_issues):
        yield f"  {line}"
    for note in plan.notes:
        yield f"  {note}"
    for check in check_image(plan.site, kind_of(plan.site)):
        if not check.ok:
            yield f"  caution: {check.what}"
    if plan.protocol == "ucx":  # whose listeners can't be bound to an address
        yield f"  scheduler, workers and clients listen on {plan.listeners}"


def _less_skipped(all_of_them: str, skipped: int) -> str:
    return f"{all_of_them} ({skipped} of them skipped)" if skipped else all_of_them


def without_images(plan: Plan) -> str:
    """The variants that have no image, by their labels."""
    return ", ".join(variant.label for variant in plan.variants if variant.image is None)


def queue_limit(site: Site) -> str:
    """What the queue allows a user, in words."""
    return f"queue {site.batch.queue} takes {counted(site.batch.jobs_per_user, 'job')} of a user at a time"


def _finds(plan: Plan) -> Iterator[str]:
    """The differences that the planned blocks can detect, by the noise of an earlier campaign or by assumed noise."""
    blocks = _blocks(plan)
    if not plan.foreseen:
        # After a first pass a note of the plan says it, with its scatter. One block or two carry no verdict.
        if not plan.first_pass and plan.comparisons and blocks >= 3:
            yield f"  {assumed_power(plan, blocks)}"
        return
    these = counted(blocks, "block")
    # One figure for all where the earlier campaign doesn't tell them apart: see sigma_from_history.
    pooled = len(plan.foreseen) > len({foreseen.sigma for foreseen in plan.foreseen}) == 1
    noise = "the noise of an earlier campaign like this"
    yield f"  what {these} can find, with {100 * POWER:g} % power and {noise}:"
    names = ["each workload, whose noise can't be told apart"] if pooled else _foreseen_names(plan)
    for foreseen, name in zip(plan.foreseen, names, strict=False):
        upper = f"(up to {digits(100 * foreseen.detectable_upper)} %, since that noise is uncertain)"
        least = f"{digits(100 * foreseen.detectable)} % or more {upper}"
        ways = [
            f"{what} would take {_price(plan, needed)}"
            for needed, what in (
                (foreseen.blocks_for_margin, f"{100 * plan.margin:g} %"),
                (foreseen.blocks_for_equivalence, "'equivalent'"),
            )
            if needed is None or needed > blocks
        ]
        yield f"    {name}: differences of {'; '.join([least, *ways])}"


def _blocks(plan: Plan) -> int:
    """Blocks at each place."""
    at = Counter(job.place for job in plan.jobs for _ in job.blocks)
    return max(at.values())


def _price(plan: Plan, blocks: int | None) -> str:
    if blocks is None:
        return "over 200 blocks"
    return f"{counted(blocks, 'block')} (about {format_seconds(blocks * plan.time.block_s * len(plan.places))})"


def _foreseen_names(plan: Plan) -> list[str]:
    params = {item.params_id: json.dumps(item.params) for item in plan.workloads}
    cell = {"workload", "nodes", "workers_per_node"}
    return cell_names(
        [foreseen.model_dump(include=cell) | {"params": params[foreseen.params_id]} for foreseen in plan.foreseen]
    )


def _undecidable(plan: Plan) -> str:
    """The first line of a plan that can decide no workload at its margin; empty for any other plan."""
    blocks = _blocks(plan)
    ways = [
        need for foreseen in plan.foreseen for need in (foreseen.blocks_for_margin, foreseen.blocks_for_equivalence)
    ]
    unknown = {item.params_id for item in plan.workloads} - {foreseen.params_id for foreseen in plan.foreseen}
    if not ways or unknown or any(need is not None and need <= blocks for need in ways):
        return ""
    least = min(foreseen.detectable for foreseen in plan.foreseen)
    return (
        f"caution: with this noise, no workload is likely to be decided at the margin of {100 * plan.margin:g} %; "
        f"{100 * POWER:g} % power is for differences of {digits(100 * least)} % or more"
    )
