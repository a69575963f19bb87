"""What is comparable in the ``provenance.json`` of every run, read by a second process while the first reads samples.

Parsing the files of ten thousand runs takes nearly half as long as merging their million samples, and threads of one
process would only take turns at it. The second process is started as
``python -I -m gpubench.merge.environment_files RUNS_DIR`` and prints
``{"parts": […], "runs": {directory's name: [SHA-256 of the file, place in parts]}}``.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gpubench.merge.environment import Comparable, ComparableParts
from gpubench.spec.plain import parse_json
from gpubench.store.rundirs import provenance_bytes, run_directories

MANY = 2_000
"""Files from which a second process is worth its start."""

Read = Mapping[str, tuple[str, Comparable]]
"""SHA-256 of the file and its comparable part, by the name of the run's directory."""


@contextlib.contextmanager
def read_beside(runs_dir: Path, files: int) -> Iterator[Callable[[], Read]]:
    """Start to read about ``files`` files; the function that is yielded waits for the result.

    The caller reads what the result lacks: damaged files, and all files if there are few of them or only one core, or
    if the second process can't be started or fails.
    """
    process = _started(runs_dir) if files >= MANY and len(os.sched_getaffinity(0)) > 1 else None
    if process is None:
        yield dict
        return
    with process:
        try:
            yield lambda: _result(process.communicate()[0])
        finally:
            process.kill()


def _started(runs_dir: Path) -> subprocess.Popen[bytes] | None:
    words = [sys.executable, "-I", "-m", __name__, str(runs_dir.absolute())]
    null = subprocess.DEVNULL
    try:  # a session of its own: Ctrl-C is for this process, which then ends that one
        return subprocess.Popen(words, stdin=null, stdout=subprocess.PIPE, stderr=null, start_new_session=True)
    except OSError:  # no more processes, no memory
        return None


def _result(printed: bytes) -> Read:
    try:
        found = parse_json(printed)
        return {name: (key, found["parts"][place]) for name, (key, place) in found["runs"].items()}
    except (ValueError, LookupError, TypeError, AttributeError):  # cut off, or of another gpubench
        return {}


def main(runs_dir: str) -> None:
    """Read all files below ``runs_dir`` and print what is comparable in them."""
    files = ComparableParts({})
    distinct: list[Comparable] = []
    places: dict[int, int] = {}
    runs = {}
    for run in run_directories(Path(runs_dir)):
        key, parts = files.of(provenance_bytes(run.path))
        if parts is not None:
            if id(parts) not in places:
                places[id(parts)] = len(distinct)
                distinct.append(parts)
            runs[run.path.name] = key, places[id(parts)]
    sys.stdout.write(json.dumps({"parts": distinct, "runs": runs}))


if __name__ == "__main__":
    main(*sys.argv[1:])
