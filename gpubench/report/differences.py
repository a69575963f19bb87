"""What differs between two variants, between two runs, or between two campaigns."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, UsageError
from gpubench.model.base import nearest
from gpubench.model.cell_names import cell_names
from gpubench.model.plan import PlannedVariant
from gpubench.model.text import counted
from gpubench.render.environment import command_line
from gpubench.report import labels
from gpubench.report.explain import differences_section, layers
from gpubench.report.sections import Section, SectionPart
from gpubench.results.judging import expected_of, judge_campaign
from gpubench.results.merge.environment import PlannedEnvironment
from gpubench.results.merge.explain import explain
from gpubench.results.targets import chosen_campaign, is_kept, root_of
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunResult, account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_record, run_directories


@dataclasses.dataclass(frozen=True)
class ChosenRun:
    """One run that has a directory, with the campaign that it belongs to."""

    campaign: Campaign
    run: RunResult

    @property
    def variant(self) -> PlannedVariant:
        """Its variant."""
        return _variant(self.campaign, self.run.run.variant)

    @property
    def about(self) -> dict[str, Any]:
        """Which run this is."""
        run = self.run
        return {
            "run": run.directory.name if run.directory else "",
            "campaign": self.campaign.plan.campaign,
            "variant": run.run.variant,
            "block": run.block.block,
            "order": run.run.order,
            "status": run.status,
            "started_at": run.record.started_at if run.record else "",
        }

    @property
    def document(self) -> dict[str, Any]:
        """The run's plan, as plain data."""
        plan, job = self.campaign.plan, self.run.job
        return {
            "image": _manifest(self.campaign, self.variant),
            "plan": {
                **{name: getattr(plan, name) for name in ("suite", "protocol", "device", "threads_per_worker")},
                **{name: getattr(job, name) for name in ("nodes", "workers_per_node", "memory_limit")},
                "gpubench": plan.gpubench,
                "workloads": {workload.params_id: workload.name for workload in plan.workloads},
                "site": plan.site.model_dump(mode="json"),
                "settings": self.variant.env,
            },
        }


def differences(first: str | None, second: str | None, where: Path | None) -> Section:
    """What differs between two variants of a campaign, two runs, or two campaigns.

    Args:
        first, second: labels of variants; ids of runs, the beginning of them, or their directories; or campaigns.
            ``first`` alone: a campaign of two variants; neither: the newest one.
        where: campaign of variants and ids; None: the newest with results.

    Raises:
        UsageError: there is no such thing, or several.
        DataError: the variants have no block in common, or a campaign has no run.
    """
    return _of_both_variants(first) if second is None else _of_two(first or "", second, where)


def _of_both_variants(campaign: str | None) -> Section:
    if campaign and not is_kept(root_of(Path(campaign))):
        raise UsageError(
            f"'{campaign}' is no campaign, and nothing is named to compare it with",
            then="name another variant or run after it",
        )
    kept = chosen_campaign(Path(campaign) if campaign else None, None, with_results=True)
    variants = [variant.label for variant in kept.plan.variants]
    if len(variants) != 2:
        named = ", ".join(variants)
        have = counted(len(variants), "variant")
        raise UsageError(f"{kept.directory} has {have}: {named}", then="type: gpubench diff A B")
    candidate = next(label for label in variants if label != kept.plan.baseline)
    return _of_variants(kept, kept.plan.baseline, candidate)


def _of_two(first: str, second: str, where: Path | None) -> Section:
    names, paths = (first, second), (Path(first), Path(second))
    runs = [_is_run(path) for path in paths]
    if where is None and not any(runs) and all(name and is_kept(root_of(Path(name))) for name in names):
        return _of_campaigns(*paths)
    if all(runs):
        return _of_runs(_of_directory(paths[0]), _of_directory(paths[1]))
    campaign = chosen_campaign(where, None, with_results=True)
    if not any(runs) and {variant.label for variant in campaign.plan.variants} & {*names}:
        return _of_variants(campaign, first, second)
    chosen = [
        _of_directory(path) if run else _named(name, campaign)
        for name, path, run in zip(names, paths, runs, strict=True)
    ]
    return _of_runs(chosen[0], chosen[1])


def _is_run(path: Path) -> bool:
    """Whether it is a run's directory."""
    runs = path.resolve().parent
    return path.is_dir() and runs.name == "runs" and is_kept(runs.parent)


def _of_variants(campaign: Campaign, baseline: str, candidate: str) -> Section:
    variants = [_variant(campaign, label) for label in (baseline, candidate)]
    blocks: dict[tuple[Any, int], dict[str, RunResult]] = {}
    for run in account(campaign).outcomes:
        if run.directory and run.run.variant in (baseline, candidate):
            blocks.setdefault((run.job.place, run.block.block), {})[run.run.variant] = run
    pairs = [(sides[baseline], sides[candidate]) for sides in blocks.values() if len(sides) == 2]
    if not pairs:
        raise DataError(f"{campaign.directory}: {baseline} and {candidate} ran together in no block")
    documents = [{"image": _manifest(campaign, variant), "settings": variant.env} for variant in variants]
    explained = explain(pairs, baseline, candidate, expected_of(campaign), documents)
    sides = [{"campaign": campaign.plan.campaign, "variant": label} for label in (baseline, candidate)]
    count = f"{explained.blocks} block{'s'[: explained.blocks != 1]}"
    about = f"{baseline} → {candidate}, {count} of {campaign.plan.campaign}"
    section = differences_section(explained, "variants", sides, (baseline, candidate), [about])
    pair = {baseline, candidate}
    judged = judge_campaign(campaign).verdicts
    verdicts = [verdict for verdict in judged if {verdict.baseline, verdict.candidate} == pair]
    if not verdicts:  # two candidates
        line = command_line(
            ["gpubench", "compare", str(campaign.directory), "--baseline", baseline, "--candidate", candidate]
        )
        return dataclasses.replace(section, notes=[f"whether the differences matter: {line}"])
    return _with_outcome(section, verdicts)


def _with_outcome(section: Section, verdicts: Sequence[Verdict]) -> Section:
    """With what came of the differences, and in which layer, where that was measured."""
    pair, names = labels.pair(verdicts[0]), cell_names([verdict.key for verdict in verdicts])
    shown = [
        f"{name}: {' '.join(filter(None, (labels.effect(verdict), labels.interval(verdict))))}, "
        f"{', '.join(filter(None, (verdict.verdict, verdict.leaning)))}"
        for name, verdict in zip(names, verdicts, strict=True)
    ]
    cells = [
        {"cell": name, "verdict": verdict.verdict, "effect": verdict.effect}
        for name, verdict in zip(names, verdicts, strict=True)
    ]
    lines, layer_effects = layers(verdicts)
    parts = [SectionPart(f"Whether it matters ({pair}):", shown)]
    parts += [SectionPart(f"In which layer ({pair}):", lines)] if lines else []
    data = {**section.data, "verdicts": cells, **({"layers": layer_effects} if lines else {})}
    return dataclasses.replace(section, parts=[*section.parts, *parts], data=data)


def _of_runs(first: ChosenRun, second: ChosenRun, kind: str = "runs", notes: Sequence[str] = ()) -> Section:
    explained = explain(
        [(first.run, second.run)], "A", "B", _expected(first, second), [first.document, second.document]
    )
    about = [f"{side}: {_run_text(each.about)}" for side, each in (("A", first), ("B", second))]
    section = differences_section(explained, kind, [first.about, second.about], ("A", "B"), about)
    return dataclasses.replace(section, notes=notes)


def _of_campaigns(first: Path, second: Path) -> Section:
    """Compare the first ok run of each campaign, of a variant that both have if possible."""
    if root_of(first).resolve() == root_of(second).resolve():
        raise UsageError(f"{first} is named twice", then="its own variants are compared by: gpubench diff A B DIR")
    campaigns = [chosen_campaign(path, None) for path in (first, second)]
    labels = [
        [campaign.plan.baseline, *(variant.label for variant in campaign.plan.variants)] for campaign in campaigns
    ]
    common = next((label for label in labels[0] if label in labels[1]), None)
    runs = [_first_run(campaign, common or campaign.plan.baseline) for campaign in campaigns]
    judge = command_line(["gpubench", "compare", str(first), str(second)])
    note = f"compared by the first ok run of each campaign; to see whether the differences matter: {judge}"
    return _of_runs(runs[0], runs[1], "campaigns", [note])


def _first_run(campaign: Campaign, label: str) -> ChosenRun:
    for result in account(campaign).outcomes:
        if result.directory and result.status == "ok" and result.run.variant == label:
            return ChosenRun(campaign, result)
    raise DataError(f"{campaign.directory}: no run of {label} is ok", then="gpubench status shows how the runs ended")


def _run_text(about: Mapping[str, Any]) -> str:
    return (
        f"run {about['run']} of {about['campaign']}, variant {about['variant']}, block {about['block']}, "
        f"{about['status']}{', ' + about['started_at'][:19] if about['started_at'] else ''}"
    )


def _of_directory(path: Path) -> ChosenRun:
    path = path.resolve()
    campaign = Campaign.open(path.parent.parent)
    runs = {directory.path.name: directory.run for directory in run_directories(campaign.runs_dir)}
    results = {result.run.run: result for result in account(campaign).outcomes}
    result = results.get(runs.get(path.name, ""))
    if result is None:
        raise UsageError(f"{path} is no run directory of {campaign.directory}")
    return ChosenRun(campaign, dataclasses.replace(result, directory=path, record=read_record(path)))


def _named(name: str, campaign: Campaign) -> ChosenRun:
    outcomes = [result for result in account(campaign).outcomes if result.directory]
    matching = [result for result in outcomes if result.directory and result.directory.name.startswith(name)]
    if not matching or not name:
        variants = [variant.label for variant in campaign.plan.variants]
        raise UsageError(
            f"{campaign.directory} has no run '{name}', and no variant of that name{nearest(name, variants)}",
            then="its runs are in runs/; or name a run's directory",
        )
    if len(matching) > 1:
        raise UsageError(f"'{name}' begins {len(matching)} runs of {campaign.directory}", then="write more of it")
    return ChosenRun(campaign, matching[0])


def _expected(first: ChosenRun, second: ChosenRun) -> PlannedEnvironment:
    """What may differ between the two runs: as between two variants of one plan, each with its own site's settings."""
    plans = [each.campaign.plan for each in (first, second)]
    variants = [
        each.variant.model_copy(update={"label": label, "env": {**plan.site.env, **each.variant.env}})
        for label, each, plan in zip("AB", (first, second), plans, strict=True)
    ]
    site = plans[0].site.model_copy(update={"env": {}})
    own = [expected_of(each.campaign) for each in (first, second)]
    return PlannedEnvironment(
        plans[0].model_copy(update={"variants": variants, "site": site}),
        {**own[0].manifests, **own[1].manifests},
        {
            label: each.by_binding.get(side.run.run.variant, {})
            for label, each, side in zip("AB", own, (first, second), strict=True)
        },
        tuple(pattern for pattern in own[0].allow if pattern in own[1].allow),
    )


def _variant(campaign: Campaign, label: str) -> PlannedVariant:
    labels = [variant.label for variant in campaign.plan.variants]
    if label not in labels:
        raise UsageError(f"campaign {campaign.plan.campaign} has no variant '{label}'{nearest(label, labels)}")
    return campaign.plan.variants[labels.index(label)]


def _manifest(campaign: Campaign, variant: PlannedVariant) -> Any:
    return campaign.manifests().get(variant.image.manifest, {}) if variant.image else {}
