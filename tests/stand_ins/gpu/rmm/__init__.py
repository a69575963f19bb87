"""Stand-in for RMM: the memory resource that the worker's command made, as ``rmm.mr`` says it; allocates nothing.

Where the real RMM is installed, what is missing here is the real one's: the binding loads its compiled parts.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)

from rmm import mr as mr

__version__ = "0+stand-in"
