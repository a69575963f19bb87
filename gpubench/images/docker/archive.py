"""Tar streams that Docker takes and gives."""

import io
import tarfile
from collections.abc import Iterable, Mapping

from gpubench.errors import DataError

LARGEST_FILE = 64 << 20
"""Bytes; what is read out of an image is a manifest or a list of packages."""


def context(files: Mapping[str, bytes]) -> io.BytesIO:
    """A build context. The same files give the same bytes, so that the engine finds its cache."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    out.seek(0)
    return out


def member(chunks: Iterable[bytes], name: str, *, what: str) -> bytes:
    """The content of file ``name`` in a tar stream, plain or compressed by gzip. ``what`` names the tar in messages.

    Raises:
        DataError: not in it, no regular file, larger than LARGEST_FILE, or no tar.
    """
    large = DataError(f"{name} in {what} is no regular file of at most {LARGEST_FILE >> 20} MiB")
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > LARGEST_FILE:
            raise large
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for entry in tar:
                if entry.name.lstrip("./") == name.lstrip("./"):
                    content = tar.extractfile(entry) if entry.isreg() and entry.size <= LARGEST_FILE else None
                    if content is None:
                        raise large
                    return content.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{what} can't be read ({error})") from None
    raise missing(name, what)


def missing(name: str, what: str) -> DataError:
    """There is no file ``name`` in ``what``."""
    return DataError(f"{what} holds no {name}", then="it was not built by gpubench images build")
