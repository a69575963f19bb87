"""``python -m benchmarks.calibration``: prints every table of the proof, with the seed that makes it again."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from benchmarks.calibration import tables
from benchmarks.calibration.noise import MODELS


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options and print the tables that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument(
        "--campaigns",
        type=int,
        default=2000,
        help="simulated campaigns per figure; same-code and store-path take 50 at most",
    )
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument(
        "--models",
        nargs="+",
        choices=MODELS,
        default=list(MODELS),
        metavar="MODEL",
        help=", ".join(MODELS).replace("%", "%%"),
    )
    parser.add_argument("--cells", nargs="+", type=int, default=[1, 6, 45])
    parser.add_argument("--blocks", nargs="+", type=int, default=[3, 5, 8, 12])
    parser.add_argument(
        "--variants", type=int, default=2, choices=range(2, 9), help="in the tables same-code, store-path, alarms"
    )
    parser.add_argument("--tables", nargs="+", choices=tables.TABLES, default=list(tables.TABLES))
    options = parser.parse_args(arguments)
    print(f"{options.campaigns} campaigns a figure, seed {options.seed}, 6 repetitions and 2 variants unless said")
    for name in options.tables:
        started = time.monotonic()
        tables.TABLES[name](options)
        print(f"[{name}: {time.monotonic() - started:.0f} s]\n", flush=True)


if __name__ == "__main__":
    main()
