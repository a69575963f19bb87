"""What the provenance of a run says, read flat: a value per field and host. Pure.

Not read is what never stands still: load, process ids, scratch directories.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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
NOT_PROVED = "not proved: UCX didn't say (1.18 and newer do, unless UCX_PROTO_ENABLE=n)"
_SAID = ("python", "node_half", "cpus_near_gpu")
_OF_UCX = ("loaded", "path")
_OF_NODES = {"network": _NETWORK, "environment": ENVIRONMENT}

_PASSING = ("br-", "cali", "cni", "docker", "flannel", "lxc", "tap", "veth", "virbr", "vnet")
"""How interfaces begin that come and go with other people's containers."""

Values = frozenset[tuple[str, str]]
"""(host, value); the host is empty for what processes say."""


@dataclasses.dataclass(frozen=True)
class ProvenanceFacts:
    """Values by field.

    ``recorded`` are prefixes of fields that were read as a whole: what has no value there is unset, else unknown.
    ``silent`` are hosts whose variables were not read: they ended before their last report. So did processes (empty).
    """

    values: Mapping[str, Values]
    recorded: frozenset[str]
    silent: frozenset[str] = frozenset()

    def differing(self, other: "ProvenanceFacts") -> Iterator[str]:
        """Fields that both know and in which they differ: host by host where the hosts are the same."""
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


def said(field: str, runs: Iterable[ProvenanceFacts]) -> str:
    """Every value that the runs recorded."""
    return " or ".join(sorted({run.text(field) for run in runs if run.knows(field)})) or "not recorded"


def facts(provenance: Mapping[str, Any]) -> ProvenanceFacts:
    """The part of one ``provenance.json`` that is compared or shown; nothing where it is missing, or isn't one."""
    try:
        return _facts(provenance)
    except (AttributeError, KeyError, TypeError):  # edited by hand: a hole in it mustn't stop a report
        return _facts({})


def _facts(provenance: Mapping[str, Any]) -> ProvenanceFacts:
    processes, nodes = provenance.get("processes", []), provenance.get("nodes", [])
    values: dict[str, set[tuple[str, str]]] = {}
    of_run = (*_of_processes(processes), *_of_nodes(nodes), *_of_transport(provenance.get("transport", {})))
    for host, field, value in of_run:
        values.setdefault(field, set()).add((host, str(value)))
    if nodes:
        values["hosts"] = {("", ", ".join(sorted({node["host"] for node in nodes})))}
    recorded = {section for node in nodes for name, section in _OF_NODES.items() if name in node}
    silent = {node["host"] for node in nodes if "environment" not in node}
    if processes:
        recorded.add(UCX_VARIABLES)
    else:
        silent.add("")
    by_field = {field: frozenset(of_field) for field, of_field in values.items()}
    return ProvenanceFacts(by_field, frozenset(recorded), frozenset(silent))


def _of_transport(transport: Mapping[str, list[str]]) -> Iterator[tuple[str, str, Any]]:
    signs = {"carriers": "; "}  # whose words hold commas
    listed = {name: signs.get(name, ", ").join(sorted(parts)) for name, parts in transport.items() if parts}
    if "observed" in listed:  # all others were possible, and nothing proves more
        listed.setdefault("carriers", NOT_PROVED)
    yield from (("", f"transport.{name}", transports) for name, transports in listed.items())


def _of_processes(processes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    if processes:
        yield "", "processes", len(processes)
    for process in processes:
        ucx = process["ucx"]
        yield from (("", field, process[field]) for field in _SAID if field in process)
        yield from (("", f"versions.{name}", version) for name, version in process["versions"].items())
        yield from (("", f"ucx.{name}", ucx[name]) for name in _OF_UCX if ucx.get(name))
        yield from (("", f"{ENVIRONMENT}{name}", value) for name, value in ucx["env"].items())


def _of_nodes(nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    for node in nodes:
        host = node["host"]
        yield from ((host, field, node[field]) for field in _MACHINE if field in node)
        for interface, kinds in node.get("network", {}).items():
            if not interface.startswith(_PASSING):
                yield from ((host, f"{_NETWORK}{interface}.{kind}", value) for kind, value in kinds.items())
        for name, value in node.get("environment", {}).items():
            # UCX_* in force are what the processes say: the binding adds to them.
            if name not in _OF_EACH_RUN and not name.startswith("UCX_"):
                yield host, f"{ENVIRONMENT}{name}", value
