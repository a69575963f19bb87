"""The question of a search, as a campaign raises it: what is behind its largest regression."""

import dataclasses
import logging

from gpubench.campaign.bisection_points import versions_between
from gpubench.campaign.option_values import chosen_settings
from gpubench.campaign.options import CampaignOptions
from gpubench.errors import GpubenchError, UsageError
from gpubench.images.manifests import differences
from gpubench.model.base import nearest
from gpubench.resources.profiles import load_site, suite_names, typed_site
from gpubench.results.judged_campaign import JudgedCampaign

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class RegressionQuestion:
    """A workload that is slower in one variant than in another.

    Args:
        site, suite: as their options take them.
        ends: both variants, as ``--variants`` takes them; the second is the slower one.
        effect: ratio minus 1.
    """

    site: str
    suite: str
    workload: str
    ends: tuple[str, str]
    effect: float

    @property
    def steps_of_versions(self) -> int:
        """From one release to the next, between the ends; 1 where they are no releases, or differ in more."""
        try:
            return len(versions_between(self.ends)) - 1
        except GpubenchError:
            return 1


def largest_regression(judged: JudgedCampaign, workload: str | None = None) -> RegressionQuestion:
    """The largest regression of a campaign, or of one workload in it.

    Raises:
        UsageError: there is none, or a search can't measure it by options alone.
    """
    plan, where = judged.plan, judged.target
    names = dict.fromkeys(item.name for item in plan.workloads)
    if workload not in (None, *names):
        raise UsageError(f"{where} has no workload '{workload}'{nearest(workload or '', names)}")
    slower = [
        (verdict.effect, verdict)
        for verdict in judged.verdicts
        if verdict.verdict == "regression" and verdict.effect and workload in (None, verdict.key["workload"])
    ]
    if not slower:
        raise UsageError(
            f"{where} has no regression{f' of {workload}' if workload else ''} to search",
            then="name two variants: --workload W --variants 'A B' --over versions",
        )
    effect, worst = max(slower, key=lambda pair: pair[0])
    name = str(worst.key["workload"])
    objection = ""
    if plan.suite not in suite_names():
        objection = f"suite {plan.suite} is none of gpubench's"
    elif len(plan.places) > 1:
        objection = "it has several numbers of nodes or workers"
    elif [item.name for item in plan.workloads].count(name) > 1:
        objection = f"it has {name} in several sizes"
    if objection:
        raise UsageError(f"{where}: {objection}", then="name suite, workload, variants and numbers yourself")
    typed = {
        variant.label: ",".join([variant.ucx, *(f"{key}={value}" for key, value in variant.env.items())])
        for variant in plan.variants
    }
    ends = typed[worst.baseline], typed[worst.candidate]
    return RegressionQuestion(typed_site(plan.site.name)[0], plan.suite, name, ends, effect)


def options_for(judged: JudgedCampaign, question: RegressionQuestion, options: CampaignOptions) -> CampaignOptions:
    """Those of a search for this question: the campaign's own where none was given.

    Raises:
        UsageError: another suite or site was given.
    """
    plan = judged.plan
    for name, value, own in (("suite", options.suite, question.suite), ("site", options.site, question.site)):
        if value not in (None, own, "local"):
            raise UsageError(f"--{name} {value}: the campaign has {own}", then="leave it out, or name two --variants")
    (place,) = plan.places
    now = load_site(question.site, chosen_settings(options))
    for path, planned, is_now in differences(plan.site.model_dump(mode="json"), now.model_dump(mode="json")):
        if is_now not in (None, "auto"):  # what the plan has chosen or added itself
            _log.warning(f"the site's {path} is {is_now}, and was {planned} in the campaign: give its --set again")
    _log.info(f"the largest regression of {judged.target}: {question.workload}, {100 * question.effect:+.1f} %")
    return dataclasses.replace(
        options,
        site=question.site,
        suite=question.suite,
        variants=" ".join(question.ends),
        nodes=options.nodes or str(place[0]),
        workers=options.workers or str(place[1]),
        protocol=options.protocol or plan.protocol,
        margin=options.margin or f"{100 * plan.margin:g}%",
    )
