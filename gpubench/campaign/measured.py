"""What the measurement of one workload found, as one object."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.files import reading
from gpubench.node.spec import WorkloadRecord, WorkloadSpec
from gpubench.node.spec.plain import SpecError, parse_lines
from gpubench.node.spec.records import LINKS_FILE, SAMPLES_FILE
from gpubench.store.campaign import Campaign
from gpubench.store.states import account_now

MEASURE = "gpubench/measure/1"


def of_campaign(campaign: Campaign, *, held: int, memory: int) -> dict[str, Any]:
    """What the one run of a campaign measured.

    Args:
        campaign: of one block, one variant and one workload, which has been run.
        held: bytes that a worker holds at the worst moment.
        memory: bytes that it has, 0: not known.
    """
    plan = campaign.plan
    (outcome,) = account_now(campaign).outcomes
    (planned,) = plan.workloads
    variant = plan.variants[0]
    record = outcome.record
    return result(
        planned,
        next(iter(record.workloads), None) if record else None,
        outcome.directory,
        status=outcome.status,
        reason=outcome.reason,
        cluster={
            "site": plan.site.name,
            "nodes": outcome.job.nodes,
            "workers": outcome.job.nodes * outcome.job.workers_per_node,
            "threads_per_worker": plan.threads_per_worker,
            "device": record.device if record else plan.device,
            "protocol": plan.protocol,
            "transport": record.transport if record else [],
            "variant": variant.label,
            "ucx_version": variant.image.ucx_version if variant.image else "",
            "image": variant.image.id if variant.image else "",
            "hosts": record.hosts if record else [],
            "memory_per_worker": memory,
            "held_per_worker": held,
        },
        campaign=str(campaign.directory),
        warnings=record.warnings if record else [],
    )


def result(
    spec: WorkloadSpec,
    record: WorkloadRecord | None,
    directory: Path | None,
    *,
    status: str,
    reason: str,
    cluster: Mapping[str, Any],
    campaign: str,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """The object that ``--json`` prints: seconds and bytes; ``status`` is ``ok failed skipped lost``.

    ``record`` and ``directory`` (with its samples and links) are None where the run left none. Rates are of the median
    repetition, and 0 where nothing was counted. Raises DataError where a file is damaged.
    """
    samples = _lines(directory, SAMPLES_FILE)
    timed = [row for row in samples if not row["warmup"]]
    seconds = [float(row["wall_s"]) for row in timed]
    median = statistics.median(seconds) if seconds else 0.0
    nominal = int(timed[0]["bytes"]) if timed else 0
    tasks = int(spec.params.get("count", 0)) if timed and not nominal else 0
    bytes_per_s = nominal / median if median else 0.0
    details = dict(record.details) if record else {}
    if record is not None and record.status != "ok":
        status, reason = record.status, record.reason
    return {
        "schema": MEASURE,
        "workload": spec.name,
        "backend": spec.backend,
        "params": dict(spec.params),
        "params_id": spec.params_id,
        "cluster": dict(cluster),
        "status": status,
        "reason": reason,
        "warmup": spec.warmup,
        "reps": len(seconds),
        "wall_s": seconds,
        "median_s": median,
        "least_s": min(seconds, default=0.0),
        "most_s": max(seconds, default=0.0),
        "bytes": nominal,
        "bytes_per_s": bytes_per_s,
        "bytes_per_s_per_worker": bytes_per_s / cluster["workers"] if cluster["workers"] else 0.0,
        "tasks_per_s": tasks / median if median else 0.0,
        "answer": samples[-1]["answer"] if samples else "unchecked",
        "check": {name: value for name, value in details.items() if name not in _BYTES},
        "moved": {**{name: details.get(name, 0) for name in _BYTES}, "links": _lines(directory, LINKS_FILE)},
        "warnings": list(warnings),
        "campaign": campaign,
        "directory": str(directory) if directory else "",
    }


_BYTES = ("seen_bytes", "least_moved_bytes", "keys_left")


def _lines(directory: Path | None, name: str) -> list[dict[str, Any]]:
    if directory is None or not (directory / name).exists():
        return []
    try:
        with reading(directory / name):
            return parse_lines((directory / name).read_text(encoding="utf-8"))
    except (SpecError, json.JSONDecodeError) as error:
        raise DataError(f"{directory / name}: {error}") from None
