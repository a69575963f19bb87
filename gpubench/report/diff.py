"""``gpubench diff``: two variants of a campaign, two runs, or two campaigns, as two sides of runs."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, UsageError
from gpubench.model.base import nearest
from gpubench.model.cell_names import cell_names
from gpubench.model.plan import PlannedVariant
from gpubench.model.text import counted
from gpubench.render.shell import command_line
from gpubench.report import labels
from gpubench.report.differences import diff_section, planned_document
from gpubench.report.layers import layers
from gpubench.report.sections import Section, SectionPart
from gpubench.results.judging import judge_campaign
from gpubench.results.merge.environment_changes import PlannedEnvironment, planned_environment
from gpubench.results.merge.evidence import Evidence, evidence
from gpubench.results.merge.explain import explain
from gpubench.results.targets import chosen_campaign, is_kept, root_of
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunResult, account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_record, run_directories


@dataclasses.dataclass(frozen=True)
class Side:
    """Runs of one variant of a campaign that have a directory: all of them, or one that was chosen."""

    campaign: Campaign
    variant: PlannedVariant
    runs: Sequence[RunResult]
    chosen: bool = False

    @property
    def about(self) -> dict[str, Any]:
        """Which it is, for programs."""
        plain = {"campaign": self.campaign.plan.campaign, "variant": self.variant.label}
        if not self.chosen:
            return plain
        (run,) = self.runs
        return plain | {
            "run": run.directory.name if run.directory else "",
            "block": run.block.block,
            "order": run.run.order,
            "status": run.status,
            "started_at": run.record.started_at if run.record else "",
        }

    @property
    def text(self) -> str:
        """The same for people."""
        about = self.about
        if not self.chosen:
            return f"variant {about['variant']} of {about['campaign']}"
        started = f", {about['started_at'][:19]}" if about["started_at"] else ""
        return (
            f"run {about['run']} of {about['campaign']}, variant {about['variant']}, block {about['block']}, "
            f"{about['status']}{started}"
        )

    @property
    def document(self) -> dict[str, Any]:
        """What was planned, as plain data."""
        plan, job = self.campaign.plan, self.runs[0].job
        planned = {
            **{name: getattr(plan, name) for name in ("suite", "protocol", "device", "threads_per_worker")},
            **{name: getattr(job, name) for name in ("nodes", "workers_per_node", "memory_limit")},
            "gpubench": plan.gpubench,
            "workloads": {workload.params_id: workload.name for workload in plan.workloads},
            "site": plan.site.model_dump(mode="json"),
        }
        return {**planned_document(self.variant, self.campaign.manifests()), "plan": planned}


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
    if second is None:
        campaign = _of_two_variants(first)
        return _of_sides([_side(campaign, variant.label) for variant in campaign.plan.variants])
    names = [first or "", second]
    paths = [*map(Path, names)]
    if where is None and not any(map(_is_run, paths)) and all(map(_is_campaign, paths)):
        judge = command_line(["gpubench", "compare", *map(str, paths)])
        note = f"compared by the first ok run of each campaign; to see whether the differences matter: {judge}"
        sides = _first_runs(paths)
        return dataclasses.replace(_of_sides(sides), notes=[note, *_other_variants(sides)])
    if all(map(_is_run, paths)):
        return _of_sides([*map(_of_directory, paths)])
    campaign = chosen_campaign(where, None, with_results=True)
    sides = [
        _of_directory(path) if _is_run(path) else _side(campaign, name) for path, name in zip(paths, names, strict=True)
    ]
    return _of_sides(sides)


def _of_two_variants(named: str | None) -> Campaign:
    if named and not _is_campaign(Path(named)):
        raise UsageError(
            f"'{named}' is no campaign, and nothing is named to compare it with",
            then="name another variant or run after it",
        )
    campaign = chosen_campaign(Path(named) if named else None, None, with_results=True)
    variants = [variant.label for variant in campaign.plan.variants]
    if len(variants) != 2:
        have = counted(len(variants), "variant")
        raise UsageError(f"{campaign.directory} has {have}: {', '.join(variants)}", then="type: gpubench diff A B")
    return campaign


def _is_campaign(path: Path) -> bool:
    return is_kept(root_of(path))


def _is_run(path: Path) -> bool:
    """Whether it is a run's directory."""
    runs = path.resolve().parent
    return path.is_dir() and runs.name == "runs" and is_kept(runs.parent)


def _of_sides(sides: Sequence[Side]) -> Section:
    first, second = sides
    names = ("A", "B") if any(side.chosen for side in sides) else (first.variant.label, second.variant.label)
    pairs = list(_pairs(first, second))
    about = [f"{name}: {side.text}" for name, side in zip(names, sides, strict=True)]
    if not first.chosen:
        about = [f"{' → '.join(names)}, {counted(len(pairs), 'block')} of {first.campaign.plan.campaign}"]
    explained = explain(pairs, names, _expected(names, sides), [side.document for side in sides])
    section = diff_section(explained, [side.about for side in sides], names, about)
    return section if first.chosen else _with_outcome(section, first.campaign, names)


def _pairs(first: Side, second: Side) -> Iterator[tuple[Evidence, Evidence]]:
    """Of two runs that were chosen, these; else the runs of every block in which both sides ran."""
    if first.chosen != second.chosen:
        raise UsageError("a variant and a run can't be compared", then="name two variants, or two runs")
    if first.chosen:
        yield _evidence(first, first.runs[0]), _evidence(second, second.runs[0])
        return
    ran = ([run for run in side.runs if run.status != "skipped"] for side in (first, second))
    before, after = ({(run.job.place, run.block.block): run for run in runs} for runs in ran)
    blocks = [block for block in before if block in after]
    if not blocks:
        labels = f"{first.variant.label} and {second.variant.label}"
        raise DataError(f"{first.campaign.directory}: {labels} ran together in no block")
    yield from ((_evidence(first, before[block]), _evidence(second, after[block])) for block in blocks)


def _evidence(side: Side, run: RunResult) -> Evidence:
    return evidence(run.provenance, run.record, side.campaign.plan.protocol)


def _expected(names: Sequence[str], sides: Sequence[Side]) -> PlannedEnvironment:
    """What may differ between the sides, each by the plan of its own campaign; allowed is what both allow."""
    own = [planned_environment(side.campaign.plan, side.campaign.manifests()) for side in sides]
    planned = {name: expected.sides[side.variant.label] for name, expected, side in zip(names, own, sides, strict=True)}
    return PlannedEnvironment(planned, [pattern for pattern in own[0].allow if pattern in own[1].allow])


def _with_outcome(section: Section, campaign: Campaign, names: Sequence[str]) -> Section:
    """With what came of the differences between two variants, and in which layer, where that was measured."""
    judged = judge_campaign(campaign).verdicts
    verdicts = [verdict for verdict in judged if {verdict.baseline, verdict.candidate} == {*names}]
    if not verdicts:  # two candidates
        pair = ["--baseline", names[0], "--candidate", names[1]]
        line = command_line(["gpubench", "compare", str(campaign.directory), *pair])
        return dataclasses.replace(section, notes=[f"whether the differences matter: {line}"])
    pair_text, cells = labels.pair(verdicts[0]), cell_names([verdict.key for verdict in verdicts])
    shown = [f"{name}: {_verdict_text(verdict)}" for name, verdict in zip(cells, verdicts, strict=True)]
    plain = [
        {"cell": name, "verdict": verdict.verdict, "effect": verdict.effect}
        for name, verdict in zip(cells, verdicts, strict=True)
    ]
    lines, layer_effects = layers(verdicts)
    parts = [SectionPart(f"Whether it matters ({pair_text}):", shown)]
    parts += [SectionPart(f"In which layer ({pair_text}):", lines)] if lines else []
    data = {**section.data, "verdicts": plain, **({"layers": layer_effects} if lines else {})}
    return dataclasses.replace(section, parts=[*section.parts, *parts], data=data)


def _verdict_text(verdict: Verdict) -> str:
    effect = f"{labels.effect(verdict)} {labels.interval(verdict)}".rstrip()
    return ", ".join(filter(None, (effect, verdict.verdict, verdict.leaning)))


def _first_runs(paths: Sequence[Path]) -> list[Side]:
    """The first ok run of each campaign, of a variant that both have if possible."""
    if root_of(paths[0]).resolve() == root_of(paths[1]).resolve():
        raise UsageError(f"{paths[0]} is named twice", then="its own variants are compared by: gpubench diff A B DIR")
    campaigns = [chosen_campaign(path, None) for path in paths]
    first, second = ([campaign.plan.baseline, *(v.label for v in campaign.plan.variants)] for campaign in campaigns)
    common = next((label for label in first if label in second), None)
    sides = []
    for campaign in campaigns:
        side = _side(campaign, common or campaign.plan.baseline)
        ok = [run for run in side.runs if run.status == "ok"]
        if not ok:
            what = f"{campaign.directory}: no run of {side.variant.label} is ok"
            raise DataError(what, then="gpubench status shows how the runs ended")
        sides.append(dataclasses.replace(side, runs=ok[:1], chosen=True))
    return sides


def _other_variants(sides: Sequence[Side]) -> Iterator[str]:
    """A note where the campaigns planned other variants, of which only one is compared here."""
    planned = [[variant.label for variant in side.campaign.plan.variants] for side in sides]
    if set(planned[0]) != set(planned[1]):
        yield f"variants planned: A has {', '.join(planned[0])}; B has {', '.join(planned[1])}"


def _side(campaign: Campaign, name: str) -> Side:
    """A variant by its label, or a run by the beginning of its id."""
    runs = [run for run in account(campaign).outcomes if run.directory]
    if variant := campaign.plan.variant(name):
        return Side(campaign, variant, [run for run in runs if run.run.variant == name])
    matching = [run for run in runs if name and run.directory and run.directory.name.startswith(name)]
    if not matching:
        variants = [variant.label for variant in campaign.plan.variants]
        raise UsageError(
            f"{campaign.directory} has no run '{name}', and no variant '{name}'{nearest(name, variants)}",
            then="its runs are in runs/; or name a run's directory",
        )
    if len(matching) > 1:
        raise UsageError(f"'{name}' begins {len(matching)} runs of {campaign.directory}", then="write more of it")
    return _of_run(campaign, matching[0])


def _of_run(campaign: Campaign, run: RunResult) -> Side:
    variant = campaign.plan.variant(run.run.variant)
    assert variant is not None
    return Side(campaign, variant, [run], chosen=True)


def _of_directory(path: Path) -> Side:
    """A run, or an earlier attempt at it."""
    path = path.resolve()
    campaign = Campaign.open(path.parent.parent)
    runs = {directory.path.name: directory.run for directory in run_directories(campaign.runs_dir)}
    run = next((run for run in account(campaign).outcomes if run.run.run == runs.get(path.name)), None)
    if run is None:
        raise UsageError(f"{path} is no run directory of {campaign.directory}")
    return _of_run(campaign, dataclasses.replace(run, directory=path, record=read_record(path)))
