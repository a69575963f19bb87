"""What the provenance of a run says, read flat: a value per field and host. Pure.

Every key of a ``provenance.json`` may be missing. Not read is what never stands still: load, process ids, scratch
directories.
"""

import dataclasses
import functools
import marshal
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpubench.node.spec.waiting import crowded_hosts

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
    ``silent`` are hosts whose variables were not read: they ended before their last report. So did processes (empty).
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
    hosts = [host for host in hosts if host]
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
    silent |= set() if UCX_VARIABLES in recorded else {""}
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
