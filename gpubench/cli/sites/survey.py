"""What this machine says of its site: partitions, GPUs, networks, container programs. Everything found is a guess."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from gpubench.errors import GpubenchError
from gpubench.model.text import visible
from gpubench.schedulers.client import call, said

PROGRAMS: dict[str, tuple[str, ...]] = {
    "apptainer": ("apptainer", "singularity"),
    "charliecloud": ("ch-run",),
    "conda": ("conda",),
    "docker": ("docker",),
    "enroot": ("enroot",),
    "modules": ("modulecmd",),
    "pod": ("kubectl",),
    "pyxis": ("enroot",),
    "venv": (),
}
"""By runtime: programs of which the nodes need one."""
CLIENTS = {"slurm": "sinfo", "pbs": "qsub", "lsf": "bsub", "kubernetes": "kubectl"}
"""By scheduler: a program that shows that the scheduler is here."""
NETWORK_FILE_SYSTEMS = re.compile(r"nfs4?|lustre|gpfs|beegfs|ceph|wekafs|panfs|pvfs2|fuse\.(ceph|glusterfs|juicefs)")
_HIGH_SPEED = ("ib", "hsn", "roce")
"""Beginnings of the names that network interfaces of a fast network usually have."""


@dataclasses.dataclass(frozen=True)
class Guess:
    """A value and the command or file that it comes from."""

    value: object
    source: str


@dataclasses.dataclass
class Survey:
    """What was found and what a reader should know, by key of a profile; and who couldn't be asked."""

    found: dict[str, Guess] = dataclasses.field(default_factory=dict)
    notes: dict[str, str] = dataclasses.field(default_factory=dict)
    unanswered: list[str] = dataclasses.field(default_factory=list)

    def ask(self, *words: str) -> str:
        """What a command says; empty, and noted, where it isn't here, fails or doesn't answer in time."""
        try:
            done = call(words)
        except GpubenchError as error:
            self.unanswered.append(error.what)
            return ""
        except OSError as error:
            self.unanswered.append(f"{words[0]}: {error.strerror}")
            return ""
        if done.returncode:
            # Slurm's commands print each step of their failure; the last line is the reason.
            why = (done.stderr or done.stdout).strip().splitlines()[-1:] or [said(done)]
            self.unanswered.append(f"{words[0]}: {visible(why[0]).removeprefix(f'{words[0]}: ')}")
            return ""
        return visible_lines(done.stdout)


def visible_lines(text: str) -> str:
    """``text`` without what acts on a terminal or ends a comment; its lines stay."""
    return "\n".join(visible(line) for line in text.splitlines())


def survey(scheduler: str) -> Survey:
    """Ask this machine; a command that doesn't answer in time is given up."""
    found = Survey()
    for part in (*_OF_SCHEDULER.get(scheduler, ()), _gpus, _ucx, _shared):
        part(found)
    return found


def runtimes_here(runtimes: Iterable[str]) -> list[str]:
    """Those of which a program is on this machine, those without a program last."""
    return sorted(
        (one for one in runtimes if not PROGRAMS[one] or any(map(shutil.which, PROGRAMS[one]))),
        key=lambda one: not PROGRAMS[one],
    )


def scheduler_here() -> Guess:
    """The scheduler whose client is on this machine; ``local`` where none is."""
    here = next((one for one, client in CLIENTS.items() if shutil.which(client)), "")
    return Guess(here, f"{CLIENTS[here]} is on this machine") if here else Guess("local", "no scheduler's client here")


def _partitions(found: Survey) -> None:
    """Slurm's default partition, else its first; of several kinds of nodes the most frequent."""
    command = ("sinfo", "-h", "-o", "%P|%D|%c|%m|%G|%l")
    rows = [line.split("|") for line in found.ask(*command).splitlines() if line.count("|") == 5]
    if not rows:
        return
    name = next((row[0] for row in rows if row[0].endswith("*")), rows[0][0])
    _, nodes, cores, memory, generic, limit = max(
        (row for row in rows if row[0] == name), key=lambda row: _number(row[1])
    )
    name = name.rstrip("*")
    found.found["batch.queue"] = Guess(name, "sinfo: the default partition" if f"{name}*" in str(rows) else "sinfo")
    if others := sorted({row[0].rstrip("*") for row in rows} - {name}):
        found.notes["batch.queue"] = f"other partitions: {', '.join(others)}"
    source = f"sinfo: nodes of partition {name}"
    found.found["nodes"] = Guess(_number(nodes), source)
    found.found["node.cores"] = Guess(_number(cores), source)
    found.found["node.memory"] = Guess(f"{_number(memory)}MiB", source)
    if gpus := re.search(r"gpu(?::[^:,()]+)?:(\d+)", generic):
        found.found["node.gpus"] = Guess(int(gpus[1]), f"{source} have {generic}")
    if seconds := slurm_seconds(limit):
        found.found["limits.job"] = Guess(f"{min(seconds, 4 * 3600) // 60}m", f"sinfo: partition {name} allows {limit}")


def slurm_seconds(text: str) -> int:
    """Slurm's ``[days-]hours:minutes:seconds``, or ``minutes:seconds``; 0 for ``infinite`` and whatever else."""
    if not (parts := re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)):
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _cluster(found: Survey) -> None:
    if name := re.search(r"^ClusterName\s*=\s*(\S+)", found.ask("scontrol", "show", "config"), re.MULTILINE):
        found.found["description"] = Guess(f"Slurm cluster {name[1]}", "scontrol show config")


def _interface(found: Survey) -> None:
    """A fast network's interface that has an address, else the one of the default route."""
    addresses = found.ask("ip", "-o", "-4", "addr", "show", "up")
    names = [line.split()[1].partition("@")[0] for line in addresses.splitlines() if len(line.split()) > 1]
    if not names:
        return
    route = re.search(r"^default .*\bdev (\S+)", found.ask("ip", "-4", "route", "show"), re.MULTILINE)
    fast = next((name for name in names if name.startswith(_HIGH_SPEED)), "")
    chosen = fast or (route[1] if route else "")
    why = "has an address" if fast else "has the default route"
    if chosen:
        found.found["interface"] = Guess(chosen, f"ip: {chosen} of this machine {why}; do the compute nodes have it?")
    found.notes["interface"] = f"interfaces of this machine: {', '.join(dict.fromkeys(names))}"


def _loopback(found: Survey) -> None:
    found.found["interface"] = Guess("lo", "all processes are on this machine")
    found.found["layout.one_machine"] = Guess(True, "all processes are on this machine")


def _gpus(found: Survey) -> None:
    lines = found.ask(
        "nvidia-smi", "--query-gpu=memory.total,compute_cap", "--format=csv,noheader,nounits"
    ).splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    if not rows or not all(len(row) == 2 and row[0].isdigit() for row in rows):
        return
    source = "nvidia-smi on this machine"
    found.found.setdefault("node.gpus", Guess(len(rows), source))
    found.found["node.gpu_memory"] = Guess(f"{rows[0][0]}MiB", source)
    found.found["image.compute_capability"] = Guess(rows[0][1], source)
    if cuda := re.search(r"CUDA Version: (\d+\.\d+)", found.ask("nvidia-smi")):
        found.found["image.cuda"] = Guess(cuda[1], f"{source}: the newest that its driver runs")


def _ucx(found: Survey) -> None:
    said_by_ucx = found.ask("ucx_info", "-d")
    pairs = re.findall(r"Transport: (\S+)\s+#\s+Device: (\S+)", said_by_ucx)
    if transports := sorted({transport for transport, _ in pairs}):
        found.notes["expect_transport"] = f"ucx_info on this machine lists: {', '.join(transports)}"
    devices = sorted({device for transport, device in pairs if transport.startswith(("rc_", "dc_"))})
    if devices:
        found.notes["env"] = f"ucx_info on this machine lists the devices: {', '.join(devices)}"


def _shared(found: Survey) -> None:
    mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()]
    paths = [row[1] for row in mounts if len(row) > 2 and NETWORK_FILE_SYSTEMS.fullmatch(row[2])]
    plain = [path for path in dict.fromkeys(paths) if visible(path) == path and "\\" not in path]
    if plain:
        found.found["paths.shared"] = Guess(plain, "/proc/mounts: network file systems of this machine")


def _number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0


_OF_SCHEDULER: dict[str, Sequence[Callable[[Survey], None]]] = {
    "slurm": (_partitions, _cluster, _interface),
    "local": (_loopback,),
    "pbs": (_interface,),
    "lsf": (_interface,),
    "kubernetes": (),
}
"""Who is asked, by scheduler."""
