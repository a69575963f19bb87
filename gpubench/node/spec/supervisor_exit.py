"""How a process of the node half ends."""

EXIT_OK = 0
EXIT_NODE = 40
"""Of a supervisor: no record could be written, or the node is not usable for further runs."""
