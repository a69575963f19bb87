"""``gpubench sites new``: a profile of this machine's site to begin with, every guess marked as one."""

from __future__ import annotations

import dataclasses
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import tomli_w

from gpubench import resources
from gpubench.cli.say import say
from gpubench.errors import GpubenchError, PlanRefusedError, UsageError
from gpubench.files import create_exclusively
from gpubench.model.base import check_name, nearest
from gpubench.model.text import visible
from gpubench.plan.adapter_combinations import VALID
from gpubench.schedulers.batch import call, said

FILL_IN = "# fill in:"
COLUMN = 36
_CUDA_BASE = "nvidia/cuda:{}.0-devel-ubuntu22.04"


def new_site(name: str, scheduler: str | None, launcher: str | None, runtime: str | None, folder: Path) -> None:
    """Ask the machine, and write ``NAME.toml``.

    Raises:
        UsageError: no such name can be, the file exists, an adapter doesn't exist.
        PlanRefusedError: the adapters don't go together.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(f"'{name}': {error}") from None
    path = folder / f"{name}.toml"
    exists = UsageError(f"{path} exists already, and is left as it is", then="take another name, or --out FOLDER")
    if path.exists():
        raise exists
    adapters = _adapters(scheduler, launcher, runtime)
    found = survey(str(adapters["scheduler"].value))
    text = "\n".join(_lines(name, path, adapters, found)) + "\n"
    try:
        create_exclusively(path, text)
    except FileExistsError:
        raise exists from None
    for line in found.unanswered:
        say(f"no answer: {line}")
    missing = list(to_fill_in(text))
    names = f": {', '.join(missing)}" if missing else ""
    say(f"{path}: {text.count('# guess:')} guesses, {len(missing)} to fill in{names}")
    say(f"next: gpubench sites check {path}")


def to_fill_in(text: str) -> Iterator[str]:
    """Dotted keys of the lines of a new profile that ask for a value and have none."""
    table = ""
    for line in text.splitlines():
        if line.startswith("["):
            table = f"{line.strip('[]')}."
        if FILL_IN in line and line.partition("#")[0].rstrip().endswith(('""', "[]")):
            yield table + line.lstrip("# ").partition(" ")[0]


def _adapters(scheduler: str | None, launcher: str | None, runtime: str | None) -> dict[str, Guess]:
    """Scheduler, launcher and runtime: as given, else those that are on this machine and work together."""
    given = {"scheduler": scheduler, "launcher": launcher, "runtime": runtime}
    for at, (kind, word) in enumerate(given.items()):
        if word is not None and word not in (known := {words[at] for words in VALID}):
            raise UsageError(f"there is no {kind} '{word}'{nearest(word, known)}")
    first = scheduler_here() if scheduler is None else Guess(scheduler, "")
    fitting = [
        words
        for words in sorted(VALID)
        if words[0] == first.value
        and all(asked in (None, word) for asked, word in zip(given.values(), words, strict=True))
    ]
    if not fitting:
        wanted = " + ".join(filter(None, (str(first.value), launcher, runtime)))
        raise PlanRefusedError(
            f"{wanted} don't go together",
            then="they go together: "
            + "; ".join(" + ".join(words) for words in sorted(VALID) if words[0] == first.value),
        )
    here = runtimes_here(dict.fromkeys(words[2] for words in fitting))
    chosen = next((words for word in here for words in fitting if words[2] == word), fitting[0])
    why = "its program is on this machine" if PROGRAMS[chosen[2]] and chosen[2] in here else "needs no program"
    why = why if chosen[2] in here else "none of the runtimes' programs is on this machine"
    return {
        "scheduler": first,
        "launcher": Guess(chosen[1], "" if launcher else f"goes with {chosen[0]}"),
        "runtime": Guess(chosen[2], "" if runtime else why),
    }


def _lines(name: str, path: Path, adapters: dict[str, Guess], found: Survey) -> Iterator[str]:
    yield f"#:schema {resources.schema('site').as_uri()}"
    yield f"# Site {name}, as `gpubench sites new` found it from {platform.node()}. A guess says where a value"
    yield "# comes from: compare it with the site's manual and with a compute node, and delete the comment. Then:"
    yield f"#   gpubench sites check {path}"
    yield f"#   gpubench sites check {path} --live    # a two-minute job: is the site as this file says?"
    yield "# All keys: `gpubench sites show draco` is a whole profile; docs/site-keys.md explains each."
    yield _key("name", Guess(name, ""))
    yield _key("description", found.found.get("description", Guess("", "")))
    for kind, guess in adapters.items():
        yield _key(kind, guess)
    runtime = str(adapters["runtime"].value)
    if PROGRAMS[runtime] and not runtimes_here([runtime]):
        yield f"# {' or '.join(PROGRAMS[runtime])} is not on this machine; the compute nodes need it."
    gpus = found.found.get("node.gpus")
    yield _key("device", Guess("gpu", gpus.source) if gpus else Guess("cpu", "no GPU was found from this machine"))
    yield _key("protocol", Guess("ucx", ""))
    yield from _note(found, "interface")
    yield _key("interface", found.found.get("interface"), "the compute nodes' network interface, as `ip link` names it")
    yield _key("env_allow", Guess(["LANG", "LC_ALL", "PATH", "TZ", "USER"], ""))
    yield from _note(found, "expect_transport")
    yield '# expect_transport = ["tcp"]      # a run that used another transport is failed'
    yield from _note(found, "env")
    yield '# env = { UCX_NET_DEVICES = "mlx5_0:1" }   # variables of every process of a run'
    yield from _tables(found, str(adapters["scheduler"].value))


def _tables(found: Survey, scheduler: str) -> Iterator[str]:
    gpus = found.found.get("node.gpus")
    yield "\n[layout]"
    yield _key("workers", Guess(gpus.value, "one worker for each GPU") if gpus else Guess(2, "to begin with"))
    yield _key("threads", Guess(1, "to begin with"))
    if one_machine := found.found.get("layout.one_machine"):
        yield _key("one_machine", one_machine)
    yield "\n[node]"
    yield from _keys(found, "node", "cores", "gpus", "gpu_memory")
    if memory := found.found.get("node.memory"):
        yield f"# {_key('memory', memory)}; a job would ask for all of it"
    yield "\n[batch]"
    yield from _note(found, "batch.queue")
    if scheduler in QUEUES or "batch.queue" in found.found:
        yield _key("queue", found.found.get("batch.queue"), f"{QUEUES.get(scheduler, 'the queue')} that jobs go to")
    else:
        yield '# queue = ""'
    yield '# account = ""                    # if the site charges one'
    yield '# options = ["--constraint=a100"] # further directives of the job script'
    if limit := found.found.get("limits.job"):
        yield "\n[limits]"
        yield _key("job", limit)
    yield "\n[paths]"
    shared = found.found.get("paths.shared")
    if shared:
        yield _key("shared", shared)
    elif scheduler in QUEUES:
        yield "shared = []".ljust(COLUMN) + f'{FILL_IN} file systems that every node sees, like "/home"'
    else:
        yield '# shared = ["/home"]               # file systems that every node sees'
    yield '# images = "$HOME/gpubench/images"  # where every node sees it'
    yield "\n[image]"
    yield _key("architecture", Guess(platform.machine(), "this machine"))
    yield from _keys(found, "image", "cuda", "compute_capability", "base")
    yield "\n[defaults]"
    yield _key("variants", Guess(["1.17.0", "1.19.0"], "two UCX versions; the first is the baseline"))
    nodes = found.found.get("nodes")
    counts = [1, 2] if nodes and isinstance(nodes.value, int) and nodes.value > 1 else [1]
    yield _key("nodes", Guess(counts, "to begin with"))


def _keys(found: Survey, table: str, *names: str) -> Iterator[str]:
    """Those of the table that were found."""
    yield from (_key(name, found.found[f"{table}.{name}"]) for name in names if f"{table}.{name}" in found.found)


def _key(name: str, guess: Guess | None, what: str = "") -> str:
    """``name = value``, with where it comes from; empty and to be filled in where nothing was found."""
    if guess is None:
        return f'{name} = ""'.ljust(COLUMN) + f"{FILL_IN} {what}"
    line = f"{name} = {_toml(guess.value)}"
    return f"{line.ljust(COLUMN)}# guess: {guess.source}" if guess.source else line


def _toml(value: object) -> str:
    """A value in one line of TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"x": value}).strip().removeprefix("x = ")


def _note(found: Survey, key: str) -> Iterator[str]:
    if key in found.notes:
        yield f"# {found.notes[key]}"


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
QUEUES = {"slurm": "the partition", "pbs": "the queue", "lsf": "the queue"}
"""Schedulers of several nodes that share file systems; what they call a queue."""
_HIGH_SPEED = ("ib", "hsn", "roce")
"""Usual prefixes of the names of fast network interfaces."""


@dataclasses.dataclass(frozen=True)
class Guess:
    """A value and the command or file that it comes from."""

    value: object
    source: str


@dataclasses.dataclass
class Survey:
    """Values found and notes for the reader, by key of a profile; and the programs that couldn't be asked."""

    found: dict[str, Guess] = dataclasses.field(default_factory=dict)
    notes: dict[str, str] = dataclasses.field(default_factory=dict)
    unanswered: list[str] = dataclasses.field(default_factory=list)

    def ask(self, *words: str) -> str:
        """A command's output; empty (with a note) if it isn't here, fails or doesn't answer in time."""
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
        return "\n".join(map(visible, done.stdout.splitlines()))


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
        found.found["image.base"] = Guess(_CUDA_BASE.format(cuda[1]), "NVIDIA's image of that version; look up its tag")


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
"""The function that asks, by scheduler."""
