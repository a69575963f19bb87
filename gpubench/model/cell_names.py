"""Short names of cells: the workload, and what tells it from the others."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.model.quantities import format_bytes
from gpubench.node.spec import WorkloadSpec
from gpubench.node.spec.plain import canonical
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.node.workloads.catalogue.own import shown

Key = Mapping[str, object]


def short_size(count: int) -> str:
    """Bytes as people write them: ``10 MB``, ``1 KiB``."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor and count % factor == 0:
            return f"{count // factor} {unit}"
    return format_bytes(count).replace(".0 ", " ")


_FIELDS = {
    "backend": "{}",
    "nodes": "{} nodes",
    "workers_per_node": "{} workers",
    "workers": "{} workers in all",
    "threads_per_worker": "{} threads",
    "protocol": "{}",
    "device": "{}",
    "site": "on {}",
}
_ON_EACH = "{} on each node"
"""Workers, where those of the whole cluster are named besides."""
_NAMED_BY_THE_WORKLOAD = ("workload", "params", "params_id")


def workload_key(workload: WorkloadSpec) -> Key:
    """The parts of a cell's key that say what was measured."""
    return {"workload": workload.name, "backend": workload.backend, "params": canonical(workload.params).decode()}


def cell_names(keys: Sequence[Key]) -> list[str]:
    """A short unique name per cell: the workload, and only what differs between the cells.

    ``[message 1 KiB, message 10 MB, merge]``; node counts, backends and layouts are named where there are several, and
    so is any other part of a key (a column of a user's table): ``merge gpu=H100``.
    """
    return [_name(key, keys) for key in keys]


def _name(key: Key, keys: Sequence[Key]) -> str:
    alike = [_params(other) for other in keys if other["workload"] == key["workload"]]
    own = _params(key)
    parts = [str(key["workload"])]
    parts += [_param(parts[0], name, own[name]) for name in own if any(other.get(name) != own[name] for other in alike)]
    for field in (*_FIELDS, *(name for name in key if name not in _FIELDS and name not in _NAMED_BY_THE_WORKLOAD)):
        on_each = field == "workers_per_node" and "workers" in key
        beside = [other for other in keys if not on_each or other.get("workers") == key["workers"]]
        if key.get(field) is not None and len({other.get(field) for other in beside}) > 1:
            parts.append((_ON_EACH if on_each else _FIELDS.get(field, f"{field}={{}}")).format(key[field]))
    return re.sub(r" 1 (node|worker|thread)s\b", r" 1 \1", " ".join(parts))


def _params(key: Key) -> Mapping[str, Any]:
    """By name; the column ``params`` of a user's table may hold any text, which is one parameter then."""
    text = str(key.get("params", "{}"))
    try:
        plain = json.loads(text)
    except ValueError:
        plain = None
    return plain if isinstance(plain, dict) else {"params": text}


def _param(workload: str, name: str, value: Any) -> str:
    known = CATALOGUE.get(workload)
    kind = known.params[name].kind if known and name in known.params else ""
    return short_size(value) if kind == "size" else f"{name}={shown(name, value)}"
