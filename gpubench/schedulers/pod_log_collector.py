"""Logs of pods, kept in the job's directory, and the results in them, put where the node half would have put them.

A pod that shares no file system with others counts the attempts of a run from 1 again whenever its job starts again:
here it gets the next number that is free. Its directory is made as soon as it is known to run: else a run whose pod is
gone would look as if it had never begun. Gathering twice changes nothing; what came torn is said, and tried again.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from gpubench.errors import DataError
from gpubench.files import locked, write_atomically, writing
from gpubench.node.spec.log_transport import FILES, decode
from gpubench.node.spec.records import PROVENANCE_FILE, RUN_FILE

GATHERED_FILE = "gathered.json"
COMPLETE = "complete"
TORN = " torn"
_ATTEMPT = re.compile(r'(?m)^( "attempt": )\d+(,?)$')


WHOLE = "read to its end"
UNREAD = "kubectl can't read it"
TURNED_OVER = "holds no result; did the kubelet turn it over (containerLogMaxSize)?"


def whole(job_dir: Path, pod: str, rank: int, container: str) -> bool:
    """Whether nothing new can come out of that log."""
    return f"{pod} {container}-rank{rank}" in _read(job_dir)


def refused(job_dir: Path, pod: str, rank: int, container: str, why: str) -> None:
    """Remember that this log can't be read, in words; until ``keep`` gets it."""
    with locked(job_dir):
        text = f"log of container {container}, rank {rank}: {UNREAD}: {why}"
        _write(job_dir, {**_read(job_dir), f"{pod} {container}-rank{rank}{TORN}": text})


def keep(job_dir: Path, pod: str, rank: int, container: str, log: str, *, code: int | None, run: str = "") -> None:
    """Store the log of one container and the runs that it holds.

    Args:
        job_dir: of the campaign.
        pod: its uid. A job that is suspended and resumed (Kueue preempts so) starts its block again, in other pods.
        rank: of the node.
        container: its name.
        log: all that it has printed so far.
        code: its exit code; None while it runs, and may print more.
        run: the run directory that it brings, as its pod calls it; empty where it brings none.

    Raises:
        DataError: what has been gathered before can't be read.
        MissingToolError: the directory can't be written.
    """
    decoded, others = decode(log.splitlines())
    over = code is not None
    text = "".join(f"{line}\n" for line in others)
    if text:
        write_atomically(job_dir / f"{container}-rank{rank}.log", text)
    refusal = f"{pod} {container}-rank{rank}{TORN}"
    if not decoded and not over and not run and refusal not in _read(job_dir):
        return
    with locked(job_dir):  # two front ends that look at once must not give one run two directories
        gathered, lacking = _read(job_dir), False
        gathered.pop(refusal, None)
        if run:
            directory = _directory(job_dir, gathered, f"{pod} {run}", run)
            lacking = code == 0 and run not in decoded and not (directory / RUN_FILE).exists()
            if lacking:
                gathered[f"{pod} {run}{TORN}"] = f"log of container {container}, rank {rank}: {TURNED_OVER}"
        for name, contents in decoded.items():
            if contents.torn and not over:
                continue  # the rest is on its way
            directory = _directory(job_dir, gathered, f"{pod} {name}", name)
            if contents.torn:
                gathered[f"{pod} {name}{TORN}"] = f"log of container {container}, rank {rank}: {contents.torn}"
            elif not (directory / RUN_FILE).exists():
                gathered.pop(f"{pod} {name}{TORN}", None)
                files = _renumbered(contents.files, directory.name.rpartition("-")[2])
                for file in FILES:
                    if file in files:
                        write_atomically(directory / file, files[file])
        if over and not lacking and not any(contents.torn for contents in decoded.values()):
            gathered[f"{pod} {container}-rank{rank}"] = WHOLE
        _write(job_dir, gathered)


def torn(job_dir: Path) -> list[str]:
    """What came with parts missing or changed, or can't be had, in words."""
    return [text for key, text in _read(job_dir).items() if key.endswith(TORN)]


def unread(job_dir: Path, pods: Collection[str]) -> list[str]:
    """Which logs of these pods, by their uids, can't be read, in words: what they hold would be lost with the pods."""
    refusals = {key: text for key, text in _read(job_dir).items() if key.endswith(TORN) and UNREAD in text}
    return [text for key, text in refusals.items() if key.partition(" ")[0] in pods]


def complete(job_dir: Path) -> bool:
    """Whether everything that the job's pods printed is here."""
    return COMPLETE in _read(job_dir)


def finish(job_dir: Path) -> None:
    with locked(job_dir):
        _write(job_dir, {**_read(job_dir), COMPLETE: "every container's log has been read to its end"})


def begin(job_dir: Path) -> None:
    """The job is about to start again: what an earlier start lacks will never come."""
    with locked(job_dir):
        gathered = _read(job_dir)
        _write(job_dir, {key: text for key, text in gathered.items() if key != COMPLETE and not key.endswith(TORN)})


def _directory(job_dir: Path, gathered: dict[str, str], key: str, name: str) -> Path:
    """Where a run directory of the pods comes to stand; remembered before anything is written into it."""
    runs = job_dir.parents[1] / "runs"
    if key not in gathered:
        run, attempt = name.rpartition("-")[0], 1
        while f"{run}-{attempt}" in gathered.values() or (runs / f"{run}-{attempt}").exists():
            attempt += 1
        gathered[key] = f"{run}-{attempt}"
        _write(job_dir, gathered)
    with writing(runs / gathered[key]):
        (runs / gathered[key]).mkdir(parents=True, exist_ok=True)
    return runs / gathered[key]


def _renumbered(files: Mapping[str, bytes], number: str) -> dict[str, bytes]:
    """With this attempt's number, also in what the record says of the provenance: its hash."""
    new = dict(files)
    for name in (PROVENANCE_FILE, RUN_FILE):
        if name in files:
            new[name] = _ATTEMPT.sub(rf"\g<1>{number}\g<2>", files[name].decode("utf-8"), count=1).encode("utf-8")
    if PROVENANCE_FILE in files and RUN_FILE in files:
        before, after = (hashlib.sha256(contents[PROVENANCE_FILE]).hexdigest().encode() for contents in (files, new))
        new[RUN_FILE] = new[RUN_FILE].replace(before, after)
    return new


def _read(job_dir: Path) -> dict[str, str]:
    path = job_dir / GATHERED_FILE
    try:
        gathered = json.loads(path.read_text(encoding="utf-8"))
        return {str(key): str(text) for key, text in gathered.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError):
        raise DataError(f"{path} can't be read", then=f"remove {path}; results are gathered again") from None


def _write(job_dir: Path, gathered: dict[str, str]) -> None:
    write_atomically(job_dir / GATHERED_FILE, json.dumps(gathered, indent=1) + "\n")
