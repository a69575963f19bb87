"""``gpubench explain``: what differs between two runs, also of two campaigns, or between two variants."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench.cli.results.judge import expected_of
from gpubench.cli.results.open_target import chosen_campaign, newest
from gpubench.cli.say import say, say_text
from gpubench.errors import DataError, UsageError
from gpubench.merge.environment import PlannedEnvironment
from gpubench.merge.explain import RunEvidence, explain
from gpubench.model.base import nearest
from gpubench.model.plan import PlannedVariant
from gpubench.report.explain import explain_json, explain_lines
from gpubench.store.accounting import RunOutcome, account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_provenance, read_record, run_directories


@dataclasses.dataclass(frozen=True)
class Chosen:
    """One run with the campaign that it belongs to."""

    campaign: Campaign
    outcome: RunOutcome
    directory: Path

    @property
    def variant(self) -> PlannedVariant:
        """Its variant."""
        return _variant(self.campaign, self.outcome.run.variant)

    @property
    def name(self) -> str:
        """The run's, with its attempt."""
        return self.directory.name

    @property
    def about(self) -> dict[str, Any]:
        """Which run this is."""
        record = self.outcome.record
        return {
            "run": self.name,
            "campaign": self.campaign.plan.campaign,
            "variant": self.outcome.run.variant,
            "block": self.outcome.block.block,
            "order": self.outcome.run.order,
            "status": self.outcome.status,
            "started_at": record.started_at if record else "",
        }

    @property
    def document(self) -> dict[str, Any]:
        """What was planned for it, as plain data."""
        plan, job = self.campaign.plan, self.outcome.job
        return {
            "image": _manifest(self.campaign, self.variant),
            "plan": {
                **{name: getattr(plan, name) for name in ("suite", "protocol", "device", "threads_per_worker")},
                **{name: getattr(job, name) for name in ("nodes", "workers_per_node", "memory_limit")},
                "gpubench": plan.gpubench,
                "workloads": {one.params_id: one.name for one in plan.workloads},
                "site": plan.site.model_dump(mode="json"),
                "settings": self.variant.env,
            },
        }


def explain_variants(baseline: str, candidate: str, directory: Path | None, *, as_json: bool) -> None:
    """Print what differs between two variants of a campaign.

    Raises:
        UsageError: no such variant.
        DataError: they have no block in common.
    """
    campaign = chosen_campaign(directory, None, with_results=True)
    one, other = (_variant(campaign, label) for label in (baseline, candidate))
    blocks: dict[tuple[Any, int], dict[str, RunEvidence]] = {}
    for outcome in account(campaign).outcomes:
        if outcome.directory and outcome.run.variant in (baseline, candidate):
            seen = RunEvidence(read_provenance(outcome.directory), outcome.record)
            blocks.setdefault((outcome.job.place, outcome.block.block), {})[outcome.run.variant] = seen
    pairs = [(sides[baseline], sides[candidate]) for sides in blocks.values() if len(sides) == 2]
    if not pairs:
        raise DataError(f"{campaign.place}: {baseline} and {candidate} ran together in no block")
    documents = [{"image": _manifest(campaign, each), "settings": each.env} for each in (one, other)]
    found = explain(pairs, baseline, candidate, expected_of(campaign), documents)
    if as_json:
        sides = [{"campaign": campaign.plan.campaign, "variant": label} for label in (baseline, candidate)]
        say_text(json.dumps(explain_json(found, "variants", sides), indent=1, ensure_ascii=False))
        return
    about = [f"{baseline} → {candidate}, {found.blocks} block{'s'[: found.blocks != 1]} of {campaign.plan.campaign}"]
    for line in explain_lines(found, (baseline, candidate), about):
        say(line)


def explain_runs(first: str, second: str, directory: Path | None, *, as_json: bool) -> None:
    """Print what differs between two runs, each named by (the beginning of) its id or by its directory.

    Raises:
        UsageError: no such run, or several.
    """
    if directory is None and not (Path(first).is_dir() and Path(second).is_dir()):
        directory = newest(None, with_results=True)
    one, other = (_chosen(name, directory) for name in (first, second))
    pair = [(_seen(one), _seen(other))]
    found = explain(pair, "A", "B", _expected(one, other), [one.document, other.document])
    if as_json:
        say_text(json.dumps(explain_json(found, "runs", [one.about, other.about]), indent=1, ensure_ascii=False))
        return
    about = [f"{side}: {_words(each.about)}" for side, each in (("A", one), ("B", other))]
    for line in explain_lines(found, ("A", "B"), about):
        say(line)


def _words(about: Mapping[str, Any]) -> str:
    return (
        f"run {about['run']} of {about['campaign']}, variant {about['variant']}, block {about['block']}, "
        f"{about['status']}{', ' + about['started_at'][:19] if about['started_at'] else ''}"
    )


def _seen(chosen: Chosen) -> RunEvidence:
    return RunEvidence(read_provenance(chosen.directory), chosen.outcome.record)


def _chosen(name: str, directory: Path | None) -> Chosen:
    path = Path(name)
    if name and path.is_dir():
        path = path.resolve()
        campaign = Campaign.open(path.parent.parent)
        named = {one.path.name: one.run for one in run_directories(campaign.runs_dir)}
        found = {one.run.run: one for one in account(campaign).outcomes}.get(named.get(path.name, ""))
        if found is None:
            raise UsageError(f"{name} is no run directory of {campaign.directory}")
        return Chosen(campaign, dataclasses.replace(found, record=read_record(path)), path)
    campaign = chosen_campaign(directory, None, with_results=True)
    outcomes = [one for one in account(campaign).outcomes if one.directory]
    matching = [one for one in outcomes if one.directory and one.directory.name.startswith(name)]
    if not matching or not name:
        raise UsageError(
            f"{campaign.place} has no run '{name}'", then="its runs stand in runs/; or name a run's directory"
        )
    if len(matching) > 1:
        raise UsageError(f"'{name}' begins {len(matching)} runs of {campaign.place}", then="write more of it")
    assert matching[0].directory is not None
    return Chosen(campaign, matching[0], matching[0].directory)


def _expected(one: Chosen, other: Chosen) -> PlannedEnvironment:
    """What may differ between the two runs: as between two variants of one plan, each with its own site's settings."""
    plans = [each.campaign.plan for each in (one, other)]
    variants = [
        each.variant.model_copy(update={"label": label, "env": {**plan.site.env, **each.variant.env}})
        for label, each, plan in zip("AB", (one, other), plans, strict=True)
    ]
    site = plans[0].site.model_copy(update={"env": {}})
    own = [expected_of(each.campaign) for each in (one, other)]
    return PlannedEnvironment(
        plans[0].model_copy(update={"variants": variants, "site": site}),
        {**own[0].manifests, **own[1].manifests},
        {
            label: each.known.get(side.outcome.run.variant, {})
            for label, each, side in zip("AB", own, (one, other), strict=True)
        },
        tuple(pattern for pattern in own[0].allow if pattern in own[1].allow),
    )


def _variant(campaign: Campaign, label: str) -> PlannedVariant:
    labels = [one.label for one in campaign.plan.variants]
    if label not in labels:
        raise UsageError(f"campaign {campaign.plan.campaign} has no variant '{label}'{nearest(label, labels)}")
    return campaign.plan.variants[labels.index(label)]


def _manifest(campaign: Campaign, variant: PlannedVariant) -> Any:
    return campaign.manifests().get(variant.image.manifest, {}) if variant.image else {}
