"""One planned workload on a cluster: its samples and links go into a directory, how it ended into its record."""

import functools
from pathlib import Path
from typing import Any

from gpubench.spec import WorkloadRecord, WorkloadSpec
from gpubench.workloads import families, links
from gpubench.workloads.base import WorkloadContext
from gpubench.workloads.measure import Result, measure
from gpubench.writer.run_dir import append_links, append_sample

MOST_WORDS = 300
"""Characters of an error that a record keeps."""


def measure_into(
    directory: Path, context: WorkloadContext, planned: WorkloadSpec, record: WorkloadRecord, **options: Any
) -> Result:
    """Measure a workload; ``options`` as for ``measure``. Whatever the workload raises comes through."""
    measurement = families.create(planned.name, context, planned.backend, planned.params)
    result = measure(measurement, planned, functools.partial(append_sample, directory), **options)
    about = {"workload": planned.name, "params_id": planned.params_id}
    append_links(directory, [{**row, **about} for row in links.rows(result.links)])
    record.details, record.status, record.reason = result.details, result.status, result.reason
    return result


def describe_error(error: Exception) -> str:
    """Kind of an error and the first line of its message."""
    return "{}: {}".format(type(error).__name__, str(error).strip().split("\n")[0][:MOST_WORDS])
