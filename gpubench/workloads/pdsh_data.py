"""The eight tables of TPC-H as Parquet files, made once by ``tpchgen-cli`` and found again by a hash of its options.

Node half: runs in the client. ``tpchgen-cli`` is a program in a Python wheel; its numbers follow from the scale alone.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List

from gpubench.workloads.base import UnavailableError

FILES_BY = {"lineitem": 1, "orders": 4, "partsupp": 8, "customer": 32, "part": 32}
"""A table has one file for so many of lineitem's, as its rows are fewer; supplier, nation and region have one each."""
TABLES = ("lineitem", "orders", "partsupp", "customer", "part", "supplier", "nation", "region")
THREADS = 4


def generator() -> str:
    """The generator's version.

    Raises:
        UnavailableError: the image has no generator, or no pyarrow to write its tables for pandas.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise UnavailableError("pdsh needs pyarrow, and this image has none")
    try:
        return importlib.metadata.version("tpchgen-cli")
    except importlib.metadata.PackageNotFoundError:
        raise UnavailableError(
            "pdsh needs tpchgen-cli, and this image has none: build the image anew, or give tables as `path`"
        ) from None


class Tables:
    """Files below a folder, ``<table>/*.parquet``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: Dict[str, List[str]] = {
            table: [str(path) for path in sorted((folder / table).glob("*.parquet"))] for table in TABLES
        }

    @property
    def missing(self) -> List[str]:
        """Tables without a file."""
        return [table for table, files in self.files.items() if not files]

    def bytes_of(self, tables: List[str]) -> int:
        """Bytes on disk."""
        return sum(Path(path).stat().st_size for table in tables for path in self.files[table])


def listed(folder: str) -> str:
    """Hash of the names and sizes of all tables' files, as this process sees them."""
    seen = [(path, Path(path).stat().st_size) for files in Tables(Path(folder)).files.values() for path in files]
    return hashlib.sha256(json.dumps(sorted(seen)).encode("utf-8")).hexdigest()


def made(place: Path, scale: float, files: int) -> Tables:
    """The tables of a scale factor in a folder below ``place``, unless they are there: lineitem in so many files.

    Another process may make the same ones meanwhile: the first that is done is taken.

    Raises:
        UnavailableError: as for ``generator``.
        RuntimeError: it failed; with its last line.
    """
    recipe = json.dumps(["tpchgen-cli", generator(), scale, files, FILES_BY, "float64, timestamp[ns]"])
    folder = place / "pdsh-{}".format(hashlib.sha256(recipe.encode("utf-8")).hexdigest()[:16])
    if not folder.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".pdsh-", dir=str(place)))
        try:
            _generate(beside, scale, files)
            beside.chmod(0o755)
            beside.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(str(beside), ignore_errors=True)
    return Tables(folder)


def _generate(folder: Path, scale: float, files: int) -> None:
    from gpubench.workloads import parquet_files

    program = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or "tpchgen-cli"
    raw = folder / "raw"
    by_parts: Dict[int, List[str]] = {}
    for table in TABLES:
        by_parts.setdefault(-(-files // FILES_BY.get(table, files)), []).append(table)
    for parts, tables in by_parts.items():
        what = ("-s", f"{scale:g}", "--parts", str(parts), "-T", ",".join(tables), "-o", str(raw))
        done = subprocess.run(
            [program, "parquet", "-q", *what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            said = done.stdout.decode("utf-8", "replace").strip().splitlines()
            raise RuntimeError(f"tpchgen-cli: exit code {done.returncode}: {(said or ['no word'])[-1]}")
    pairs = [(str(path), str(folder / path.relative_to(raw))) for path in sorted(raw.glob("*/*.parquet"))]
    for table in TABLES:
        (folder / table).mkdir()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda pair: parquet_files.retyped(*pair), pairs))
    shutil.rmtree(str(raw))
