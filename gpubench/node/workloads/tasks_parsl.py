"""Tasks that do nothing, through parsl. The only file that names parsl; it runs in a submitting process (task_clients).

Where nobody says otherwise parsl runs as its HighThroughputExecutor: one block with as many workers as the Dask cluster
of the run has threads, so that both have the same hands; workers aren't pinned to cores, as Dask's aren't, and the Dask
workers idle meanwhile. What can be left at parsl's own default is left there, its log among it. Not left: encryption is
off, as Dask speaks plain TCP; workers' connections are accepted at the run's address only (the talk between the client
and its interchange is on the loopback anyway); and blocks don't come and go.
"""

import functools
import math
import os
import shlex
import sys
import time
import types
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any, List, Mapping, Optional, Union

from gpubench.node.workloads import slurm_jobs
from gpubench.node.workloads.base import UnavailableError
from gpubench.node.workloads.clock import poll_until
from gpubench.node.workloads.parsl_pods import BlockPods
from gpubench.node.workloads.process_reaper import CLUSTER_VARIABLE, Guard
from gpubench.node.workloads.task_clients import MARK, TaskBatch, counted

POLL_S = 0.02
WALLTIME = "01:00:00"
_MODULES = "parsl.executors.high_throughput."


class ParslSubmitter:
    """Batches through one DataFlowKernel. The app is the one that parsl-perf calls, submitted in the same way.

    ``facts``: ``argsize`` (bytes), ``config`` (path of the user's, or empty), ``provider``, ``partition``, ``account``,
    ``address``, ``nodes``, ``workers_per_node``.

    Raises:
        UnavailableError: no parsl here, or the user's config can't be used.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        try:
            import parsl
            from parsl.benchmark.perf import app
        except ImportError as error:
            raise UnavailableError(f"backend parsl needs the package parsl, with its parsl-perf: {error}") from None
        self._app = app
        self._padding = "x" * int(facts["argsize"])
        self._guard: Optional[Union[Guard, BlockPods]] = None
        self._pods: Optional[BlockPods] = None
        if not facts["config"] and facts["provider"] == "slurm":
            self._guard = slurm_jobs.guard(f"parsl.{_label()}.", [MARK])
        if not facts["config"] and facts["provider"] == "kubernetes":
            self._guard = self._pods = BlockPods(_mark(), [MARK])
        config = user_config(Path(facts["config"])) if facts["config"] else own_config(facts, self._pods)
        self._kernel = parsl.load(config)
        providers = [type(getattr(executor, "provider", None)).__name__ for executor in config.executors]
        executors = [type(executor).__name__ for executor in config.executors]
        self.about = {"parsl": parsl.__version__, "executors": executors, "providers": providers}
        try:
            if not facts["config"]:
                self._wait_for(int(facts["nodes"]) * int(facts["workers_per_node"]))
            self.batch(1)  # a user's config may start its first block only when there is something to do
        except BaseException:
            self.close()
            raise

    def batch(self, count: int) -> TaskBatch:
        """Call the app ``count`` times, then look at the results in the order in which they come."""
        padding, app, clock = self._padding, self._app, time.perf_counter
        begun: List[float] = []
        done = [0.0] * count

        def note(number: int, _future: Any) -> None:
            done[number] = clock()

        futures = []
        start = clock()
        for number in range(count):
            begun.append(clock())
            future = app(padding, parsl_resource_specification={})
            future.add_done_callback(functools.partial(note, number))
            futures.append(future)
        submitted = clock()
        results = [future.result() for future in as_completed(futures)]
        end = clock()
        latencies = [after - before for before, after in zip(begun, done) if after]
        return TaskBatch(count, start, submitted, end, counted(results), latencies)

    def close(self) -> None:
        self._kernel.cleanup()
        if self._guard is not None:
            self._guard.over()

    def _wait_for(self, workers: int) -> None:
        (executor,) = [item for item in self._kernel.executors.values() if hasattr(item, "connected_managers")]

        def connected() -> bool:
            if self._pods is not None:
                self._pods.check()
            if executor.bad_state_is_set:
                raise executor.executor_exception
            return sum(int(manager["worker_count"]) for manager in executor.connected_managers()) >= workers

        poll_until(connected, math.inf, POLL_S)  # the workload has a time limit


def own_config(facts: Mapping[str, Any], pods: Optional[BlockPods] = None) -> Any:
    """The HighThroughputExecutor as this file's first lines say, on the local, the Slurm or the Kubernetes provider."""
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.launchers import SrunLauncher
    from parsl.providers import KubernetesProvider, LocalProvider, SlurmProvider

    one_block = {"init_blocks": 1, "min_blocks": 1, "max_blocks": 1}
    if facts["provider"] == "slurm":
        provider = SlurmProvider(
            partition=facts["partition"] or None,
            account=facts["account"] or None,
            nodes_per_block=int(facts["nodes"]),
            launcher=SrunLauncher(),
            walltime=WALLTIME,
            # A block is no part of the run's own job: what ends that by its marks must not meet it, and the run's
            # directory for temporary files is on the node that submits (and its name too long for a socket's).
            scheduler_options=slurm_jobs.export_all_but([CLUSTER_VARIABLE, MARK, "TMPDIR"]),
            **one_block,
        )
    elif pods is not None:
        nodes = int(facts["nodes"])  # a block is one pod
        blocks = {"init_blocks": nodes, "min_blocks": nodes, "max_blocks": nodes}
        home = "export HOME=/tmp TMPDIR=/tmp"
        provider = KubernetesProvider(image=pods.image, namespace=pods.namespace, worker_init=home, **blocks)
        provider.kube_client = pods
    else:
        provider = LocalProvider(**one_block)
    workers = int(facts["workers_per_node"])
    executor = HighThroughputExecutor(
        label=_label(),
        address=facts["address"],
        provider=provider,
        max_workers_per_node=workers,
        cores_per_worker=1e-3,  # parsl starts no more workers than cores over this; Dask's threads ask nobody either
        encrypted=False,
        worker_logdir_root=None if pods is None else "/tmp",  # noqa: S108 - of a pod; the run's folders aren't there
    )
    return _startable(Config(executors=[executor], strategy="none", usage_tracking=0, run_dir=str(Path.cwd())), True)


def _label() -> str:
    """Of the executor, from which parsl makes the names of its jobs: no other run's begin with it."""
    return f"tasks-{_mark()}"


def _mark() -> str:
    return os.environ.get(MARK, "by-hand")


def user_config(path: Path) -> Any:
    """What the module at ``path`` calls ``config``, or what its ``fresh_config()`` returns. It is executed once.

    Raises:
        UnavailableError: it can't be imported, or has neither.
    """
    from parsl.config import Config

    where = f"parsl config {path}"
    if not path.is_file():
        raise UnavailableError(f"{where} is not a file")
    module = types.ModuleType("gpubench_parsl_config")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # what it defines can be pickled by name
    try:
        # Not by the import system, which would leave a __pycache__ beside the user's file.
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))  # noqa: S102 - what the user asks for
        if hasattr(module, "config"):
            name, config = "config", module.config
        elif hasattr(module, "fresh_config"):
            name, config = "fresh_config()", module.fresh_config()
        else:
            raise UnavailableError(f"{where} defines neither `config` nor `fresh_config()`")
    except UnavailableError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's code: anything can come out of it
        raise UnavailableError(f"{where} can't be imported: {type(error).__name__}: {error}") from None
    if not isinstance(config, Config):
        raise UnavailableError(f"{where} is of no use: its `{name}` is a {type(config).__name__}, no parsl Config")
    return _startable(config, False)


def _startable(config: Any, workers_too: bool) -> Any:
    """Have parsl's programs started by this Python, where the config leaves them at their default.

    The default are the scripts ``interchange.py`` and ``process_worker_pool.py`` on the PATH, whose first line names
    the Python of the place where an image was built. Workers that a queue starts on other nodes find theirs as the
    config's ``worker_init`` says, so those stay as they are unless the config is ours.
    """
    from parsl.executors.high_throughput import executor as htex
    from parsl.providers import LocalProvider

    python = [sys.executable, "-I", "-m"]
    for executor in config.executors:
        if not isinstance(executor, htex.HighThroughputExecutor):
            continue
        if list(executor.interchange_launch_cmd) == htex.DEFAULT_INTERCHANGE_LAUNCH_CMD:
            executor.interchange_launch_cmd = [*python, _MODULES + "interchange"]
        if executor.launch_cmd == htex.DEFAULT_LAUNCH_CMD and (
            workers_too or isinstance(executor.provider, LocalProvider)
        ):
            python_words = " ".join(shlex.quote(word) for word in [*python, _MODULES + "process_worker_pool"])
            executor.launch_cmd = htex.DEFAULT_LAUNCH_CMD.replace("process_worker_pool.py", python_words, 1)
    return config
