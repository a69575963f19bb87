"""Imports the node half from memory in processes of a cluster that another program started; removed afterwards.

Its source text is sent to them (they can't import it yet), and run with the bytes of ``node.pyz`` as ``ARCHIVE``. No
file is written there, no path is changed; what they had imported as ``gpubench`` before is put back by ``remove``.
"""

import hashlib
import importlib.abc
import importlib.machinery
import io
import sys
import zipfile
from types import ModuleType
from typing import Any, Dict, Optional

PACKAGE = "gpubench"


class ZipImporter(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``gpubench`` and all below it in an archive's bytes."""

    def __init__(self, archive: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            self.sources: Dict[str, bytes] = {name: opened.read(name) for name in opened.namelist()}
        self.label = f"carried {hashlib.sha256(archive).hexdigest()}"
        self.before: Dict[str, ModuleType] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - as Python calls it
        """The module's spec; None for every other package."""
        if fullname.partition(".")[0] != PACKAGE or self._file(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=self._is_package(fullname))

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's source."""
        name = self._file(module.__name__)
        assert name is not None
        module.__file__ = f"{self.label}/{name}"
        exec(compile(self.sources[name], module.__file__, "exec"), module.__dict__)  # noqa: S102 - a loader's trade

    def _is_package(self, fullname: str) -> bool:
        return fullname.replace(".", "/") + "/__init__.py" in self.sources

    def _file(self, fullname: str) -> Optional[str]:
        base = fullname.replace(".", "/")
        return next((name for name in (base + "/__init__.py", base + ".py") if name in self.sources), None)


def install(archive: bytes) -> None:
    """Make ``import gpubench`` find the archive, whatever was imported by that name before."""
    remove()
    importer = ZipImporter(archive)
    importer.before = _take_away()
    sys.meta_path.insert(0, importer)


def remove() -> None:
    """As if ``install`` had never been called."""
    for importer in [found for found in sys.meta_path if type(found).__name__ == ZipImporter.__name__]:
        sys.meta_path.remove(importer)
        _take_away()
        sys.modules.update(getattr(importer, "before", {}))


def _take_away() -> Dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    return {name: sys.modules.pop(name) for name in names}
