"""Tar streams that Docker gives."""

import io
import tarfile
from collections.abc import Iterable

from gpubench.errors import DataError

LARGEST_FILE = 64 << 20
"""Bytes; what is read out of an image is a manifest or a list of packages."""


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
    return DataError(f"{what} holds no {name}", then="it was not built by gpubench images build")
