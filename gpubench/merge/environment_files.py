"""What is comparable in the ``provenance.json`` of every run, read by a second process while the first reads samples.

Parsing those of ten thousand runs takes half as long as merging their million samples, and threads of one process would
only take turns at it. It is started as ``python -I -m gpubench.merge.environment_files RUNS_DIR`` and prints
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
    """Begin to read about so many files; what is yielded waits for the result.

    What isn't in the result has to be read in this process: all of it, where there are few files or one core, or where
    the second process failed; and files that are damaged.
    """
    if files < MANY or len(os.sched_getaffinity(0)) < 2:
        yield dict
        return
    words = [sys.executable, "-I", "-m", __name__, str(runs_dir.absolute())]
    # A session of its own: Ctrl-C is for this process, which then ends that one.
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            yield lambda: _result(process.communicate()[0])
        finally:
            process.kill()


def _result(printed: bytes) -> Read:
    try:
        found = parse_json(printed)
    except ValueError:
        return {}
    return {name: (key, found["parts"][place]) for name, (key, place) in found["runs"].items()}


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
