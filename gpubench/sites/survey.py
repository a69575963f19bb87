"""What the commands of this machine say of its site: what is beyond doubt, and what only a person can judge."""

import dataclasses
import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpubench.errors import GpubenchError, MissingToolError, UsageError
from gpubench.model.base import nearest
from gpubench.model.text import visible
from gpubench.plan.node_kinds import of_queue
from gpubench.schedulers import BATCH, LOCAL
from gpubench.schedulers.batch import BatchScheduler, call, output_line

_log = logging.getLogger(__name__)

MOUNTS = Path("/proc/mounts")
INFINIBAND = Path("/sys/class/infiniband")
_NETWORK_FILE_SYSTEM = re.compile(
    r"nfs4?|lustre|gpfs|beegfs\w*|ceph|wekafs|panfs|pvfs2|orangefs|afs|cifs|smb3|dvs|9p|virtiofs"
    r"|fuse\.(ceph(-fuse)?|dfuse|glusterfs|juicefs|sshfs|s3fs|weka\w*)"
)
"""Types in ``/proc/mounts`` of file systems that several machines can see."""
_CUDA = re.compile(r"CUDA (?:UMD )?Version: *(\d+\.\d+)")
"""nvidia-smi calls it the user mode driver's version since driver 610."""
FACTS = ("compute_capability", "cores", "cuda", "device", "gpu_memory", "gpus", "queue")
SEEN = ("compute_capability", "cuda", "fabric", "gpus", "interface", "queue", "shared")


@dataclasses.dataclass
class Survey:
    """Facts by key of the template, and what was seen, in words, for what stays to be filled in."""

    known: dict[str, object] = dataclasses.field(default_factory=lambda: dict.fromkeys(FACTS, ""))
    seen: dict[str, list[str]] = dataclasses.field(default_factory=lambda: {key: [] for key in SEEN})


def survey(scheduler: str, queue: str) -> Survey:
    """Ask the commands that are here.

    Raises:
        UsageError: the scheduler has no such queue.
    """
    facts = Survey()
    facts.known["queue"] = queue
    _nodes(facts, scheduler, queue)
    _gpus(facts, own=scheduler in LOCAL)
    if scheduler not in LOCAL:
        facts.seen["interface"] = _interfaces()
        facts.seen["shared"] = _shared()
    facts.seen["fabric"] = _infiniband(facts.seen["interface"])
    return facts


def _nodes(facts: Survey, scheduler: str, queue: str) -> None:
    """Kinds of nodes of all queues; of a chosen queue whose nodes are alike, what each has."""
    batch = BATCH.get(scheduler)
    try:
        kinds = batch.node_kinds() if isinstance(batch, BatchScheduler) else []
    except MissingToolError:
        kinds = []
    except GpubenchError as error:
        _log.info(f"no answer: {error.what}")
        kinds = []
    facts.seen["queue"] = [visible(str(kind)) + (", default" if kind.default else "") for kind in kinds]
    here = of_queue(kinds, queue) if queue else []
    if queue and kinds and not here:
        raise UsageError(f"there is no partition '{visible(queue)}'{nearest(queue, {kind.queue for kind in kinds})}")
    if len({(kind.cores, kind.gpus) for kind in here}) == 1:
        facts.known["cores"] = here[0].cores
        if (gpus := here[0].gpus) is not None:
            facts.known |= {"device": "gpu" if gpus else "cpu", "gpus": gpus}


def _gpus(facts: Survey, *, own: bool) -> None:
    """The GPUs of this machine; ``own``: which is the site's only node, so that they are the node's."""
    # A driver of before 2022 has no compute_cap, and then answers nothing.
    queries = ("memory.total,compute_cap", "memory.total")
    answers = (_ask("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits") for fields in queries)
    rows = [line.split(",") for line in next(filter(None, answers), [])]
    if not rows:
        return
    memory, capability = (_same(row[at].strip() for row in rows if len(row) > at) for at in (0, 1))
    cuda = _CUDA.search("\n".join(_ask("nvidia-smi")))
    gpu_facts = {
        "cuda": cuda[1] if cuda else "",
        "compute_capability": capability if re.fullmatch(r"\d+\.\d+", capability) else "",
        "gpu_memory": f"{memory}MiB" if memory.isdigit() else "",
    }
    if own:
        facts.known |= {"device": "gpu", "gpus": len(rows), **gpu_facts}
    facts.seen["gpus"] = [str(len(rows))]
    facts.seen |= {key: [value] for key, value in gpu_facts.items() if value}


def _interfaces() -> list[str]:
    """Names of this machine's interfaces that have an address; those in front of an ``@`` are on another one."""
    rows = [line.split() for line in _ask("ip", "-o", "-4", "addr", "show", "up")]
    return [name for name in dict.fromkeys(row[1].partition("@")[0] for row in rows if len(row) > 1) if name != "lo"]


def _infiniband(interfaces: Sequence[str]) -> list[str]:
    """InfiniBand and RoCE devices of this machine, and interfaces over InfiniBand."""
    text = "\n".join(_ask("ucx_info", "-d"))
    by_ucx = re.findall(r"Transport: (?:rc|dc|ud)_\w+\s+#\s+Device: ([^\s:]+)", text)
    by_kernel = [path.name for path in sorted(INFINIBAND.glob("*"))]
    return list(dict.fromkeys([*by_kernel, *by_ucx, *(name for name in interfaces if name.startswith("ib"))]))


def _shared() -> list[str]:
    rows = [line.split() for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()]
    paths = [row[1] for row in rows if len(row) > 2 and _NETWORK_FILE_SYSTEM.fullmatch(row[2])]
    return [path for path in dict.fromkeys(paths) if "\\" not in path]


def _ask(*command: str) -> list[str]:
    """Lines of a command's answer; none where it isn't here or fails, which is said."""
    try:
        done = call(command)
    except MissingToolError:
        return []
    except (GpubenchError, OSError) as error:
        _log.info(f"no answer: {command[0]}: {error}")
        return []
    if done.returncode:
        _log.info(f"no answer: {command[0]}: {visible(output_line(done))}")
        return []
    return [visible(line) for line in done.stdout.splitlines()]


def _same(values: Iterable[str]) -> str:
    """The value that all have; empty where they differ or there is none. What a GPU doesn't tell counts for nothing."""
    distinct = {value for value in values if not value.startswith("[")}
    return distinct.pop() if len(distinct) == 1 else ""
