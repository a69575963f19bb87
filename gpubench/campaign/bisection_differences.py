"""The set of differences between two ends, and variants of either end with some of them as the other end has them.

A difference is a setting (``bisection_settings``) or a package with those that move with it (``bisection_packages``).
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gpubench.errors import UsageError
from gpubench.model.variant import ImageSpec, parse_variant, parse_variants
from gpubench.stats.bisection import Begin, Extend, SearchSettings, Step, look_at_ends
from gpubench.stats.setting_search import FIRST, LAST, SettingAnswer, end_of, next_setting_move, settings_of
from gpubench.store.campaign import Campaign
from gpubench.store.states import account_now

Over = Literal["settings", "packages"]
Origin = Literal["typed", "binding", "default", "new", "package"]
SHORT_LABELS = ("first", "last")
"""What ends are called that have commas in place of a label: the labels of their points can't hold them."""
_UNREAD = "UCX reads no variable"
_NAME = re.compile(r"UCX_[A-Z0-9_]+")


@dataclasses.dataclass(frozen=True)
class Difference:
    """A variable of the environment, or a package, in which the ends differ.

    Args:
        values: of the first and of the last end, as the other end would be given it; None: it isn't set there.
        origin: who set it: the user, the binding, or UCX; ``new``: a switch that the fast end's UCX doesn't know.
        applicable: whether the fast end can be given the value of the slow one.
        with_it: packages that can't be changed without it, with their two versions.
    """

    name: str
    values: tuple[str | None, str | None]
    origin: Origin
    applicable: bool = True
    with_it: tuple[tuple[str, tuple[str, str]], ...] = ()

    @property
    def names(self) -> list[str]:
        """Its own, and those of what changes with it."""
        return [self.name, *(name for name, _ in self.with_it)]

    def assignments(self, end: int) -> dict[str, str | None]:
        """The value of each name at an end."""
        return {self.name: self.values[end], **{name: values[end] for name, values in self.with_it}}


@dataclasses.dataclass(frozen=True)
class Differences:
    """What is searched, the likeliest first, and what isn't: names with reasons.

    Args:
        stacks: on which the ends were built; empty where a variant can't name it. A step without one of the ends
            would choose another one.
    """

    searched: tuple[Difference, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    stacks: tuple[str, str] = ("", "")


@dataclasses.dataclass(frozen=True)
class DifferenceSpace:
    """The points of a search among differences: numbers as in ``gpubench.stats.setting_search``.

    Args:
        over: what is searched.
        points: variants as typed, the first and the last end.
        differences: None until both ends were measured.
    """

    over: Over
    points: tuple[str, ...]
    differences: Differences | None = None

    @property
    def labels(self) -> list[str]:
        """What the ends are called."""
        return [variant.label for variant in parse_variants(list(self.points))]

    @property
    def searched(self) -> tuple[Difference, ...]:
        """The differences by number."""
        return self.differences.searched if self.differences else ()

    def label(self, point: int) -> str:
        """``1.19.0``; with differences 1 to 7 and 9 as the other end has them ``1.19.0:1-7+9``."""
        groups: list[list[int]] = []
        for number in sorted(setting + 1 for setting in settings_of(point)):
            if groups and number == groups[-1][-1] + 1:
                groups[-1] = [groups[-1][0], number]
            else:
                groups.append([number])
        label = self.labels[end_of(point)]
        return f"{label}:{'+'.join('-'.join(map(str, group)) for group in groups)}" if groups else label

    def variant(self, point: int) -> str:
        """As a user types it."""
        end, changed = end_of(point), settings_of(point)
        if self.differences is None or not (changed or self.differences.stacks[end]):
            return self.points[end]
        variant = parse_variant(self.points[end])
        spec = ImageSpec.parse(variant.ucx)
        if not spec.stack:
            spec = dataclasses.replace(spec, stack=self.differences.stacks[end])
        values: dict[str, str | None] = {}
        for at, difference in enumerate(self.searched):
            if at in changed:
                values |= difference.assignments(FIRST + LAST - end)
            elif self.over == "packages":  # nor may a changed package move what isn't changed
                values |= difference.assignments(end)
        env: dict[str, str | None] = dict(variant.env)
        if self.over == "packages":
            pins = {name: value for name, value in values.items() if value} if changed else {}
            spec = dataclasses.replace(spec, packages={**spec.packages, **pins})
        else:
            env |= values
        settings = [f"{name}={value}" for name, value in env.items() if value is not None]
        return ",".join([f"{self.label(point)}={spec}", *settings])

    def next_move(self, steps: Sequence[Step], settings: SearchSettings) -> Begin | Extend | SettingAnswer:
        return next_setting_move([difference.applicable for difference in self.searched], steps, settings)

    def answer_so_far(self, _steps: Sequence[Step], _settings: SearchSettings) -> None:
        """None: a search among settings names none before its end."""

    def lacks_differences(self, steps: Sequence[Step], settings: SearchSettings) -> bool:
        """Whether both ends were measured and differ, and nobody has found out in what."""
        if self.differences is not None or not steps or len(steps[0].blocks) < steps[0].planned:
            return False
        return look_at_ends(len(self.points), steps[0], settings) is None

    def uncounted(self, campaign: Campaign, of_ends: Campaign) -> frozenset[str]:
        """Runs of a step without a meaning: UCX didn't read what was set, or another transport carried the data.

        Args:
            of_ends: the campaign that measured both ends alone: what is usual.
        """
        usual = [run.record for run in account_now(of_ends).outcomes if run.status == "ok" and run.record]
        transports = {tuple(sorted(record.transport)) for record in usual}
        unread = {name for record in usual for name in _unread(record.warnings)}
        return frozenset(
            run.run.run
            for run in account_now(campaign).outcomes
            if run.record and run.status == "ok" and run.run.variant not in self.labels
            if tuple(sorted(run.record.transport)) not in transports or {*_unread(run.record.warnings)} - unread
        )


def read_differences(document: Mapping[str, Any]) -> Differences:
    """Of plain values; raises ValueError, KeyError, TypeError."""
    searched = (
        Difference(
            **{
                **difference,
                "values": tuple(difference["values"]),
                "with_it": tuple((name, tuple(versions)) for name, versions in difference["with_it"]),
            }
        )
        for difference in document["searched"]
    )
    left_out = tuple((name, reason) for name, reason in document["left_out"])
    return Differences(tuple(searched), left_out, tuple(document["stacks"]))


def difference_ends(over: Over, ends: Sequence[str]) -> DifferenceSpace:
    """A search among differences between two variants as typed.

    Raises:
        UsageError: not two, or ends that are the same.
    """
    variants = parse_variants(list(ends))
    if len(variants) != 2:
        raise UsageError(f"--over {over} needs two ends, and --variants has {len(variants)}", then="name two")
    if (variants[0].ucx, variants[0].env) == (variants[1].ucx, variants[1].env):
        raise UsageError("both ends are the same", then=f"name two variants that differ in version or {over}")
    if taken := {variant.label for variant in variants} & {*SHORT_LABELS}:
        raise UsageError(f"label '{min(taken)}' is the search's own", then="choose another one")
    labelled = [
        f"{short}={end}" if "," in variant.label else end
        for short, end, variant in zip(SHORT_LABELS, ends, variants, strict=True)
    ]
    return DifferenceSpace(over, tuple(labelled))


def _unread(warnings: Sequence[str]) -> list[str]:
    return [name for warning in warnings if warning.startswith(_UNREAD) for name in _NAME.findall(warning)]
