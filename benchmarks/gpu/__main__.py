"""``python -m benchmarks.gpu first FOLDER``, then ``second``: do the checks of GPU runs hold on a real GPU?

Each step is a run of the node half on one GPU, as a campaign starts it; a half takes at most six minutes. A table says
what was expected and what was seen, and everything raw stays in the folder: records, provenance, samples, UCX's logs.

``--python`` is that of an image with a stack for GPUs. Where nothing can be installed, ``pack FILE`` here and
``--node-half FILE`` there do without the tool's own libraries.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu import steps
from benchmarks.gpu.runs import Bench
from gpubench.node.workloads import nvml


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a half, print its table; exit code 1 where something else was seen than expected, 2 where nothing can run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("half", choices=("first", "second", "pack"))
    parser.add_argument("folder", type=Path, help="where everything goes; the file, for pack")
    parser.add_argument("--python", default=sys.executable, help="of a stack for GPUs")
    parser.add_argument("--node-half", type=Path, help="made by pack; default: made here")
    parser.add_argument("--ucx", default="1.22.0", help="what that Python's UCX says of itself")
    parser.add_argument("--gigabytes", type=float, default=80.0, help="memory of the GPU: sizes are shares of it")
    parser.add_argument("--only", nargs="+", default=[], help="names of steps")
    options = parser.parse_args(arguments)
    half = options.node_half.read_bytes() if options.node_half else packed()
    if options.half == "pack":
        options.folder.write_bytes(half)
        return 0
    chosen = [step for step in steps.HALVES[options.half] if not options.only or step.__name__ in options.only]
    if unknown := set(options.only) - {step.__name__ for step in chosen}:
        parser.error(f"{options.half} has no step {', '.join(sorted(unknown))}")
    if not nvml.devices() or shutil.which("nvidia-smi") is None:
        parser.error("no GPU answers to NVML here, or there is no nvidia-smi")
    if options.folder.exists():
        parser.error(f"{options.folder} exists already: name a new folder")
    bench = Bench(options.folder, options.python, half, options.ucx, options.gigabytes)
    print("| step | expected | seen | |\n|---|---|---|---|", flush=True)
    failed = 0
    for step in chosen:
        for expected, seen, is_so in step(bench):
            failed += not is_so
            print(f"| {step.__name__} | {expected} | {seen} | {'yes' if is_so else '**no**'} |", flush=True)
    return 1 if failed else 0


def packed() -> bytes:
    """The node half of this checkout, with contrib's ``upstream``."""
    from gpubench import resources  # noqa: PLC0415 - these need the tool's libraries
    from gpubench.model.own_workload import packed_together, parse_own  # noqa: PLC0415
    from gpubench.render.node_half import pack  # noqa: PLC0415

    folder = resources.root() / "contrib" / "upstream"
    own = parse_own("upstream.py", "Upstream", lambda name: (folder / name).read_bytes(), str(folder))
    return pack(resources.node_half() | packed_together([own]))


if __name__ == "__main__":
    sys.exit(main())
