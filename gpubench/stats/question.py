"""The question that results are asked: what isn't named is as it was planned, and the default where nothing was."""

import dataclasses

from gpubench.errors import UsageError
from gpubench.model.base import nearest
from gpubench.model.plan import Comparison, Plan
from gpubench.stats.margin import DEFAULT_MARGIN, Margin
from gpubench.stats.settings import VerdictSettings


@dataclasses.dataclass(frozen=True)
class Question:
    """What somebody asks; None and empty: nothing but what was planned.

    Args:
        margin: another than planned, as a ratio minus one.
        baseline, candidate: labels of variants, for another pair than planned.
        allow: patterns of fields that may change with the variant besides those planned.
    """

    margin: float | None = None
    baseline: str | None = None
    candidate: str | None = None
    allow: tuple[str, ...] = ()

    def settings(self, *plans: Plan) -> VerdictSettings:
        """Margin of results; raises UsageError where the plans differ in it and it isn't named here."""
        margins = {plan.margin for plan in plans}
        if self.margin is None and len(margins) > 1:
            low, high = map(Margin, sorted(margins))
            raise UsageError(
                f"one side was planned with a margin of {low.percent}, the other with {high.percent}",
                then=f"say which counts: --margin {100 * low:g}%",
            )
        return VerdictSettings(Margin(next(iter(margins), DEFAULT_MARGIN) if self.margin is None else self.margin))

    def comparisons(self, plan: Plan) -> list[Comparison]:
        """The family of a campaign: the pair that is asked for, instead of its mirror image or beside what was planned.

        Raises:
            UsageError: the plan has no such variant.
        """
        if self.baseline is None and self.candidate is None:
            return plan.comparisons
        labels = [item.label for item in plan.variants]
        baseline = plan.baseline if self.baseline is None else self.baseline
        candidates = labels if self.candidate is None else [self.candidate]
        for label in (baseline, *candidates):
            if label not in labels:
                raise UsageError(f"campaign {plan.campaign} has no variant '{label}'{nearest(label, labels)}")
        if self.candidate == baseline:
            raise UsageError(f"{baseline} is the baseline", then="name another --candidate, or another --baseline")
        candidates = [candidate for candidate in candidates if candidate != baseline]
        chosen = [
            comparison.model_copy(update={"baseline": baseline, "candidate": candidate})
            for candidate in candidates
            for comparison in plan.comparisons
            if comparison.candidate == plan.comparisons[0].candidate
        ]
        pairs = [{baseline, candidate} for candidate in candidates]
        return [
            *chosen,
            *(planned for planned in plan.comparisons if {planned.baseline, planned.candidate} not in pairs),
        ]
