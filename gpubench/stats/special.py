"""The functions of ``scipy.special`` that the statistics use.

Importing that package takes 0.2 s, nine tenths of them for wrappers of other array libraries (they import
``numpy.f2py`` and ``numpy.testing``). The functions themselves stand in one compiled module, which is loaded alone.
"""

import importlib
import importlib.util
import sys
from types import ModuleType

PACKAGE = "scipy.special"


def _functions() -> ModuleType:
    if PACKAGE not in sys.modules and (spec := importlib.util.find_spec(PACKAGE)):
        # The package is found but not run while its module is loaded. A later import of the package runs it.
        sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
        try:
            return importlib.import_module(f"{PACKAGE}._ufuncs")
        except ImportError:  # a scipy that keeps them elsewhere
            pass
        finally:
            del sys.modules[PACKAGE]
    return importlib.import_module(PACKAGE)


_found = _functions()
chdtrc = _found.chdtrc
chdtri = _found.chdtri
gammaincinv = _found.gammaincinv
nctdtr = _found.nctdtr
nctdtrinc = _found.nctdtrinc
ndtr = _found.ndtr
ndtri = _found.ndtri
stdtr = _found.stdtr
stdtrit = _found.stdtrit
