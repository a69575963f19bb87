"""The settings in which two ends differ.

They are taken from the step that measured both alone: what was typed, what the binding set in the processes, and the
defaults that the two versions' own ``ucx_info -c -a -f`` print: runs of the first block ask it, on their node. Whether
a version takes a value is asked where the search runs, of images of kind venv; of others, a run shows it.
"""

import logging
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpubench.campaign.bisection_differences import Difference, Differences, Origin
from gpubench.images.compatibility import stacks
from gpubench.images.variables import UcxVariable, accepts, parse_configuration
from gpubench.node.spec.records import LOGS_FILE, UCX_CONFIGURATIONS
from gpubench.results.merge.environment_changes import planned_environment
from gpubench.stats.bisection import Step
from gpubench.stats.setting_search import FIRST, LAST, slow_end
from gpubench.store.accounting import RunResult
from gpubench.store.campaign import Campaign
from gpubench.store.states import account_now

_log = logging.getLogger(__name__)

OFF = "n"
"""What a switch of UCX is turned off by."""
OF_GPUBENCH = ("UCX_LOG_FILE", "UCX_LOG_LEVEL", "UCX_PROTO_INFO")
"""What the processes of a run get in any case, for the log that names the transport."""


def setting_differences(campaign: Campaign, step: Step) -> Differences:
    """By the campaign that measured both ends.

    Args:
        step: what it measured: which end is the slow one.
    """
    _log.info("comparing what the UCX of both ends printed of its defaults")
    environments = _Ends(campaign, step)
    settings: list[tuple[int, Difference]] = []
    left_out: dict[str, str] = {}
    for name in environments.names():
        setting = environments.setting(name)
        if isinstance(setting, Difference):
            settings.append((environments.rank(setting), setting))
        else:
            left_out[name] = setting
    settings.sort(key=lambda ranked: ranked[0])
    for label in environments.unasked:
        left_out[f"defaults of {label}"] = "its ucx_info gives no answer"
    return Differences(tuple(setting for _, setting in settings), tuple(sorted(left_out.items())))


class _Ends:
    """The environments of both ends, and what their UCX lists."""

    def __init__(self, campaign: Campaign, step: Step) -> None:
        self._variants = campaign.plan.variants
        sides = planned_environment(campaign.plan, campaign.manifests()).sides
        self._set_anyhow = {*campaign.plan.site.env, *(name for side in sides.values() for name in side.by_binding)}
        self._set_anyhow |= {setting.variable for stack in stacks() for setting in stack.sets}
        runs = [run for run in account_now(campaign).outcomes if run.status == "ok"]
        self._transports = {name for run in runs if run.record for name in run.record.transport}
        self._slow = slow_end(step)
        self._fast = FIRST + LAST - self._slow
        self._listed: list[dict[str, UcxVariable]] = []
        self._unasked: list[str] = []
        self._derived: set[str] = set()
        self._set: list[dict[str, str]] = []
        for variant in self._variants:
            first, second = _configurations(runs, variant.label)
            if campaign.plan.protocol == "ucx" and not first:
                self._unasked.append(variant.label)
            self._listed.append(first)
            self._derived |= {name for name in first if second.get(name) != first[name]}
            self._set.append({**sides[variant.label].by_binding, **_in_force(runs, variant.label), **variant.env})
        if not all(self._listed):  # what one lists alone isn't new
            self._listed = [{} for _ in self._variants]

    def names(self) -> list[str]:
        """Of variables that differ."""
        names = {name for listed in self._listed for name in listed} | {name for side in self._set for name in side}
        return sorted(name for name in names if self._value(FIRST, name) != self._value(LAST, name))

    @property
    def unasked(self) -> Sequence[str]:
        """Labels of ends whose UCX lists nothing."""
        return self._unasked

    def rank(self, setting: Difference) -> int:
        """What somebody set comes first; variables of transports that carried no data come last."""
        transport = next((side[setting.name].transport for side in self._listed if setting.name in side), "")
        if setting.origin in ("typed", "binding"):
            return 0
        if transport and not any(name.startswith(transport) for name in self._transports):
            return 3
        return 1 if setting.origin == "default" else 2

    def setting(self, name: str) -> Difference | str:
        """As it can be tried, or why it can't."""
        fast, slow = self._value(self._fast, name), self._value(self._slow, name)
        objection = next(self._objections(name, fast, slow), "")
        if objection:
            return objection
        if self._is_new(name, fast):
            return self._on_both(name, OFF, slow, "new", applicable=False)
        origin: Origin = "binding" if any(name in side for side in self._set) else "default"
        if any(self._is_typed(end, name) for end in (FIRST, LAST)):
            origin = "typed"
        applicable = slow is None or self._takes(self._fast, name, slow)
        values = (self._given(self._slow, name, fast), self._given(self._fast, name, slow))
        return self._on_both(name, *values, origin, applicable=applicable)

    def _objections(self, name: str, fast: str | None, slow: str | None) -> Iterator[str]:
        fast_label, slow_label = (self._variants[end].label for end in (self._fast, self._slow))
        is_set = any(name in side for side in self._set)
        listed = self._listed[self._slow].get(name)
        if name in OF_GPUBENCH:
            yield "gpubench sets it for each run"
        if not is_set and name in self._derived:
            yield "derived from the machine (two calls print different ones)"
        if alias := next((side[name].alias_of for side in self._listed if name in side and side[name].alias_of), ""):
            yield f"another name of {alias}"
        if not is_set and listed is None:
            yield f"{slow_label} has no such variable"
        elif self._is_new(name, fast):
            if not listed or not listed.is_switch or slow == OFF:
                yield f"new in {slow_label}, and no switch that is on"
        elif fast is None and not self._is_typed(self._slow, name):
            yield f"its value in {fast_label} isn't known"
        if any(" " in value for value in (fast, slow) if value is not None):
            yield "a value with a blank can't be written in a variant"
        if fast is not None and not self._takes(self._slow, name, fast):
            yield f"{slow_label} doesn't take the value of {fast_label} as it is"

    def _is_new(self, name: str, fast: str | None) -> bool:
        return fast is None and not any(name in side for side in self._set)

    def _on_both(
        self, name: str, fast: str | None, slow: str | None, origin: Origin, *, applicable: bool
    ) -> Difference:
        return Difference(name, (fast, slow) if self._fast == FIRST else (slow, fast), origin, applicable)

    def _value(self, end: int, name: str) -> str | None:
        listed = self._listed[end].get(name)
        return self._set[end].get(name, listed.value if listed else None)

    def _given(self, end: int, name: str, value: str | None) -> str | None:
        """None where the end has the value as soon as what was typed there is left out."""
        listed = self._listed[end].get(name)
        is_default = self._is_typed(end, name) and name not in self._set_anyhow and listed and listed.value == value
        return None if is_default else value

    def _is_typed(self, end: int, name: str) -> bool:
        return name in self._variants[end].env

    def _takes(self, end: int, name: str, value: str) -> bool:
        """Whether the end's UCX takes it; what it doesn't list, and what can't be asked, is for its run to show."""
        image, listed = self._variants[end].image, self._listed[end]
        if not listed or not name.startswith("UCX_"):
            return True
        if image is None or image.kind != "venv":
            return name in listed
        return name in listed and accepts(image, name, value, listed[name].value)


def _configurations(runs: Sequence[RunResult], label: str) -> list[dict[str, UcxVariable]]:
    """What ``ucx_info`` printed twice in a run of a variant; two empty ones where none has asked it."""
    logs = [run.directory / LOGS_FILE for run in runs if run.directory and run.run.variant == label]
    for path in filter(Path.exists, logs):  # logs that are too large don't come home from pods
        with zipfile.ZipFile(path) as archive:
            names = [name for file in UCX_CONFIGURATIONS for name in archive.namelist() if name.endswith(f"/{file}")]
            if names:
                return [parse_configuration(archive.read(name).decode("utf-8", "replace")) for name in names]
    return [{}, {}]


def _in_force(runs: Sequence[RunResult], label: str) -> dict[str, str]:
    """The ``UCX_*`` of the processes of a variant's first run, with what the binding added."""
    run = next((run for run in runs if run.run.variant == label), None)
    provenance = run.provenance if run else {}
    environments = [process.get("ucx", {}).get("env", {}) for process in provenance.get("processes", [])]
    return {name: str(value) for environment in environments for name, value in environment.items()}
