"""The node half as one file: a zip application with the same bytes for the same sources."""

import io
import zipfile
from collections.abc import Mapping

NODE_HALF = "node.pyz"
MAIN = b"import sys\n\nfrom gpubench.node.main import main\n\nsys.exit(main())\n"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive can hold


def pack(sources: Mapping[str, bytes]) -> bytes:
    """The zip application with these files.

    Args:
        sources: Python files by path below the package, such as ``gpubench/node/main.py``.
    """
    return zipped({**sources, "__main__.py": MAIN}, zipfile.ZIP_STORED)


def zipped(files: Mapping[str, bytes], method: int) -> bytes:
    """A zip archive of the files by path; the same files and method give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in sorted(files.items()):
            info = zipfile.ZipInfo(path, EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, method)
    return buffer.getvalue()
