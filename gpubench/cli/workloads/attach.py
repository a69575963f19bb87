"""``gpubench measure --scheduler-file``: one workload on a cluster that somebody else started.

A client of a running cluster, in a separate Python, because this tool has no Dask: one question, one answer.
"""

import dataclasses
import datetime as dt
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gpubench import resources
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.campaign.running import LOOK_S, end_process, interrupts
from gpubench.cli.images.obtain import kind_of, obtain_images
from gpubench.cli.say import say
from gpubench.cli.sites.profiles import default_variant, expanded, load_site
from gpubench.cli.workloads.commands import MeasureOptions
from gpubench.cli.workloads.measure import (
    directory_word,
    known,
    parted,
    resolved,
    result,
    said_aside,
    show,
    size_lines,
    sized,
)
from gpubench.errors import (
    DataError,
    InterruptedByUserError,
    MissingToolError,
    PlanRefusedError,
    UsageError,
)
from gpubench.files import write_atomically
from gpubench.model.own_workload import OwnWorkload
from gpubench.model.site import Site
from gpubench.plan.feasibility import check_memory, check_workers
from gpubench.polling import poll_until
from gpubench.render.cluster import WITH_PYTHON
from gpubench.render.planned import pack
from gpubench.spec import WorkloadSpec
from gpubench.spec.attach_record import ATTACH_FILE, ATTACH_SPEC, UNREACHABLE, VERSIONS, AttachRecord, AttachSpec
from gpubench.spec.plain import SpecError
from gpubench.store.campaign import create_campaign, require_place
from gpubench.workloads.catalogue import Shape, described

Answer = TypeVar("Answer")
NOT_CONTROLLED = (
    "gpubench didn't start this cluster: don't use the numbers for comparisons",
    "its packages, UCX and variables are recorded as they were found; they were not planned",
    "its workers' places, memory and threads, and who else uses it",
)
CONNECT_S = 30.0


def measure_attached(asked: MeasureOptions, own: OwnWorkload | None) -> None:
    """Inspect the cluster, measure if possible, and print the result.

    Raises:
        UsageError: options that a running cluster can't follow, a scheduler file that is none.
        MissingToolError: the cluster doesn't answer, or the Python lacks Dask.
        PlanRefusedError: other versions, no worker, sizes that don't fit.
        IncompleteError: it was measured, and failed.
        InterruptedByUserError: Ctrl-C or a signal; says whether something may be left on the cluster.
    """
    _refuse(asked)
    workload = known(asked, own)
    parameters, settings = parted(asked, workload)
    site = load_site(asked.site, settings)
    planned = resolved(asked, parameters, site, own)
    address = asked.scheduler_address or address_in(asked.scheduler_file or Path())
    device = (
        site.device if any(one.startswith("device=") for one in settings) else "auto"
    )  # the profile's own speaks of another cluster
    look = AttachSpec(ATTACH_SPEC, address, device, CONNECT_S, None)
    with said_aside(asked.as_json):
        outputs = asked.outputs or expanded(site.paths.outputs, "paths.outputs", site)
        require_place(outputs)
        python, env = _python(asked, site)
        directory = create_campaign(outputs, "attached", directory_word(planned.name), dt.datetime.now(dt.UTC))
        asker = SubprocessClient(directory, python, env, "attach", own)
        try:
            found = _ask(asker, look, CONNECT_S)
            shape, memory = _shape(found), _memory(found)
            planned = sized(asked, workload, parameters, planned, shape=shape, memory=memory)
            check_workers(planned, shape)
            check_memory(planned, shape, memory, found.device)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)  # nothing was measured
            raise
        for line in size_lines(planned, shape, memory, asked.size):
            say(line)
        say(f"  on {shape.workers} workers of {address}")
        found = _ask(
            asker, AttachSpec(ATTACH_SPEC, address, found.device, CONNECT_S, planned), CONNECT_S + planned.timeout_s
        )
        shown = _result(planned, found, directory, memory)
    show(shown, as_json=asked.as_json)


def _refuse(asked: MeasureOptions) -> None:
    if asked.scheduler_file is not None and asked.scheduler_address is not None:
        raise UsageError("--scheduler-file and --scheduler-address exclude each other")
    for name in ("cpus", "gpus", "workers", "threads", "protocol", "runtime", "seed"):
        if getattr(asked, name) is not None:
            raise UsageError(
                f"--{name}: this can't be changed on a cluster that runs already", then=f"leave --{name} out"
            )
    if asked.nodes != 1:
        raise UsageError("--nodes: this can't be changed on a cluster that runs already", then="leave --nodes out")


def address_in(path: Path) -> str:
    """The scheduler's address in the file that it wrote; raises UsageError."""
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


def named_python(python: Path) -> Path:
    """The Python that the user named; raises UsageError."""
    found = shutil.which(str(python))
    if found is None:
        raise UsageError(f"--python {python} is no program", then="give the path of a Python")
    return Path(found).absolute()


def image_python(site: Site, spec: str, asked: CampaignOptions) -> tuple[Path, dict[str, str]]:
    """The Python of the site's image of a UCX version, and what the image sets; raises UsageError, PlanRefusedError."""
    kind = kind_of(site)
    if kind not in WITH_PYTHON:
        raise UsageError(f"the Python of an image of kind {kind} can't be started by its path", then="--python PYTHON")
    image = obtain_images(site, [spec], asked)[spec]
    if image is None:
        raise PlanRefusedError(f"no image yet for {spec}", then=f"gpubench images build {spec}, or --python PYTHON")
    return Path(image[0].python), dict(image[0].env)


def _python(asked: MeasureOptions, site: Site) -> tuple[Path, dict[str, str]]:
    """The Python that measures and what its image sets; this tool has no Dask of its own."""
    if asked.python is not None:
        return named_python(asked.python), {}
    return image_python(site, default_variant(site, asked.ucx).ucx, CampaignOptions(date=asked.date, base=asked.base))


def _ask(asker: "SubprocessClient", spec: AttachSpec, limit_s: float) -> AttachRecord:
    record = asker.ask(spec.dump(), ATTACH_FILE, 2 * CONNECT_S + limit_s, AttachRecord.parse)
    if record.refusal == UNREACHABLE:
        raise MissingToolError(record.reason, then="is it running, and reachable from here?")
    if record.refusal:
        raise PlanRefusedError(
            f"{record.reason} ({asker.python})" if record.refusal == VERSIONS else record.reason,
            then="name a Python of the cluster's own environment: --python PYTHON"
            if record.refusal == VERSIONS
            else "",
        )
    return record


def _shape(found: AttachRecord) -> Shape:
    """As one node: hosts may have different numbers of workers, and nothing of a workload depends on them."""
    return Shape(1, len(found.workers), min(int(one["threads"]) for one in found.workers))


def _memory(found: AttachRecord) -> int:
    """Bytes of the worker with the least; 0: one has no limit, or it is a GPU's that counts."""
    return 0 if found.device == "gpu" else min(int(one["memory_limit"]) for one in found.workers)


def _result(planned: WorkloadSpec, found: AttachRecord, directory: Path, memory: int) -> dict[str, Any]:
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
            "held_per_worker": described(planned.name).held(planned.params, shape),
        },
        campaign=str(directory),
        warnings=found.warnings,
        not_controlled=NOT_CONTROLLED,
    )


STOP_S = 60.0
"""From the signal to the end of the client, which takes away what it brought first."""
NODE_HALF = "node.pyz"


@dataclasses.dataclass(frozen=True)
class SubprocessClient:
    """The client's process, once per question; its input and output are in ``directory``.

    Args:
        python: that has Dask, in the cluster's version.
        env: of the client, beside this process's own environment.
        word: the node half's command that answers.
    """

    directory: Path
    python: Path
    env: dict[str, str]
    word: str
    own: OwnWorkload | None = None

    def ask(self, question: str, answer: str, limit_s: float, parse: Callable[[str], Answer]) -> Answer:
        """What the client wrote into the file ``answer``.

        Raises:
            MissingToolError: the client couldn't be started, or ended without an answer.
            DataError: the answer can't be read.
            InterruptedByUserError: Ctrl-C or a signal; says whether something may be left on the cluster.
        """
        node_half, spec, answered = (self.directory / name for name in (NODE_HALF, f"{self.word}.json", answer))
        if not node_half.exists():
            mine = dict([self.own.packed()]) if self.own else {}
            write_atomically(node_half, pack(resources.node_half() | mine))
        write_atomically(spec, question)
        answered.unlink(missing_ok=True)
        command = [str(self.python), "-I", str(node_half.resolve()), self.word]
        command += ["--spec", str(spec.resolve()), "--parent", str(os.getpid())]
        with interrupts() as interrupted, self._log.open("ab") as log:
            code = self._wait(command, log, interrupted, limit_s)
        if interrupted and code == -signal.SIGKILL:
            raise InterruptedByUserError(
                f"interrupted by {interrupted[0]}; the client did not end within {STOP_S:g} s and was killed: "
                "the workers may still have its code and data",
                then="restart the workers before you measure again",
            )
        if interrupted:
            raise InterruptedByUserError(f"interrupted by {interrupted[0]}; nothing is left on the cluster")
        try:
            return parse(answered.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise MissingToolError(self._last_words()) from None
        except (OSError, SpecError) as error:
            raise DataError(f"{answered}: {error}") from None

    @property
    def _log(self) -> Path:
        return self.directory / f"{self.word}.log"

    def _wait(self, command: list[str], log: Any, interrupted: list[str], limit_s: float) -> int:
        """The client's exit code."""
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us
            )
        except OSError as error:
            raise MissingToolError(f"can't start {self.python}: {error.strerror}") from None
        try:
            poll_until(lambda: process.poll() is not None or interrupted, interval_s=LOOK_S, timeout_s=limit_s)
        finally:
            end_process(process, STOP_S)
        return process.returncode

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it ended without a message"
        return f"{self.python} couldn't {WHAT[self.word]}: {said.removeprefix(f'gpubench {self.word}: ')}"


WHAT = {"attach": "measure", "look": "check the cluster"}
