"""The columns of the table of samples: what a line of ``samples.jsonl``, a results file and an import hold.

Writer, readers, Parquet schema and manual follow this list; ``compare`` also reads ``stats/table``.
"""

import dataclasses
from typing import Any, Dict, Optional, Tuple

TEXT, JSON, COUNT, WHOLE, NUMBER, FLAG, MOMENT, DAY = (
    *("text", "JSON", "count", "whole number", "number", "true or false", "time", "day"),
)
"""Types. A count has 31 bits, a whole number 63; a time is UTC with microseconds."""
MOST = {COUNT: 2**31, WHOLE: 2**63}
ANSWERS = ("ok", "wrong", "unchecked")

RUN, WORKLOAD, SAMPLE, IMPORT = "run", "workload of a run", "sample", "import"
"""What a column is a fact of. A line of ``samples.jsonl`` has those of a sample, an import alone those of an import."""

NEEDED, TAKEN = "needed", "taken"
"""What ``compare`` does with a column of a table: it needs it, for some with a default, or it uses it where it is."""

Sample = Dict[str, Any]
"""A timed repetition by column, with ``workload``, ``backend`` and ``params_id``, which say what was repeated."""
OF_WHAT = ("workload", "backend", "params_id")


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of the table.

    Args:
        name: in every file.
        type: one of the types above.
        of: what it is a fact of.
        meaning: for the manual.
        unit: of a number.
        required: whether every sample of ours has it; what couldn't be read stands in no line.
        least: smallest value.
        most: every value is below it.
        choices: all values.
        compare: ``NEEDED``, ``TAKEN``, or empty where ``compare`` takes it from nobody's table.
    """

    name: str
    type: str
    of: str
    meaning: str
    unit: str = ""
    required: bool = True
    least: Optional[float] = None
    most: Optional[float] = None
    choices: Tuple[str, ...] = ()
    compare: str = ""

    def fault(self, value: Any) -> str:
        """Why ``value`` can't stand in the column; empty if it can."""
        is_kind = isinstance(value, _PYTHON.get(self.type, str)) and isinstance(value, bool) == (self.type == FLAG)
        least, most = self.range
        if self.choices:
            return "" if value in self.choices else f"{self.name} = {value} is none of {', '.join(self.choices)}"
        if is_kind and (least is None or least <= value) and (most is None or value < most):
            return ""
        bounds = "" if least is None or most is None else f" from {least} to below {most}"
        return f"{self.name} = {value} is no {self.type}{bounds}"

    @property
    def range(self) -> Tuple[Optional[float], Optional[float]]:
        """Least value, and what every value is below; None: no bound."""
        least = 0 if self.type in MOST and self.least is None else self.least
        return least, MOST.get(self.type, self.most)


_PYTHON: Dict[str, Any] = {COUNT: int, WHOLE: int, NUMBER: (int, float), FLAG: bool}
_YEARS_S = 1e8
"""Seconds: no repetition takes three years."""

COLUMNS = (
    Column("campaign", TEXT, RUN, "name of the campaign or import; blocks of two are never one", compare=TAKEN),
    Column("site", TEXT, RUN, "profile"),
    Column("job", TEXT, RUN, "allocation", compare=TAKEN),
    Column("block", COUNT, RUN, "pass over all variants on the job's nodes", compare=NEEDED),
    Column("run", TEXT, RUN, "one cluster lifetime", compare=NEEDED),
    Column("attempt", COUNT, RUN, "how often the run was begun"),
    Column("order", COUNT, RUN, "place in the block, from 0", compare=TAKEN),
    Column("variant", TEXT, RUN, "label of what is compared", compare=NEEDED),
    Column("image", TEXT, RUN, "id of the built environment"),
    Column("ucx_version", TEXT, RUN, "UCX of the image; `tcp` loads none"),
    Column("transport", TEXT, RUN, "transports that UCX reported, separated by commas"),
    Column("protocol", TEXT, RUN, "of Dask: `tcp` or `ucx`"),
    Column("device", TEXT, RUN, "`cpu` or `gpu`"),
    Column("nodes", COUNT, RUN, "nodes of the cluster", compare=NEEDED),
    Column("workers_per_node", COUNT, RUN, "workers on each node"),
    Column("threads_per_worker", COUNT, RUN, "threads of each worker"),
    Column("workload", TEXT, WORKLOAD, "what was measured", compare=NEEDED),
    Column("backend", TEXT, WORKLOAD, "what ran it"),
    Column("params", JSON, WORKLOAD, "its parameters; a line of `samples.jsonl` has their hash, `params_id`"),
    Column("rep", COUNT, SAMPLE, "number of the repetition", compare=NEEDED),
    Column("warmup", FLAG, SAMPLE, "it never counts", compare=TAKEN),
    Column(
        *("wall_s", NUMBER, SAMPLE, "duration; of an import it may be the mean of `reps`", "s"),
        least=1e-15, most=_YEARS_S, compare=NEEDED,
    ),
    Column("bytes", WHOLE, SAMPLE, "nominal size of the workload, from which a rate is computed", "bytes"),
    Column("answer", TEXT, SAMPLE, "result of the check", choices=ANSWERS),
    Column("started_at", MOMENT, SAMPLE, "beginning", compare=TAKEN),
    Column("cpu_s", NUMBER, SAMPLE, "processor time of the run's processes", "s", required=False, least=0, most=1e15),
    Column("energy_j", NUMBER, SAMPLE, "energy of the hosts and GPUs", "J", required=False, least=0, most=1e15),
    Column("throttle", WHOLE, SAMPLE, "reasons for throttled GPUs, as NVML's bits", required=False),
    Column("run_status", TEXT, WORKLOAD, "`ok`, `failed` or `skipped`", compare=TAKEN),
    Column(
        *("workload_status", TEXT, WORKLOAD, "likewise; only samples with `ok` in both enter a verdict"),
        compare=TAKEN,
    ),
    Column("date", DAY, IMPORT, "day of the measurement"),
    Column("workers", COUNT, IMPORT, "workers of the whole cluster"),
    Column("reps", COUNT, IMPORT, "repetitions of which `wall_s` is the mean"),
    Column("wall_se", NUMBER, IMPORT, "standard error of that mean", "s", least=0, most=_YEARS_S),
    Column("file", TEXT, IMPORT, "where the row was read"),
    Column("line", COUNT, IMPORT, "line or record in that file"),
    Column("extra", JSON, IMPORT, "every field of the source"),
)  # fmt: skip
SAMPLE_COLUMNS = {column.name: column for column in COLUMNS if column.of == SAMPLE}
