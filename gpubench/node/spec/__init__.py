"""What the tool and the node half agree on: the run spec, the records, their schemas and the words in them.

Node half: Python 3.9, standard library only. The tool imports this package too, so the two can't drift apart.
"""

from gpubench.node.spec.records import RunRecord, WorkloadRecord
from gpubench.node.spec.run import PROCESS_DEFAULTS, Deadlines, RunSpec, WorkloadSpec

__all__ = [
    "PROCESS_DEFAULTS",
    "Deadlines",
    "RunRecord",
    "RunSpec",
    "WorkloadRecord",
    "WorkloadSpec",
]
