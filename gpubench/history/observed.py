"""One figure per cell, version and date, of a campaign or an import, with what is known of the circumstances. Pure."""

import dataclasses
import datetime as dt
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpubench.images.manifests import differences
from gpubench.importers.pairing import Key, Point
from gpubench.merge.environment import Facts, facts
from gpubench.merge.family import Cell
from gpubench.model.plan import Plan
from gpubench.spec.plain import canonical

_CIRCUMSTANCES = ("date", "wallclock", "throughput", "data_processed", "duration", "rate", "time_", "tps", "runtime")
"""How fields begin that hold the result itself, or the day, and so are no reason for it."""


@dataclasses.dataclass(frozen=True)
class Observed:
    """What one cell took under one variant on one date.

    Args:
        source: the campaign or import.
        log_s: log of the seconds: the mean over the date's runs.
        runs: how many there were; in an import, times.
        se: relative standard error of the figure, None where nobody knows.
        known: circumstances by field, in words.
        provenance: of a campaign's run; its differing fields are told with the care that verdicts take.
        machine: of a campaign: its site, and what its processors are; empty for an import.
    """

    key: Key
    variant: str
    date: dt.date
    source: str
    log_s: float
    runs: int
    se: float | None = None
    workers: int | None = None
    bytes: int | None = None
    known: Mapping[str, str] = dataclasses.field(default_factory=dict)
    provenance: Facts | None = None
    machine: tuple[str, ...] = ()

    def changed(self, after: "Observed") -> list[str]:
        """``field before → after`` of everything that both recorded and that differs."""
        found = [
            f"{path} {before if before is not None else 'none'} → {now if now is not None else 'none'}"
            for path, before, now in differences(self.known, after.known)
        ]
        if self.provenance is not None and after.provenance is not None:
            found += [
                f"{field} {self.provenance.words(field)} → {after.provenance.words(field)}"
                for field in sorted(self.provenance.differing(after.provenance))
            ]
        return found


def of_import(name: str, points: Iterable[Point], documents: Mapping[str, Any]) -> Iterator[Observed]:
    """A figure per point: the arithmetic mean of its times.

    Args:
        documents: what stood beside the files, by hash, like a package list.
    """
    for one in points:
        mean = math.fsum(one.wall_s) / len(one.wall_s)
        yield Observed(
            one.key,
            one.variant,
            one.date,
            name,
            math.log(mean),
            len(one.wall_s),
            _error(one, mean),
            one.workers,
            one.bytes,
            _known(json.loads(one.extras[0]), documents),
        )


def of_campaign(
    plan: Plan,
    table: Iterable[Cell],
    provenance: Mapping[str, Mapping[str, Any]],
    manifests: Mapping[str, Any],
    sizes: Mapping[tuple[str, str], int],
) -> Iterator[Observed]:
    """A figure per cell and variant: the mean over the runs that are ok, of what the verdicts take of each.

    Args:
        plan: of the campaign; its day is that of the figures.
        provenance: by run.
        manifests: by hash.
        sizes: nominal bytes by run and ``params_id``.
    """
    images = {one.label: one.image for one in plan.variants}
    groups: dict[tuple[Key, str], list[Cell]] = {}
    for cell in table:
        if cell.status == "ok" and cell.wall_s:
            groups.setdefault((key_of(plan, cell), cell.outcome.run.variant), []).append(cell)
    for (key, variant), cells in groups.items():
        logs = [math.log(math.fsum(cell.wall_s) / len(cell.wall_s)) for cell in cells]
        job, image = cells[0].outcome.job, images[variant]
        recorded = facts(provenance.get(cells[0].outcome.run.run, {}))
        yield Observed(
            key,
            variant,
            day_of(plan),
            plan.campaign,
            float(np.mean(logs)),
            len(logs),
            float(np.std(logs, ddof=1) / math.sqrt(len(logs))) if len(logs) > 1 else None,
            job.nodes * job.workers_per_node,
            sizes.get((cells[0].outcome.run.run, cells[0].workload.params_id)) or None,
            _flat(manifests.get(image.manifest, {}), "image") if image else {},
            recorded,
            (plan.site.name, _processors(plan, recorded)),
        )


def _processors(plan: Plan, recorded: Facts) -> str:
    cpus = " x ".join(recorded.words(name) for name in ("cores", "cpu_model"))
    gpus = recorded.words("gpu_model") if plan.device != "cpu" and recorded.knows("gpu_model") else ""
    return f"{cpus}, {gpus}" if gpus else cpus


def day_of(plan: Plan) -> dt.date:
    """The day that a campaign's figures are of."""
    return dt.datetime.fromisoformat(plan.created_at).date()


def key_of(plan: Plan, cell: Cell) -> Key:
    """What identifies the cell, also beside those of another campaign."""
    job = cell.outcome.job
    return (
        ("workload", cell.workload.name),
        ("backend", cell.workload.backend),
        ("params", canonical(cell.workload.params).decode()),
        ("nodes", job.nodes),
        ("workers_per_node", job.workers_per_node),
        ("threads_per_worker", plan.threads_per_worker),
        ("protocol", plan.protocol),
        ("device", plan.device),
    )


def _error(one: Point, mean: float) -> float | None:
    if one.wall_se is not None:
        return one.wall_se / mean
    return float(np.std(one.wall_s, ddof=1) / math.sqrt(len(one.wall_s)) / mean) if len(one.wall_s) > 1 else None


def _known(extra: Mapping[str, Any], documents: Mapping[str, Any]) -> dict[str, str]:
    plain = {
        name: value
        for name, value in extra.items()
        if not name.startswith(_CIRCUMSTANCES) and isinstance(value, str | int | float | bool) and value != ""
    }
    beside = {name: documents.get(digest) for name, digest in (extra.get("documents") or {}).items()}
    return _flat(plain) | _flat(beside)


def _flat(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, Mapping):
        items: Sequence[tuple[str, Any]] = [(str(name), inner) for name, inner in value.items()]
    elif isinstance(value, list) and all(isinstance(one, Mapping) and "name" in one for one in value):
        items = [(str(one["name"]), one.get("version", "")) for one in value]  # a package list
    else:
        return {path: str(value)}
    found: dict[str, str] = {}
    for name, inner in items:
        found |= _flat(inner, f"{path}.{name}" if path else name)
    return found
