"""What differed between baseline and candidate of a block, and which of it was planned. Pure.

A run's provenance is read flat: a value per field and host. Every key of a ``provenance.json`` may be missing; what is
missing isn't compared. Runs are compared within a block only: blocks may run on other nodes, on another day, and that
is no difference between variants. Not compared is what never stands still: load, process ids, scratch directories.
"""

import dataclasses
import fnmatch
import functools
import marshal
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal

from gpubench.images.manifests import differences
from gpubench.model.plan import Plan, PlannedVariant
from gpubench.node.spec import PROCESS_DEFAULTS
from gpubench.node.spec.waiting import crowded_hosts
from gpubench.stats.data import BlockId, ComparisonInput

UNSET, ABSENT = "unset", "absent"
MOST_HOSTS = 8
"""Hosts of one value that are named; more are counted."""
ENVIRONMENT = "environment."
_NETWORK = "network."
_UCX = f"{ENVIRONMENT}UCX_"

_MACHINE = ("cpu_model", "cores", "memory", "kernel", "governor", "numa_nodes", "gpu_model", "gpu_driver", "gpu_limits")
_OF_EACH_RUN = (
    *("DASK_TEMPORARY_DIRECTORY", "GPUBENCH_CLOCK", "GPUBENCH_CLUSTER", "GPUBENCH_NODE_NAME", "HOME", "TMPDIR"),
    *("CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "LIBCUDF_KERNEL_CACHE_PATH"),
)
"""Variables that have another value in every run, job or image, or on every node."""

_LOADED = ("env_at_start", "loaded", "path")
_SAID = ("python", "node_half", "cpus_near_gpu")
_PROCESS = (*_SAID, "versions")
_NODE = ("host", "network", *_MACHINE)

_PASSING = ("br-", "cali", "cni", "docker", "flannel", "lxc", "tap", "veth", "virbr", "vnet")
"""How interfaces begin that come and go with other people's containers."""

Values = frozenset[tuple[str, str]]
"""(host, value); the host is empty for what processes say."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Values by field.

    ``recorded`` are prefixes of fields that were read as a whole: what has no value there is unset, else unknown.
    ``silent`` are hosts whose variables were not read: they ended before their last report.
    """

    values: Mapping[str, Values]
    recorded: frozenset[str]
    silent: frozenset[str] = frozenset()

    def differing(self, other: "Facts") -> Iterator[str]:
        """Fields that both know and in which they differ: host by host where the hosts are the same."""
        if self is other:
            return
        hosts = "hosts" in self.values and self.values["hosts"] == other.values.get("hosts")
        silent = self.silent | other.silent
        for field in {field for field, _ in self.values.items() ^ other.values.items()}:
            if self.knows(field) and other.knows(field):
                own, others = self._of(field), other._of(field)
                if silent and field.startswith(ENVIRONMENT):
                    own, others = (
                        frozenset(pair for pair in side.values.get(field, ()) if pair[0] not in silent)
                        for side in (self, other)
                    )
                if (own != others) if hosts else ({value for _, value in own} != {value for _, value in others}):
                    yield field

    def text(self, field: str, *, hosts: bool = False) -> str:
        """The one value, or each with its hosts (with ``hosts`` in any case)."""
        by_value: dict[str, list[str]] = {}
        for host, value in sorted(self._of(field)):
            by_value.setdefault(word(value), []).append(host)
        if len(by_value) == 1 and not hosts:
            return next(iter(by_value))
        return ", ".join(
            f"{value} on {_named(where)}" if any(where) else value for value, where in sorted(by_value.items())
        )

    def _of(self, field: str) -> Values:
        missing = UNSET if field.startswith(ENVIRONMENT) else ABSENT
        return self.values.get(field) or frozenset({("", missing)})

    def knows(self, field: str) -> bool:
        """Whether this run's value of ``field`` was recorded."""
        section = next((prefix for prefix in (_UCX, ENVIRONMENT, _NETWORK) if field.startswith(prefix)), field)
        return field in self.values or section in self.recorded


def _named(hosts: Sequence[str]) -> str:
    more = len(hosts) - MOST_HOSTS
    return " and ".join([*hosts[:MOST_HOSTS], *([f"{more} more"] if more > 0 else [])])


def word(value: str) -> str:
    """How a value is said: an empty one is ``empty``."""
    return value or "empty"


class Environments:
    """Environments of runs.

    ``seen`` and ``crowded`` are the facts of every run, and the runs in which more processes polled than there were
    cores.
    """

    def __init__(self, protocol: str) -> None:
        self.seen: dict[str, Facts] = {}
        self.crowded: set[str] = set()
        self._protocol = protocol

    def add(self, run: str, provenance: Mapping[str, Any]) -> None:
        """That of a run, by its ``provenance.json``."""
        self.seen[run] = facts(provenance)
        if is_oversubscribed(provenance, self._protocol):
            self.crowded.add(run)


def facts(provenance: Mapping[str, Any]) -> Facts:
    """The comparable part of one ``provenance.json``; runs that agree in it share one object."""
    processes = [
        {name: process[name] for name in _PROCESS if name in process} | {"ucx": _less(process.get("ucx"), _LOADED)}
        for process in _mappings(provenance.get("processes"))
    ]
    nodes = [
        {name: node[name] for name in _NODE if name in node}
        | {"environment": _less(node.get("environment"), _OF_EACH_RUN)}
        for node in _mappings(provenance.get("nodes"))
    ]
    return _facts(marshal.dumps({"processes": processes, "nodes": nodes}, AS_EQUALS))


AS_EQUALS = 2
"""The last version of marshal in which equal values are equal bytes; as a key it takes a fifth of JSON's time."""


@functools.lru_cache(maxsize=4096)
def _facts(comparable: bytes) -> Facts:
    provenance = marshal.loads(comparable)  # noqa: S302 - our own bytes, of a moment ago
    by_field: dict[str, set[tuple[str, str]]] = {}
    recorded: set[str] = set()
    nodes = list(_mappings(provenance.get("nodes")))
    for host, field, value in (*_of_processes(provenance, recorded), *_of_nodes(nodes, recorded)):
        by_field.setdefault(field, set()).add((host, str(value)))
    hosts = sorted({str(node["host"]) for node in nodes if "host" in node})
    if hosts:
        by_field["hosts"] = {("", ", ".join(hosts))}
    silent = {str(node["host"]) for node in nodes if "host" in node and not isinstance(node["environment"], Mapping)}
    values = {field: frozenset(values) for field, values in by_field.items()}
    return Facts(values, frozenset(recorded), frozenset(silent))


def _of_processes(provenance: Mapping[str, Any], recorded: set[str]) -> Iterator[tuple[str, str, Any]]:
    for process in _mappings(provenance.get("processes")):
        for field in _SAID:
            if field in process:
                yield "", field, process[field]
        for name, version in _items(process.get("versions")):
            yield "", f"versions.{name}", version
        ucx = process.get("ucx")
        variables = ucx.get("env") if isinstance(ucx, Mapping) else None
        recorded |= {_UCX} if isinstance(variables, Mapping) else set()
        for name, value in _items(variables):
            yield "", f"{ENVIRONMENT}{name}", value


def _of_nodes(nodes: list[Mapping[str, Any]], recorded: set[str]) -> Iterator[tuple[str, str, Any]]:
    for node in nodes:
        host = str(node.get("host", ""))
        for field in _MACHINE:
            if field in node:
                yield host, field, node[field]
        network, environment = node.get("network"), node.get("environment")
        recorded |= {_NETWORK} if isinstance(network, Mapping) else set()
        recorded |= {ENVIRONMENT} if isinstance(environment, Mapping) else set()
        for interface, kinds in _items(network):
            for kind, value in _items(kinds) if not interface.startswith(_PASSING) else ():
                yield host, f"{_NETWORK}{interface}.{kind}", value
        for name, value in _items(environment):
            # UCX_* in force are what the processes say: the binding adds to them.
            if not name.startswith("UCX_"):
                yield host, f"{ENVIRONMENT}{name}", value


def _less(value: Any, names: Collection[str]) -> Any:
    return {name: value[name] for name in value if name not in names} if isinstance(value, Mapping) else None


def _items(value: Any) -> list[tuple[str, Any]]:
    return [(str(name), inner) for name, inner in value.items()] if isinstance(value, Mapping) else []


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (entry for entry in (value if isinstance(value, list) else []) if isinstance(entry, Mapping))


Why = Literal["planned", "known", "allowed", ""]
_OF_MANIFESTS = ("python", "versions.")
_DISTRIBUTIONS = {"ucp": "ucx-py"}
"""Packages that aren't named like what they import."""
_WORST_LAST: tuple[Why, ...] = ("planned", "known", "allowed", "")


@dataclasses.dataclass(frozen=True)
class Change:
    """A field in which the runs of both variants of one block differed.

    Args:
        field: ``kernel``, ``network.eth0.mtu``, ``environment.UCX_TLS``: what ``--allow`` takes.
        before: the baseline's value, in words.
        why: ``planned`` by variants or images, ``known`` to be set by the binding, ``allowed`` by the user. Empty:
            asked for by nobody, so times can't tell its effect from the variant's.
    """

    field: str
    before: str
    after: str
    why: Why


@dataclasses.dataclass(frozen=True)
class Changes:
    """All changes of a family.

    Args:
        by_comparison: by field, each field once; planned changes are among them.
        values: by changed field: what the runs of each variant said, in the order of the plan's variants.
    """

    by_comparison: Sequence[tuple[Change, ...]] = ()
    values: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    def by_field(self) -> list[Change]:
        """Every changed field once, with the least reason that a comparison has for it."""
        return worst(change for changes in self.by_comparison for change in changes)


@dataclasses.dataclass(frozen=True)
class PlannedEnvironment:
    """What may differ.

    Args:
        by_binding: by variant, the variables that the binding sets on its own at that version of UCX.
        allow: patterns of fields, as the shell would match them (``network.*``).
    """

    plan: Plan
    manifests: Mapping[str, Any]
    by_binding: Mapping[str, Mapping[str, str]]
    allow: Sequence[str] = ()

    def why(self, baseline: str, candidate: str, field: str, before: str, after: str) -> Why:
        """Why ``field`` may differ between the two variants; empty where it may not."""
        sides = ((baseline, before), (candidate, after))
        if field.startswith(ENVIRONMENT):
            name = field.removeprefix(ENVIRONMENT)
            as_planned = [value == word(self._variables(label).get(name, UNSET)) for label, value in sides]
            as_binding_sets = [value == self.by_binding.get(label, {}).get(name) for label, value in sides]
            if all(as_planned):
                return "planned"
            if all(
                planned or set_by_binding for planned, set_by_binding in zip(as_planned, as_binding_sets, strict=True)
            ):
                return "known"
        elif field.startswith(_OF_MANIFESTS) and self._in_manifests(baseline, candidate, field):
            return "planned"
        return "allowed" if any(fnmatch.fnmatchcase(field, pattern) for pattern in self.allow) else ""

    def _variables(self, label: str) -> dict[str, str]:
        variant = self._variant(label)
        image = variant.image.env if variant.image else {}
        return {**PROCESS_DEFAULTS, **image, **self.plan.site.env, **variant.env}

    def _in_manifests(self, baseline: str, candidate: str, field: str) -> bool:
        images = (self._variant(baseline).image, self._variant(candidate).image)
        manifests = [self.manifests.get(image.manifest) if image else None for image in images]
        before, other = (manifest if isinstance(manifest, Mapping) else {} for manifest in manifests)
        return bool(before and other) and any(_is_about(path, field) for path, _, _ in differences(before, other))

    def _variant(self, label: str) -> PlannedVariant:
        return next(variant for variant in self.plan.variants if variant.label == label)


def find_changes(
    comparisons: Sequence[ComparisonInput], seen: Mapping[str, Facts], expected: PlannedEnvironment
) -> Changes:
    """What changed with the variant in each comparison.

    Args:
        comparisons: with all their runs; only complete pairs of blocks that count are looked at.
        seen: by run; what was not recorded has not changed.
    """
    pairs: dict[tuple[str, str], list[Change]] = {}
    by_comparison: list[tuple[Change, ...]] = []
    for comparison in comparisons:
        complete = _complete_pairs(comparison)
        for pair in complete:
            if pair not in pairs:
                sides = (seen.get(pair[0]), seen.get(pair[1]))
                pairs[pair] = list(changes_between(comparison.baseline, comparison.candidate, *sides, expected))
        by_comparison.append(tuple(worst(change for pair in complete for change in pairs[pair])))
    fields = sorted({change.field for changes in by_comparison for change in changes})
    return Changes(by_comparison, {field: _values(field, comparisons, seen, expected.plan) for field in fields})


def _values(field: str, comparisons: Iterable[ComparisonInput], seen: Mapping[str, Facts], plan: Plan) -> list[str]:
    texts: dict[str, set[str]] = {planned_variant.label: set() for planned_variant in plan.variants}
    for variant, run in {(run.variant, run.run) for comparison in comparisons for run in comparison.runs if run.times}:
        if run in seen and seen[run].knows(field):
            texts[variant].add(seen[run].text(field))
    return [" or ".join(sorted(texts[planned_variant.label])) or "not recorded" for planned_variant in plan.variants]


def worst(changes: Iterable[Change]) -> list[Change]:
    """One change per field, sorted by field: the first of those with the least reason."""
    kept: dict[str, Change] = {}
    for change in changes:
        least = kept.setdefault(change.field, change)
        if _WORST_LAST.index(change.why) > _WORST_LAST.index(least.why):
            kept[change.field] = change
    return [kept[field] for field in sorted(kept)]


def with_changes(comparisons: Sequence[ComparisonInput], changes: Changes) -> list[ComparisonInput]:
    """The same comparisons, each with what changed unasked."""
    return [
        dataclasses.replace(
            comparison,
            changed={item.field: f"{item.before} → {item.after}" for item in comparison_changes if not item.why},
        )
        for comparison, comparison_changes in zip(comparisons, changes.by_comparison, strict=True)
    ]


def with_oversubscription(comparisons: Sequence[ComparisonInput], crowded: Set[str]) -> list[ComparisonInput]:
    """The same comparisons, each with whether one of its runs is among the ``crowded``."""
    return [
        dataclasses.replace(comparison, oversubscribed=any(run.run in crowded for run in comparison.runs))
        for comparison in comparisons
    ]


def is_oversubscribed(provenance: Mapping[str, Any], protocol: str) -> bool:
    """Whether more processes of a run polled on a machine than it has cores; False where that isn't recorded."""
    try:
        settings = [
            (process["host"], process["ucx"]["env"], process["affinity"]) for process in provenance.get("processes", ())
        ]
        return _crowded(protocol, marshal.dumps(settings, AS_EQUALS))
    except (AttributeError, KeyError, TypeError):
        return False  # a hole in it mustn't stop a report


@functools.lru_cache(maxsize=4096)
def _crowded(protocol: str, settings: bytes) -> bool:
    processes = marshal.loads(settings)  # noqa: S302 - as above
    return bool(crowded_hosts(protocol, [{"host": h, "ucx": {"env": e}, "affinity": a} for h, e, a in processes]))


def _complete_pairs(comparison: ComparisonInput) -> list[tuple[str, str]]:
    sides: dict[str, dict[BlockId, str]] = {comparison.baseline: {}, comparison.candidate: {}}
    for run in comparison.runs:
        if run.times and run.variant in sides and (block := run.block_id) is not None:
            sides[run.variant][block] = run.run
    before, after = sides.values()
    return [(before[block], after[block]) for block in sorted(before.keys() & after.keys())]


def changes_between(
    baseline: str, candidate: str, before: Facts | None, after: Facts | None, expected: PlannedEnvironment
) -> Iterable[Change]:
    """Every field in which two runs differ, sorted by name; none where one of them left no provenance."""
    if before is None or after is None:
        return
    for field in sorted(before.differing(after)):
        texts = before.text(field), after.text(field)
        if texts[0] == texts[1]:
            texts = before.text(field, hosts=True), after.text(field, hosts=True)
        yield Change(field, *texts, expected.why(baseline, candidate, field, *texts))


def _is_about(path: str, field: str) -> bool:
    """Whether ``path`` of the manifests is what a process says as ``field``; wheels may be named after their CUDA."""
    if field == "python":
        return path == "stack.python"
    library = field.removeprefix("versions.")
    wheel = re.escape(_DISTRIBUTIONS.get(library, library.replace("_", "-")))
    return re.fullmatch(rf"stack\.packages\.{wheel}(-cu(da)?\d+x?)?", path) is not None
