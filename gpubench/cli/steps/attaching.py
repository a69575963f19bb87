"""``gpubench measure --scheduler-file``: one workload on a cluster that somebody else started."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from gpubench import resources
from gpubench.cli.options import Asked
from gpubench.cli.say import say
from gpubench.cli.steps.images import kind_of, obtain_images
from gpubench.cli.steps.measured import result
from gpubench.cli.steps.measuring import Measuring, parted, resolved, said_aside, show, size_lines, sized, variant_of
from gpubench.cli.steps.profiles import expanded, load_site
from gpubench.cli.steps.running import LOOK_S, interrupts
from gpubench.errors import (
    DataError,
    InterruptedByUserError,
    MissingToolError,
    PlanRefusedError,
    UsageError,
)
from gpubench.files import write_atomically
from gpubench.model.site import Site
from gpubench.plan.rooms import check_memory, check_workers
from gpubench.render import pack
from gpubench.spec import WorkloadSpec
from gpubench.spec.attached import ATTACH, ATTACHED_FILE, UNREACHABLE, VERSIONS, AttachedRecord, AttachSpec
from gpubench.spec.plain import SpecError
from gpubench.store.outputs import create_campaign
from gpubench.workloads.catalogue import CATALOGUE, Shape

NOT_CONTROLLED = (
    "a cluster that gpubench didn't start: for reading, not for comparing",
    "its packages, UCX and variables are recorded as they were found, and nothing planned them",
    "its workers' places, memory and threads, and who else uses it",
)
CONNECT_S = 30.0
STOP_S = 30.0
"""From the signal to the end of the client, which takes away what it brought first."""
WITH_PYTHON = ("venv", "conda")
"""Kinds of images whose Python starts by its path."""
NODE_HALF = "node.pyz"
SPEC_FILE = "attach.json"
LOG_FILE = "attach.log"


def measure_attached(asked: Measuring) -> None:
    """Look at the cluster, measure if it can be, and say what came out.

    Raises:
        UsageError: options that a running cluster can't follow, a scheduler file that is none.
        MissingToolError: nobody answers, or the Python lacks Dask.
        PlanRefusedError: other versions, no worker, sizes that don't fit.
        IncompleteError: it was measured, and failed.
        InterruptedByUserError: Ctrl-C or a signal; nothing is left on the cluster.
    """
    _refuse(asked)
    parameters, settings = parted(asked)
    site = load_site(asked.site, settings)
    planned = resolved(asked, parameters, site)
    address = asked.scheduler_address or _address_in(asked.scheduler_file or Path())
    device = site.device if _given(settings, "device") else "auto"  # the profile's own speaks of another cluster
    look = AttachSpec(ATTACH, address, device, CONNECT_S, None)
    with said_aside(asked.as_json):
        python, env = _python(asked, site)
        outputs = asked.outputs or expanded(site.paths.outputs, "paths.outputs", site)
        directory = create_campaign(outputs, "attached", asked.workload, dt.datetime.now(dt.UTC))
        attached = _Attached(directory, python, env)
        try:
            found = attached.run(look, CONNECT_S)
            shape, memory = _shape(found), _memory(found)
            planned = sized(asked, parameters, planned, shape, memory)
            check_workers(planned, shape)
            check_memory(planned, shape, memory, found.device)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)  # nothing was measured
            raise
        for line in size_lines(planned, shape, memory, asked.size):
            say(line)
        say(f"  on {shape.workers} workers of {address}")
        found = attached.run(
            AttachSpec(ATTACH, address, found.device, CONNECT_S, planned), CONNECT_S + planned.timeout_s
        )
        shown = _result(planned, found, directory, memory)
    show(shown, as_json=asked.as_json)


def _refuse(asked: Measuring) -> None:
    if asked.scheduler_file is not None and asked.scheduler_address is not None:
        raise UsageError("--scheduler-file and --scheduler-address exclude each other")
    for name in ("cpus", "gpus", "workers", "threads", "protocol"):
        if getattr(asked, name) is not None:
            raise UsageError(f"--{name}: a cluster that runs already has what it has", then=f"leave --{name} out")
    if asked.nodes != 1:
        raise UsageError("--nodes: a cluster that runs already has what it has", then="leave --nodes out")


def _address_in(path: Path) -> str:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--scheduler-file {path}: {error.strerror}") from None
    except ValueError:
        plain = None
    address = plain.get("address") if isinstance(plain, dict) else None
    if not isinstance(address, str) or "://" not in address:
        raise UsageError(
            f"--scheduler-file {path} isn't one that a Dask scheduler wrote",
            then="dask scheduler --scheduler-file FILE",
        )
    return address


def _python(asked: Measuring, site: Site) -> tuple[Path, dict[str, str]]:
    """The Python that measures and what its image sets; this tool has no Dask of its own."""
    if asked.python is not None:
        found = shutil.which(str(asked.python))
        if found is None:
            raise UsageError(f"--python {asked.python} is no program", then="give the path of a Python")
        return Path(found).absolute(), {}
    kind = kind_of(site)
    if kind not in WITH_PYTHON:
        raise UsageError(f"the Python of an image of kind {kind} can't be started by its path", then="--python PYTHON")
    spec = variant_of(asked, site).ucx
    image = obtain_images(site, [spec], Asked(date=asked.date, base=asked.base))[spec]
    if image is None:
        raise PlanRefusedError(f"no image yet for {spec}", then=f"gpubench images build {spec}, or --python PYTHON")
    return Path(image[0].python), dict(image[0].env)


class _Attached:
    """The client's process, once per question; everything that it needs and says lies in one directory."""

    def __init__(self, directory: Path, python: Path, env: dict[str, str]) -> None:
        self.directory = directory
        self.python = python
        self.env = {**os.environ, **env}
        write_atomically(directory / NODE_HALF, pack(resources.node_half()))

    def run(self, spec: AttachSpec, limit_s: float) -> AttachedRecord:
        write_atomically(self.directory / SPEC_FILE, spec.dump().encode("utf-8"))
        answer = self.directory / ATTACHED_FILE
        answer.unlink(missing_ok=True)
        command = [str(self.python), "-I", str(self.directory.resolve() / NODE_HALF), "attach"]
        command += ["--spec", str(self.directory.resolve() / SPEC_FILE), "--parent", str(os.getpid())]
        with interrupts() as interrupted, (self.directory / LOG_FILE).open("ab") as log:
            self._wait(command, log, interrupted, time.monotonic() + 2 * CONNECT_S + limit_s)
        if interrupted:
            raise InterruptedByUserError(f"interrupted by {interrupted[0]}; nothing is left on the cluster")
        try:
            record = AttachedRecord.parse(answer.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise MissingToolError(self._last_words()) from None
        except (OSError, SpecError) as error:
            raise DataError(f"{answer}: {error}") from None
        if record.refusal:
            self._refused(record)
        return record

    def _wait(self, command: list[str], log: Any, interrupted: list[str], deadline: float) -> None:
        try:
            process = subprocess.Popen(
                command,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us
            )
        except OSError as error:
            raise MissingToolError(f"can't start {self.python}: {error.strerror}") from None
        try:
            while process.poll() is None and not interrupted and time.monotonic() < deadline:
                time.sleep(LOOK_S)
        finally:
            _end(process)

    def _last_words(self) -> str:
        lines = (self.directory / LOG_FILE).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it ended without a word"
        return f"{self.python} couldn't measure: {said.removeprefix('gpubench attach: ')}"

    def _refused(self, record: AttachedRecord) -> None:
        if record.refusal == UNREACHABLE:
            raise MissingToolError(record.reason, then="is it running, and reachable from here?")
        raise PlanRefusedError(
            f"{record.reason} ({self.python})" if record.refusal == VERSIONS else record.reason,
            then="name a Python of the cluster's own environment: --python PYTHON"
            if record.refusal == VERSIONS
            else "",
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _given(settings: list[str], key: str) -> bool:
    return any(setting.partition("=")[0] == key for setting in settings)


def _shape(found: AttachedRecord) -> Shape:
    """As one node: hosts may have different numbers of workers, and nothing of a workload depends on them."""
    return Shape(1, len(found.workers), min(int(one["threads"]) for one in found.workers))


def _memory(found: AttachedRecord) -> int:
    """Bytes of the worker with the least; 0: one has no limit, or it is a GPU's that counts."""
    return 0 if found.device == "gpu" else min(int(one["memory_limit"]) for one in found.workers)


def _result(planned: WorkloadSpec, found: AttachedRecord, directory: Path, memory: int) -> dict[str, Any]:
    shape = _shape(found)
    record = found.workload
    loaded = sorted({str(one["ucx"]["loaded"]) for one in found.processes if one["role"] == "worker"})
    return result(
        planned,
        record,
        directory,
        status=record.status if record else "failed",
        reason=record.reason if record else found.reason,
        cluster={
            "site": "",
            "nodes": len({one["host"] for one in found.workers}),
            "workers": shape.workers,
            "threads_per_worker": shape.threads_per_worker,
            "device": found.device,
            "protocol": found.protocol,
            "transport": [],
            "variant": "",
            "ucx_version": ", ".join(loaded),
            "image": "",
            "hosts": sorted({one["host"] for one in found.workers}),
            "memory_per_worker": memory,
            "held_per_worker": CATALOGUE[planned.name].held(planned.params, shape),
        },
        campaign=str(directory),
        warnings=found.warnings,
        not_controlled=NOT_CONTROLLED,
    )
