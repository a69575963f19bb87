"""``python -m benchmarks.import_storm``: ours beside the prior scripts' check for a file, in one run."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.import_storm.storm import Storm, rate_limit
from tests.importing.registry import Registry

STORMS = ("all at once", "leader killed -9 while it writes", "registry answers 429 beyond 20 requests/s")


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.import_storm", description=__doc__)
    parser.add_argument("--importers", type=int, default=64)
    count = parser.parse_args().importers
    print(f"{count} importers of one image, 8 MiB; a fetch of it is 2 blobs\n")
    print("| storm | importer | failed | corrupt | blobs fetched | requests | seconds |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="import-storm-") as home, Registry() as registry:
        for number, name in enumerate(STORMS):
            for naive in (False, True):
                storm = Storm(
                    home=Path(home) / f"{number}{naive}",
                    registry=registry,
                    count=count,
                    naive=naive,
                    kill=number == 1,
                    refuse=rate_limit(20) if number == 2 else None,
                )
                result = storm.run()
                who = "`[ -f x ] \\|\\| enroot import`" if naive else "ours"
                figures = (result.failed, result.corrupt, result.blobs, result.requests, f"{result.seconds:.0f}")
                print(f"| {name} | {who} | {' | '.join(map(str, figures))} |", flush=True)


main()
