"""What the scheduler costs: tasks that do nothing."""

from typing import Any, Iterator, Mapping

from gpubench.node.workloads.catalogue.entry import Param, Workload

MODES = ("fixed", "estimate", "exponential", "explicit")
_PARSL_ONLY = ("parsl_config", "parsl_provider", "parsl_partition", "parsl_account")


def _faults(backend: str, params: Mapping[str, Any]) -> Iterator[str]:
    batches, config = params["batches"], str(params["parsl_config"])
    if not params["count"] or not params["clients"] or not params["target"]:
        yield "count and clients must be at least 1, and target longer than 0 s"
    if bool(batches) != (params["mode"] == "explicit") or not all(batches):
        yield 'mode = "explicit" needs batches, each of at least 1 task, and no other mode takes them'
    given = [name for name in _PARSL_ONLY if params[name] != PARAMS[name].default]
    if given and backend != "parsl":
        yield f"{given[0]} is for backend parsl"
    if config and len(given) > 1:
        yield f"parsl_config defines all of this: leave out {given[1]}"
    if config and not config.startswith("/"):
        yield "parsl_config must be an absolute path: runs have a working directory of their own"
    slurms = [name for name in given if name in ("parsl_partition", "parsl_account")]
    if slurms and not config and params["parsl_provider"] != "slurm":
        yield f'{slurms[0]} is for parsl_provider = "slurm"'
    if given and params["clients"] > 1:
        yield f"with {given[0]} there is one client: every other would start all those workers again"


PARAMS = {
    "count": Param(
        "count",
        500,
        "no-op tasks per repetition; in other modes than `fixed`, the tasks that the seconds are for",
    ),
    "mode": Param(
        "choice",
        "fixed",
        "how large a batch is: `count`; what the last rate gives in `target`; twice the last; `batches`",
        choices=MODES,
        original="--iterate estimate",
    ),
    "target": Param("duration", 2.0, "time that the last batch should take", original="--time 120"),
    "batches": Param("counts", [], "tasks of each batch in turn, mode `explicit`", original="--iterate 10,100,1000"),
    "argsize": Param("size", 0, "bytes of padding that every call carries", original="--argsize 0"),
    "clients": Param("count", 1, "processes that submit at the same time, each with a client of its own", original="1"),
    "parsl_config": Param(
        "path",
        "",
        "module with `config` or `fresh_config()`, absolute path; none: workers as Dask has threads",
        original="--config",
    ),
    "parsl_provider": Param(
        "choice",
        "local",
        "what starts parsl's workers",
        choices=("local", "slurm", "kubernetes"),
        original="in the config",
    ),
    "parsl_partition": Param("name", "", "partition, provider slurm", original="in the config"),
    "parsl_account": Param("name", "", "account, provider slurm", original="in the config"),
}

WORKLOADS = (
    Workload(
        name="tasks",
        factory="tasks:Tasks",
        family="scheduler",
        source="parsl-perf",
        scaling="none",
        backends=("dask", "parsl"),
        params=PARAMS,
        timed="submitting tasks that do nothing, waiting for all, gathering their results; of the last batch, given as "
        "seconds of `count` tasks at its rate, since the size of a batch may follow from the speed",
        graph="none",
        counted="nothing; the rate is `count` over seconds",
        oracle="of every batch exactly as many results as tasks, each of them 7",
        grows=(("count", 1.0),),
        needs={"parsl": ("parsl",)},
        least_s=lambda params: params["target"] if params.get("mode") in ("estimate", "exponential") else 0.0,
        fault=lambda backend, params: next(_faults(backend, params), ""),
        unlogged=lambda _backend, _params: True,  # messages of scheduler, workers and client
    ),
)
