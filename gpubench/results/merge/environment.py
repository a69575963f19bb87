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

from gpubench.images.compatibility import set_by_binding
from gpubench.images.manifests import differences
from gpubench.model.plan import Plan
from gpubench.node.spec import PROCESS_DEFAULTS
from gpubench.node.spec.waiting import crowded_hosts
from gpubench.stats.data import BlockId, ComparisonInput

UNSET, ABSENT = "unset", "absent"
MOST_HOSTS = 8
"""Hosts of one value that are named; more are counted."""
ENVIRONMENT = "environment."
_NETWORK = "network."
UCX_VARIABLES = f"{ENVIRONMENT}UCX_"

_MACHINE = ("cpu_model", "cores", "memory", "kernel", "governor", "numa_nodes", "gpu_model", "gpu_driver", "gpu_limits")
_OF_EACH_RUN = (
    *("DASK_TEMPORARY_DIRECTORY", "GPUBENCH_CLOCK", "GPUBENCH_CLUSTER", "GPUBENCH_NODE_NAME", "HOME", "TMPDIR"),
    *("CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "LIBCUDF_KERNEL_CACHE_PATH"),
)
"""Variables that have another value in every run, job or image, or on every node."""

SHOWN = ("processes", "ucx.loaded", "ucx.path", "transport.observed", "transport.carriers", "transport.lanes")
"""Fields that prove what a run used. They differ where versions of UCX do, so they aren't compared."""
NOT_PROVED = "not proved: UCX didn't say (1.18 and newer can)"
_SAID = ("python", "node_half", "cpus_near_gpu")
_PROCESS = (*_SAID, "versions")
_AT_START = ("env_at_start",)
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
        for field in {field for field, _ in self.values.items() ^ other.values.items()}.difference(SHOWN):
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

    def on(self, host: str, field: str) -> str:
        """The value of one host; empty where it isn't recorded."""
        return next((value for where, value in self.values.get(field, ()) if where == host), "")

    def _of(self, field: str) -> Values:
        missing = UNSET if field.startswith(ENVIRONMENT) else ABSENT
        return self.values.get(field) or frozenset({("", missing)})

    def knows(self, field: str) -> bool:
        """Whether this run's value of ``field`` was recorded."""
        section = next((prefix for prefix in (UCX_VARIABLES, ENVIRONMENT, _NETWORK) if field.startswith(prefix)), field)
        return field in self.values or section in self.recorded


def _named(hosts: Sequence[str]) -> str:
    more = len(hosts) - MOST_HOSTS
    return " and ".join([*hosts[:MOST_HOSTS], *([f"{more} more"] if more > 0 else [])])


def word(value: str) -> str:
    """How a value is said: an empty one is ``empty``."""
    return value or "empty"


def said(field: str, runs: Iterable[Facts]) -> str:
    """Every value that the runs recorded."""
    return " or ".join(sorted({run.text(field) for run in runs if run.knows(field)})) or "not recorded"


def facts(provenance: Mapping[str, Any]) -> Facts:
    """The part of one ``provenance.json`` that is compared or shown; runs that agree in it share one object."""
    processes = [
        {name: process[name] for name in _PROCESS if name in process} | {"ucx": _less(process.get("ucx"), _AT_START)}
        for process in _mappings(provenance.get("processes"))
    ]
    nodes = [
        {name: node[name] for name in _NODE if name in node}
        | {"environment": _less(node.get("environment"), _OF_EACH_RUN)}
        for node in _mappings(provenance.get("nodes"))
    ]
    transport = _less(provenance.get("transport"), ())
    return _facts(marshal.dumps({"processes": processes, "nodes": nodes, "transport": transport}, AS_EQUALS))


AS_EQUALS = 2
"""The last version of marshal in which equal values are equal bytes; as a key it takes a fifth of JSON's time."""


@functools.lru_cache(maxsize=4096)
def _facts(comparable: bytes) -> Facts:
    provenance = marshal.loads(comparable)  # noqa: S302 - our own bytes, of a moment ago
    by_field: dict[str, set[tuple[str, str]]] = {}
    recorded: set[str] = set()
    nodes = list(_mappings(provenance.get("nodes")))
    of_run = (*_of_processes(provenance, recorded), *_of_nodes(nodes, recorded), *_of_transport(provenance))
    for host, field, value in of_run:
        by_field.setdefault(field, set()).add((host, str(value)))
    hosts = sorted({str(node["host"]) for node in nodes if "host" in node})
    if hosts:
        by_field["hosts"] = {("", ", ".join(hosts))}
    silent = {str(node["host"]) for node in nodes if "host" in node and not isinstance(node["environment"], Mapping)}
    values = {field: frozenset(values) for field, values in by_field.items()}
    return Facts(values, frozenset(recorded), frozenset(silent))


def _of_transport(provenance: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    of_kind = ((name, words) for name, words in _items(provenance["transport"]) if isinstance(words, list) and words)
    listed = {name: ", ".join(sorted(map(str, words))) for name, words in of_kind}
    if "observed" in listed:  # all others were possible, and nothing proves more
        listed.setdefault("carriers", NOT_PROVED)
    yield from (("", f"transport.{name}", words) for name, words in listed.items())


def _of_processes(provenance: Mapping[str, Any], recorded: set[str]) -> Iterator[tuple[str, str, Any]]:
    processes = list(_mappings(provenance.get("processes")))
    if processes:
        yield "", "processes", len(processes)
    for process in processes:
        for field in _SAID:
            if field in process:
                yield "", field, process[field]
        for name, version in _items(process.get("versions")):
            yield "", f"versions.{name}", version
        ucx = process.get("ucx")
        yield from (("", f"ucx.{name}", value) for name, value in _items(ucx) if name != "env" and value)
        variables = ucx.get("env") if isinstance(ucx, Mapping) else None
        recorded |= {UCX_VARIABLES} if isinstance(variables, Mapping) else set()
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
        values: by changed field: what the runs of each side said, in the order of the sides.
    """

    by_comparison: Sequence[tuple[Change, ...]] = ()
    values: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    def by_field(self) -> list[Change]:
        """Every changed field once, with the least reason that a comparison has for it."""
        return worst(change for changes in self.by_comparison for change in changes)


@dataclasses.dataclass(frozen=True)
class PlannedSide:
    """What was planned for the processes of a variant.

    ``by_binding`` are variables that the binding sets on its own at that version of UCX; ``manifest`` is the image's.
    """

    variables: Mapping[str, str]
    by_binding: Mapping[str, str]
    manifest: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class PlannedEnvironment:
    """What may differ between the sides, by their labels.

    ``allow`` are patterns of fields, as the shell would match them (``network.*``).
    """

    sides: Mapping[str, PlannedSide]
    allow: Sequence[str] = ()

    def why(self, baseline: str, candidate: str, field: str, before: str, after: str) -> Why:
        """Why ``field`` may differ between the two variants; empty where it may not."""
        sides = ((self.sides[baseline], before), (self.sides[candidate], after))
        if field.startswith(ENVIRONMENT):
            name = field.removeprefix(ENVIRONMENT)
            planned = [value == word(side.variables.get(name, UNSET)) for side, value in sides]
            by_binding = [value == side.by_binding.get(name) for side, value in sides]
            if all(planned):
                return "planned"
            if all(map(any, zip(planned, by_binding, strict=True))):
                return "known"
        elif field.startswith(_OF_MANIFESTS):
            manifests = [side.manifest for side, _ in sides]
            if all(manifests) and any(_is_about(path, field) for path, _, _ in differences(*manifests)):
                return "planned"
        return "allowed" if any(fnmatch.fnmatchcase(field, pattern) for pattern in self.allow) else ""


def planned_environment(plan: Plan, manifests: Mapping[str, Any], allow: Sequence[str] = ()) -> PlannedEnvironment:
    """What may differ between the variants of a plan, and ``allow`` besides; manifests are by hash."""
    sides = {}
    for variant in plan.variants:
        image = variant.image
        manifest = manifests.get(image.manifest, {}) if image else {}
        stack = manifest.get("stack", {}).get("name", "")
        variables = {**PROCESS_DEFAULTS, **(image.env if image else {}), **plan.site.env, **variant.env}
        by_binding = set_by_binding(stack, image.ucx_version) if image else {}
        sides[variant.label] = PlannedSide(variables, by_binding, manifest)
    return PlannedEnvironment(sides, (*plan.site.defaults.allow_changed, *allow))


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
    runs: dict[str, list[Facts]] = {label: [] for label in expected.sides}
    for variant, run in {(run.variant, run.run) for comparison in comparisons for run in comparison.runs if run.times}:
        runs[variant] += [seen[run]] if run in seen else []
    values = {field: [said(field, of_variant) for of_variant in runs.values()] for field in fields}
    return Changes(by_comparison, values)


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
