"""A run's files as lines of a log: how results come home where nodes and the front end share no file system.

Each line holds a part and its hash, the last one the hash of the whole: what was cut off, left out or edited is seen.
"""

import base64
import dataclasses
import hashlib
import io
import re
import zipfile
from typing import Dict, Iterable, Iterator, List, Mapping, Tuple

from gpubench.node.spec.records import LINKS_FILE, LOGS_FILE, PROVENANCE_FILE, RUN_FILE, SAMPLES_FILE

MARK = "gpubench-frame/1"
PART_BYTES = 6 * 1024
"""8 KiB as text: container engines split lines of 16 KiB."""
MOST_BYTES = 5 * 1024 * 1024
"""A kubelet turns a log over at 10 MiB by default (``containerLogMaxSize``), and shows the newer file only."""
FILES = (SAMPLES_FILE, LINKS_FILE, PROVENANCE_FILE, LOGS_FILE, RUN_FILE)
"""What a run leaves, in the order in which it is to be written: the record comes last."""

_LINE = re.compile(MARK + r" ([0-9a-z]+-[1-9][0-9]*) (\d+)/(\d+) ([0-9a-f]{64}) (\S*)")


@dataclasses.dataclass
class DecodedFile:
    """One run directory as it came over the log: its files by name, or why they can't be had (``torn``)."""

    files: Dict[str, bytes] = dataclasses.field(default_factory=dict)
    torn: str = ""


def encode(name: str, files: Mapping[str, bytes]) -> Iterator[str]:
    """Lines, without their ends, for the run directory ``name``; its logs are left out where it would be too large."""
    packed = _pack(files)
    if len(packed) > MOST_BYTES:
        packed = _pack({file: data for file, data in files.items() if file != LOGS_FILE})
    parts = [packed[start : start + PART_BYTES] for start in range(0, len(packed), PART_BYTES)]
    for number, part in enumerate(parts, start=1):
        yield _line(name, number, len(parts), part, base64.b64encode(part).decode("ascii"))
    yield _line(name, 0, len(parts), packed, "")


def decode(lines: Iterable[str]) -> Tuple[Dict[str, DecodedFile], List[str]]:
    """Run directories by name, and every other line; the same line twice, or lines in another order, change nothing."""
    parts: Dict[str, Dict[int, Tuple[int, str, str]]] = {}
    others: List[str] = []
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            others.append(line)
            continue
        name, number, count, digest, text = match.groups()
        parts.setdefault(name, {})[int(number)] = (int(count), digest, text)
    return {name: _join(pieces) for name, pieces in parts.items()}, others


def _line(name: str, number: int, count: int, content: bytes, text: str) -> str:
    return f"{MARK} {name} {number}/{count} {hashlib.sha256(content).hexdigest()} {text}"


def _join(parts: Mapping[int, Tuple[int, str, str]]) -> DecodedFile:
    count = max(entry[0] for entry in parts.values())
    packed = b""
    for number in range(1, count + 1):
        if number not in parts:
            return DecodedFile(torn=f"line {number} of {count} is missing")
        _, digest, text = parts[number]
        try:
            part = base64.b64decode(text, validate=True)
        except ValueError:
            part = b""
        if hashlib.sha256(part).hexdigest() != digest:
            return DecodedFile(torn=f"line {number} of {count} was changed on its way")
        packed += part
    if 0 not in parts:
        return DecodedFile(torn="its end is missing")
    if hashlib.sha256(packed).hexdigest() != parts[0][1]:
        return DecodedFile(torn="its lines don't belong together")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return DecodedFile({name: archive.read(name) for name in archive.namelist() if name in FILES})


def _pack(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in FILES:
            if name in files:
                archive.writestr(name, files[name])
    return buffer.getvalue()
