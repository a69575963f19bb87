"""What differs, in words: on a campaign's page, as cautions beside verdicts, and for ``gpubench diff``."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpubench.model.cell_names import cell_names, workload_key
from gpubench.model.plan import Plan, PlannedVariant
from gpubench.model.text import counted, shortened
from gpubench.report.facts import facts_table
from gpubench.report.provenance import ucx_in_force
from gpubench.report.sections import ColumnStyle, Heading, Medium, Section, SectionPart, TextSpan, TextTable
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.results.merge.environment_changes import Changes
from gpubench.results.merge.evidence import NOISE
from gpubench.results.merge.explain import Explained, FieldDifference, planned_values
from gpubench.results.merge.large_messages import another_way
from gpubench.results.merge.provenance import UNSET
from gpubench.stats.flags import NO_TRAFFIC
from gpubench.stats.margin import Margin
from gpubench.stats.paired_difference import PairedDifference
from gpubench.store.accounting import RunResult

SCHEMA = "gpubench/explain/1"
_WIDTH = 80
_MOST_PLANNED = 25
"""Planned differences that a terminal shows: two stacks may differ in a hundred packages."""
WHY = {
    "known": "set by the binding where no variant sets it",
    "allowed": "allowed to change",
    "": "not asked for",
}
_COMPARED = "Python, library versions, environment variables in force, hosts, kernel, CPU, memory and network"


def planned_document(variant: PlannedVariant, manifests: Mapping[str, Any]) -> dict[str, Any]:
    """What was planned for a variant, as plain data: its image's manifest and its settings."""
    return {"image": manifests.get(variant.image.manifest, {}) if variant.image else {}, "settings": variant.env}


def differing(inputs: JudgedCampaign) -> dict[str, Sequence[str]]:
    """By field, the value of every variant: as planned, and what differed within blocks while they ran."""
    documents = [planned_document(variant, inputs.manifests) for variant in inputs.plan.variants]
    return {**planned_values(documents), **inputs.changes.values}


def variants_section(inputs: JudgedCampaign) -> Section:
    """What differs between the variants of a campaign."""
    differ = differing(inputs)
    same = "The rest of manifests and settings is the same" if differ else "Manifests and settings are the same"
    in_blocks = f"within every block, {'all others of ' if differ else ''}{_COMPARED} are the same, too"
    if not any(verdict.blocks for verdict in inputs.verdicts):
        in_blocks = "no block has runs of two variants that are ok, so nothing is known of their processes and nodes"
    parts = [SectionPart(text=[TextSpan(f"{same}; {in_blocks}.", "quiet")])]
    if differ:
        parts.insert(0, SectionPart(table=facts_table(inputs.plan, differ, "Values in which the variants differ")))
    return Section(
        parts,
        title="What differs between the variants",
        anchor="differs",
        medium=Medium.PAGE,
    )


def cautions(inputs: JudgedCampaign) -> list[str]:
    """Notes beside the verdicts.

    Another margin than planned, blocks that were added, failed runs, unplanned differences, settings of transports that
    changed none, and how UCX moves large messages where that may be why a variant is slower or faster.
    """
    failures, transports = (read(inputs.plan, inputs.outcomes) for read in (_failures, _same_transports))
    others = unplanned(inputs.plan, inputs.changes)
    return [*_other_margin(inputs), *_looks(inputs), *failures, *others, *transports, *_other_ways(inputs)]


def added_blocks(inputs: JudgedCampaign) -> int:
    """How many blocks there are that were neither planned at first nor stand for broken ones."""
    planned = {block.block for job in inputs.plan.jobs for block in job.blocks}
    blocks = {outcome.block.block for outcome in inputs.outcomes if outcome.block.replaces is None}
    return len(blocks - planned)


def _looks(inputs: JudgedCampaign) -> Iterator[str]:
    """On blocks that were added after a look at the results.

    The chances of two and three looks at equal distances: Armitage, McPherson and Rowe (1969), J. R. Stat. Soc. A
    132:235, table 2.
    """
    if count := added_blocks(inputs):
        yield (
            f"{counted(count, 'block')} {'was' if count == 1 else 'were'} added after the results had been looked at: "
            "the chance of a false alarm is above the planned 5 % (about 8 % with two looks, 11 % with three); a new "
            "campaign can confirm what it shows"
        )


def same_twice(inputs: JudgedCampaign) -> list[str]:
    """Sentences about candidates that are the baseline itself under another name (A against A)."""
    baseline, *candidates = inputs.plan.variants
    return [
        f"{variant.label} is the same image with the same settings as {baseline.label} (A against A): "
        "any difference between them is noise or a false alarm."
        for variant in candidates
        if any(same(inputs, variant) == same(inputs, baseline) != () for same in (_as_planned, _as_run))
    ]


def _as_planned(inputs: JudgedCampaign, variant: PlannedVariant) -> tuple[str, list[tuple[str, str]]]:
    """The image and the variables: a variant that sets what the site sets anyway differs in nothing."""
    image = variant.image.id if variant.image else variant.ucx
    return image, sorted({**inputs.plan.site.env, **variant.env}.items())


def _as_run(inputs: JudgedCampaign, variant: PlannedVariant) -> tuple[object, ...]:
    """With ``UCX_*`` as in force in the processes: nor does one that sets what the binding sets. Empty: not known."""
    image, variables = _as_planned(inputs, variant)
    in_force = {ucx_in_force(run.facts) for run in inputs.evidence_of(variant.label)} - {""}
    others = [(name, value) for name, value in variables if not name.startswith("UCX_")]
    return (image, others, in_force) if in_force else ()


def _other_ways(inputs: JudgedCampaign) -> Iterator[str]:
    """Of each pair of which one is slower in a workload that moves data."""
    decided = [verdict for verdict in inputs.verdicts if verdict.verdict in ("regression", "improvement")]
    moving = [verdict for verdict in decided if NO_TRAFFIC not in verdict.flags]
    for pair in dict.fromkeys((verdict.baseline, verdict.candidate) for verdict in moving):
        sides = {label: [run.facts for run in inputs.evidence_of(label)] for label in pair}
        if line := another_way(sides):
            yield line


def _other_margin(inputs: JudgedCampaign) -> Iterator[str]:
    """A margin that is chosen after a look at the results can make anything equivalent."""
    margin, planned = inputs.settings.margin, Margin(inputs.plan.margin)
    if margin != planned:
        yield f"the campaign was planned with a margin of ±{planned.percent}, not ±{margin.percent}"


def _failures(plan: Plan, outcomes: Iterable[RunResult]) -> Iterator[str]:
    """Of each variant the runs that failed, or in which a workload did, with the first reason.

    A crash matters as much as a time.
    """
    names = cell_names([workload_key(workload) for workload in plan.workloads])
    workloads = {workload.params_id: name for workload, name in zip(plan.workloads, names, strict=True)}
    runs = list(outcomes)
    for label in (variant.label for variant in plan.variants):
        of_variant = [outcome for outcome in runs if outcome.run.variant == label]
        reasons: dict[str, list[str]] = {}
        for outcome in of_variant:
            if outcome.status == "failed":
                reasons.setdefault("", []).append(outcome.reason)
            for item in outcome.in_part:
                if item.status == "failed":
                    reasons.setdefault(workloads[item.params_id], []).append(item.reason)
        for workload, of_workload in reasons.items():
            which = f"{len(of_workload)} of {counted(len(of_variant), 'run')} of {label}"
            what = f"{workload} failed in {which}" if workload else f"{which} failed"
            other = ", and others" if len(set(of_workload)) > 1 else ""
            yield f"{what}: {shortened(of_workload[0], 120)}{other}"


def _same_transports(plan: Plan, outcomes: Iterable[RunResult]) -> Iterator[str]:
    """Comparisons of two settings of ``UCX_TLS`` whose runs used the same transports all the same."""
    seen: dict[str, set[tuple[str, ...]]] = {variant.label: set() for variant in plan.variants}
    for outcome in outcomes:
        if outcome.record and outcome.status == "ok" and outcome.record.transport:
            seen[outcome.run.variant].add(tuple(sorted(outcome.record.transport)))
    settings = {variant.label: {**plan.site.env, **variant.env}.get("UCX_TLS") for variant in plan.variants}
    for pair in plan.comparisons:
        (first, second), used = (pair.baseline, pair.candidate), seen[pair.baseline]
        if settings[first] != settings[second] and used and used == seen[second]:
            named = " or ".join(", ".join(transports) for transports in sorted(used))
            yield (
                f"{first} and {second} differ in UCX_TLS, but the runs of both used {named}: "
                "no other transport is compared"
            )


def unplanned(plan: Plan, changes: Changes) -> list[str]:
    """Lines about differences within blocks that neither the variants nor the images asked for.

    Where many fields of one kind differ (interfaces, variables) there is one line, which says the first of them.
    """
    by_kind: dict[tuple[str, str], list[str]] = {}
    for change in changes.by_field():
        if change.why == "known":
            by_kind.setdefault(("", change.why), []).append(_bound(plan, changes, change.field))
        elif change.why != "planned":
            pairs = zip(plan.variants, changes.values[change.field], strict=True)
            values = ", ".join(f"{value} in {variant.label}" for variant, value in pairs)
            by_kind.setdefault((change.field.split(".", 1)[0], change.why), []).append(f"{change.field} is {values}")
    lines = []
    for (kind, why), fields in by_kind.items():
        many = [f"{len(fields)} fields of {kind}, the first: {fields[0]}"]
        if why == "known":
            count = "one setting differs" if len(fields) == 1 else f"{len(fields)} settings differ"
            lines.append(f"besides what was asked for, {count}: the binding sets {'; '.join(fields)}")
            continue
        lines += [
            f"unplanned difference: {text} ({WHY[why]}{'' if why else ', so it blocks the comparison'})"
            for text in (many if len(fields) > _MANY else fields)
        ]
    return lines


def _bound(plan: Plan, changes: Changes, field: str) -> str:
    """``UCX_PROTO_ENABLE=n for 1.17.0``, of a variable that the binding sets for some variants."""
    name = field.partition(".")[2]
    pairs = zip(plan.variants, changes.values[field], strict=True)
    bound = [(variant.label, value) for variant, value in pairs if value != UNSET and name not in variant.env]
    return " and ".join(f"{name}={value} for {label}" for label, value in bound)


_MANY = 6


def diff_section(
    explained: Explained, sides: Sequence[Mapping[str, Any]], names: Sequence[str], about: Sequence[str]
) -> Section:
    """Of two sides; at most 80 columns wide. ``sides`` say for programs which they are."""
    planned = [difference for difference in explained.differences if difference.why == "planned"]
    others = [difference for difference in explained.differences if difference.why != "planned"]
    more = [f"and {len(planned) - _MOST_PLANNED} more: --json"] if len(planned) > _MOST_PLANNED else []
    parts = [SectionPart(lines=about)]
    for title, lines in (
        ("Planned differences", [*map(_difference_text, planned[:_MOST_PLANNED]), *more]),
        ("Differences that the plan didn't ask for", [*map(_difference_text, others)]),
    ):
        parts.append(SectionPart(f"{title}{':' if lines else ': none.'}", lines))
    data = {
        "schema": SCHEMA,
        "sides": list(sides),
        "blocks": explained.blocks,
        "differences": [dataclasses.asdict(difference) for difference in explained.differences],
        "noise": {
            name: {"what": NOISE[name], **dataclasses.asdict(difference)}
            for name, difference in explained.noise.items()
        },
    }
    return Section([*parts, *_noise(explained.noise, names, explained.blocks)], data, width=_WIDTH)


def _difference_text(difference: FieldDifference) -> str:
    notes = [] if difference.why == "planned" else [WHY[difference.why]]
    if difference.blocks > 1:
        notes.append(f"in {difference.differ} of {difference.blocks} blocks")
    return f"{difference.field}: {difference.before} → {difference.after}" + (
        f"  ({'; '.join(notes)})" if notes else ""
    )


def _noise(noise: Mapping[str, PairedDifference], sides: Sequence[str], blocks: int) -> Iterator[SectionPart]:
    if not noise:
        yield SectionPart("Noise: not recorded.")
        return
    single = blocks == 1
    names = [side if len(side) <= 12 else f"{side[:11]}…" for side in sides]
    ranked = sorted(noise.items(), key=lambda item: -abs(item[1].size or 0.0))
    numbers = [*names, "differ by", *([] if single else ["paired t"])]
    rows = [
        [_noise_name(name, difference.blocks, blocks), *_numbers(difference, single=single)]
        for name, difference in (noise.items() if single else ranked)
    ]
    yield SectionPart(
        "Noise:" if single else f"Noise (means over {blocks} blocks; t of the differences within blocks):",
        table=TextTable(["", *(Heading(name, ColumnStyle.NUMBER) for name in numbers)], rows, numbers=True),
    )
    if not single:
        line = (
            "A number with a large t went with the variant: the times may have followed it. "
            f"Of {len(rows)} numbers, one may have |t| of 2 to 3 by chance."
        )
        yield SectionPart(lines=[line])


def _noise_name(name: str, recorded: int, blocks: int) -> str:
    """What a number is, and in how many blocks it was recorded if not in all."""
    return NOISE[name] if recorded == blocks else f"{NOISE[name]} (in {recorded})"


def _numbers(difference: PairedDifference, *, single: bool) -> list[str]:
    t = "–" if difference.t is None else f"{difference.t:z.1f}"
    return [
        f"{difference.before:.2f}",
        f"{difference.after:.2f}",
        f"{difference.difference:+z.2f}",
        *([] if single else [t]),
    ]
