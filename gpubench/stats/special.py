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


_ufuncs = _functions()
chdtrc = _ufuncs.chdtrc
chdtri = _ufuncs.chdtri
gammaincinv = _ufuncs.gammaincinv
nctdtr = _ufuncs.nctdtr
nctdtrinc = _ufuncs.nctdtrinc
ndtr = _ufuncs.ndtr
ndtri = _ufuncs.ndtri
stdtr = _ufuncs.stdtr
stdtrit = _ufuncs.stdtrit
