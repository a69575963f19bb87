"""gpubench: did this version of the communication stack make distributed data science slower, and may I believe it?

This file travels into images with the node half: Python 3.9 and the standard library only.
"""

__version__ = "0.1.0.dev0"
