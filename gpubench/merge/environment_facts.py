"""What a run's provenance says of its environment, flat: a value per field and host. Pure.

Every key of a ``provenance.json`` may be missing; what is missing isn't compared.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

UNSET, ABSENT = "unset", "absent"
ENVIRONMENT = "environment."
_NETWORK = "network."
_UCX = f"{ENVIRONMENT}UCX_"

_MACHINE = ("cpu_model", "cores", "memory", "kernel", "governor", "numa_nodes")
_OF_EACH_RUN = ("DASK_TEMPORARY_DIRECTORY", "GPUBENCH_CLUSTER", "HOME", "TMPDIR")
"""Variables that the node half sets to another value in every run."""

_LOADED = ("env_at_start", "loaded", "path")
_PROCESS = ("python", "node_half", "versions")
_NODE = ("host", "network", *_MACHINE)

_PASSING = ("br-", "cali", "cni", "docker", "flannel", "lxc", "tap", "veth", "virbr", "vnet")
"""How interfaces begin that come and go with other people's containers."""

Values = frozenset[tuple[str, str]]
"""(host, value); the host is empty for what processes say."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Values by field.

    ``recorded`` are prefixes of fields that were read as a whole: what has no value there is unset, else unknown.
    """

    values: Mapping[str, Values]
    recorded: frozenset[str]

    def differing(self, other: Facts) -> Iterator[str]:
        """Fields that both know and in which they differ: host by host where the hosts are the same."""
        if self is other:
            return
        hosts = "hosts" in self.values and self.values["hosts"] == other.values.get("hosts")
        for field in {field for field, _ in self.values.items() ^ other.values.items()}:
            if self.knows(field) and other.knows(field):
                one, two = self._of(field), other._of(field)
                if (one != two) if hosts else ({value for _, value in one} != {value for _, value in two}):
                    yield field

    def words(self, field: str, *, hosts: bool = False) -> str:
        """The one value, or each with its hosts (with ``hosts`` in any case)."""
        by_value: dict[str, list[str]] = {}
        for host, value in sorted(self._of(field)):
            by_value.setdefault(word(value), []).append(host)
        if len(by_value) == 1 and not hosts:
            return next(iter(by_value))
        return ", ".join(
            f"{value} on {' and '.join(where)}" if any(where) else value for value, where in sorted(by_value.items())
        )

    def _of(self, field: str) -> Values:
        missing = UNSET if field.startswith(ENVIRONMENT) else ABSENT
        return self.values.get(field) or frozenset({("", missing)})

    def knows(self, field: str) -> bool:
        """Whether this run's value of ``field`` was recorded."""
        section = next((prefix for prefix in (_UCX, ENVIRONMENT, _NETWORK) if field.startswith(prefix)), field)
        return field in self.values or section in self.recorded


def word(value: str) -> str:
    """How a value is said: an empty one is ``empty``."""
    return value or "empty"


def facts(provenance: Mapping[str, Any]) -> Facts:
    """The comparable part of one ``provenance.json``; runs that agree in it share one object."""
    processes = [
        {name: one[name] for name in _PROCESS if name in one} | {"ucx": _less(one.get("ucx"), _LOADED)}
        for one in _mappings(provenance.get("processes"))
    ]
    nodes = [
        {name: one[name] for name in _NODE if name in one}
        | {"environment": _less(one.get("environment"), _OF_EACH_RUN)}
        for one in _mappings(provenance.get("nodes"))
    ]
    return _facts(json.dumps({"processes": processes, "nodes": nodes}))


@functools.lru_cache(maxsize=4096)
def _facts(comparable: str) -> Facts:
    provenance = json.loads(comparable)
    found: dict[str, set[tuple[str, str]]] = {}
    recorded: set[str] = set()
    nodes = list(_mappings(provenance.get("nodes")))
    for host, field, value in (*_of_processes(provenance, recorded), *_of_nodes(nodes, recorded)):
        found.setdefault(field, set()).add((host, str(value)))
    hosts = sorted({str(node["host"]) for node in nodes if "host" in node})
    if hosts:
        found["hosts"] = {("", ", ".join(hosts))}
    return Facts({field: frozenset(values) for field, values in found.items()}, frozenset(recorded))


def _of_processes(provenance: Mapping[str, Any], recorded: set[str]) -> Iterator[tuple[str, str, Any]]:
    for process in _mappings(provenance.get("processes")):
        for field in ("python", "node_half"):
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
