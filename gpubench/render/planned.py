"""What every rendering of a job says in the same words, and the node half as one file."""

import io
import zipfile
from collections.abc import Mapping

from gpubench.model.image import Image
from gpubench.model.plan import PlannedBlock, PlannedRun

NODE_HALF = "node.pyz"
UNRESOLVED = Image(
    kind="unresolved",
    id="unresolved",
    ucx_spec="",
    ucx_version="",
    binding="",
    python="python3",
    env={},
    manifest="",
    reference="unresolved",
)
"""Stands where a variant's image isn't built yet."""


def spec_path(block: PlannedBlock, run: PlannedRun) -> str:
    """Where a run's spec stands, below its job."""
    return f"specs/{block.block:03d}-{run.order}-{run.run}.json"


def turns_path(block: PlannedBlock) -> str:
    """Where the turns of an interleaved block stand, below its job."""
    return f"specs/{block.block:03d}-turns.json"


MAIN = b"import sys\n\nfrom gpubench.node.main import main\n\nsys.exit(main())\n"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive can hold


def pack(sources: Mapping[str, bytes]) -> bytes:
    """The zip application with these files.

    Args:
        sources: Python files by path below the package, such as ``gpubench/node/main.py``.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in sorted({**sources, "__main__.py": MAIN}.items()):
            info = zipfile.ZipInfo(name, EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return buffer.getvalue()
