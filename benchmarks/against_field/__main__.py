"""``python -m benchmarks.against_field``: seconds of ``link`` and ``pdsh`` over those of the peers' own commands."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.against_field import peers
from benchmarks.rounds import machine
from benchmarks.task_rate.ratios import Way, interleaved, ratio

TESTS = ("tag_lat", "tag_bw", "send_recv")
QUERIES = (1, 3, 5, 6, 10, 12)
"""Those of suite pdsh-quick."""


def _links(asked: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Way, Way]]:
    for test in asked.tests:
        link = peers.Link(test, asked.size, asked.iterations, asked.reps, asked.ucx, folder)
        yield f"link {test}", link.ours, link.theirs


def _queries(asked: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Way, Way]]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpubench-benchmarks"
    python = peers.install_cudf_polars(cache)
    for backend in asked.backends:
        for query in asked.queries:
            tables = peers.Query(query, backend, asked.scale, asked.files, asked.reps, asked.ucx, python, folder)
            yield f"pdsh {query} {backend}", tables.ours, tables.theirs


def main(words: Sequence[str] | None = None) -> None:
    """Print one line per workload."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against_field", description=__doc__)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--what", nargs="+", choices=("link", "pdsh"), default=["link", "pdsh"])
    parser.add_argument("--tests", nargs="+", choices=TESTS, default=list(TESTS))
    parser.add_argument("--size", type=int, default=10_000_000)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--ucx", default="1.22.0")
    parser.add_argument("--backends", nargs="+", choices=("polars", "dask"), default=["polars", "dask"])
    parser.add_argument("--queries", nargs="+", type=int, default=list(QUERIES))
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--files", type=int, default=2)
    asked = parser.parse_args(words)
    print("workload | ours, s | the peer's, s | ratio of wall times [95 %] | machine")
    for name in asked.what:
        with tempfile.TemporaryDirectory() as folder:
            for what, ours, theirs in (_links if name == "link" else _queries)(asked, Path(folder)):
                found = ratio(interleaved(ours, theirs, asked.blocks, random.Random(asked.seed)))
                print(
                    f"{what} | {found.ours:.4g} | {found.theirs:.4g} | {found.ratio:.3f} "
                    f"[{found.low:.3f}, {found.high:.3f}] | {machine()}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
