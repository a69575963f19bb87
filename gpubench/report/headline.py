"""The answer in plain words: what was compared, what was found, how sure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from gpubench.model.plan import Plan, PlannedVariant
from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.report.inputs import ReportInputs
from gpubench.report.runs import run_counts
from gpubench.spec.turns import INTERLEAVED, SEQUENTIAL
from gpubench.spec.waiting import polls
from gpubench.stats.verdict import Verdict

ARRANGEMENTS = {
    SEQUENTIAL: "sequential: in a block one variant's cluster ran after the other's",
    INTERLEAVED: "interleaved: the clusters of a block were alive at the same time, and their repetitions took turns",
}
ENOUGH_FOR_STRAGGLERS = 30
"""Repetitions a run: with 6, a candidate with 5 % stragglers of twice the time is found in one campaign of ten."""


def answer(inputs: ReportInputs) -> list[str]:
    """One sentence per candidate, e.g. ``1.19.0 is slower than 1.17.0 in 1 of 5 comparisons: merge +12.3 %.``"""
    names = dict(zip(map(id, inputs.verdicts), labels.cell_names([one.key for one in inputs.verdicts]), strict=True))
    margin = f"±{inputs.settings.margin.percent}"
    return [_sentence(rows, names, margin) for rows in by_candidate(inputs.verdicts)] or ["No comparison was planned."]


def certainty(inputs: ReportInputs) -> str:
    """How sure the answer is, and by what rule."""
    family, alpha = len(inputs.verdicts), f"{100 * inputs.settings.alpha:g} %"
    together = f", over all {family} comparisons together" if family > 1 else ""
    rule = (
        f"If nothing differed at all, a campaign like this one would still call a regression or an improvement in at "
        f"most {alpha} of cases{together}. “Equivalent” means that "
        f"{_equivalent(inputs)}; “inconclusive” means that these data can’t tell."
    )
    if family > 1:
        rule += (
            " The interval beside a verdict is at the level of Holm’s step, so that it lies beyond zero only where a "
            "difference was shown; that of an “equivalent” one is its own."
        )
    look = inputs.settings.look
    if look is not None:
        rule += (
            f" The campaign was looked at while it ran, after 5, 6, then every second block, and at {look.maximum} at "
            "most: what was decided was not run again. Intervals and p-values pay for that, and are wider and larger "
            "than those of a fixed plan."
        )
    rule += _rare_stragglers(inputs)
    if unchecked := sorted({str(one.key["workload"]) for one in inputs.verdicts if "unchecked" in one.flags}):
        rule += f" Nobody checked the answers of {', '.join(unchecked)}: what is fast because it is wrong counts, too."
    if any(one.one_job for one in inputs.verdicts):
        rule += " Several blocks share an allocation, so the answer holds on these nodes."
    return rule


def _rare_stragglers(inputs: ReportInputs) -> str:
    """What these samples can't have seen, and how to see more."""
    limits = [100 * one.straggler_limit for one in inputs.verdicts if one.straggler_limit is not None]
    if not limits:
        return ""
    low, high = f"{min(limits):.2g}", f"{max(limits):.2g}"
    text = f" Stragglers rarer than {low if low == high else f'{low} to {high}'} % of samples can’t be excluded"
    few = min(one.reps for one in inputs.plan.workloads) < ENOUGH_FOR_STRAGGLERS
    return f"{text}; where they matter, run {ENOUGH_FOR_STRAGGLERS} repetitions or more." if few else f"{text}."


def _equivalent(inputs: ReportInputs) -> str:
    margin = f"±{inputs.settings.margin.percent}"
    if inputs.settings.look is not None:
        return f"at some look both one-sided tests put the effect within {margin}"
    return f"the {100 * (1 - 2 * inputs.settings.alpha):g} % interval lies within {margin}"


def about(inputs: ReportInputs) -> str:
    """What was compared, where and when, in a line."""
    plan = inputs.plan
    blocks = counted(len({one.block.block for one in inputs.outcomes}), "block")
    compared = " and ".join(f"{others} against {baseline}" for baseline, others in _compared(inputs).items())
    return f"{compared} · suite {plan.suite} on {plan.site.name} · {blocks} · {moment(inputs.generated_at)}"


def _compared(inputs: ReportInputs) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for one in inputs.verdicts:
        found.setdefault(one.baseline, []).append(one.candidate)
    return {baseline: ", ".join(dict.fromkeys(others)) for baseline, others in found.items()}


def facts(inputs: ReportInputs) -> list[tuple[str, str]]:
    """What was run, in a few words each."""
    plan = inputs.plan
    nodes = sorted({one.job.nodes for one in inputs.outcomes})
    workers = sorted({one.job.workers_per_node for one in inputs.outcomes})
    blocks = {one.block.block for one in inputs.outcomes}
    threads = f", {plan.threads_per_worker} thread{'' if plan.threads_per_worker == 1 else 's'} each"
    return [
        ("campaign", plan.campaign),
        ("site", plan.site.name),
        ("suite", plan.suite),
        ("planned", moment(dt.datetime.fromisoformat(plan.created_at))),
        ("nodes", ", ".join(map(str, nodes))),
        ("workers per node", f"{', '.join(map(str, workers))}{threads}"),
        ("protocol", f"{plan.protocol} on {plan.device}"),
        ("blocks", f"{len(blocks)}, each of {len(plan.variants)} variants in an order shuffled from seed {plan.seed}"),
        ("arrangement", ARRANGEMENTS[plan.site.layout.arrangement]),
        ("waiting", _waiting(plan)),
        ("runs", run_counts(inputs.outcomes)),
        ("gpubench", plan.gpubench),
    ]


def _waiting(plan: Plan) -> str:
    polling = [one.label for one in plan.variants if polls(plan.protocol, {**plan.site.env, **one.env})]
    if not polling:
        return "processes that wait for messages sleep"
    which = "" if len(polling) == len(plan.variants) else f" under {', '.join(polling)}"
    return f"processes that wait for messages poll{which}: each takes a core also when it has nothing to do"


def moment(when: dt.datetime) -> str:
    """``2025-11-20 14:00 UTC``."""
    return when.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def same_twice(plan: Plan) -> list[str]:
    """Sentences about candidates that are the baseline itself under another name (A against A)."""
    baseline = plan.variants[0]
    return [
        f"{one.label} is the same image with the same settings as {baseline.label} (A against A): "
        "whatever is found between them is noise or a false alarm."
        for one in plan.variants[1:]
        if _identity(plan, one) == _identity(plan, baseline)
    ]


def by_candidate(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """The verdicts of each (baseline, candidate), in the order in which they first appear."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for one in verdicts:
        groups.setdefault((one.baseline, one.candidate), []).append(one)
    return list(groups.values())


def _identity(plan: Plan, variant: PlannedVariant) -> tuple[object, ...]:
    """The image and the variables in force: a variant that sets what the site sets anyway differs in nothing."""
    image = variant.image.id if variant.image else variant.ucx
    return image, sorted({**plan.site.env, **variant.env}.items())


def _sentence(rows: Sequence[Verdict], names: Mapping[int, str], margin: str) -> str:
    """The differences that were shown, with their size; else what is likely; and how many of the rest are undecided."""
    candidate, baseline, total = rows[0].candidate, rows[0].baseline, len(rows)
    found = {word: [one for one in rows if one.verdict == word] for word in labels.MARKS}
    of = f"of {total} comparison{'' if total == 1 else 's'}"
    parts: list[str] = []
    named: list[str] = []
    for word, what in (("broken", "breaks"), ("regression", "is slower"), ("improvement", "is faster")):
        if found[word]:
            than = f" than {baseline}" if word != "broken" and f"than {baseline}" not in " ".join(parts) else ""
            parts.append(f"{what}{than} in {len(found[word])}")
            largest = sorted(found[word], key=lambda one: -abs(one.effect or 0.0))
            named.append(labels.listed(_named(one, names) for one in largest))
    unknown = len(found["inconclusive"])
    if parts:
        rest = f"; {unknown} inconclusive" if unknown else ""
        return f"{candidate} {' and '.join(parts)} {of}: {'; '.join(named)}{rest}."
    if not unknown:
        return f"{candidate} is as fast as {baseline} in all {total}, to within {margin}."
    likely = labels.listed(_named(one, names) for one in rows if one.leaning)
    known = f"; {total - unknown} equivalent to within {margin}" if unknown < total else ""
    leaning = f"; likely, but not proven: {likely}" if likely else ""
    return f"{candidate} against {baseline}: undecided in {unknown} {of}{known}{leaning}."


def _named(one: Verdict, names: Mapping[int, str]) -> str:
    return names[id(one)] if one.effect is None or one.verdict == "broken" else f"{names[id(one)]} {labels.effect(one)}"
