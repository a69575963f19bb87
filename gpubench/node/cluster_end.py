"""When a standing cluster ends: its job's time, and why it can't go on before."""

import os

from gpubench.node.workloads import clock

END_VARIABLE = "GPUBENCH_END"


class ClusterEndedError(Exception):
    """The cluster can't go on; the message says why."""


def time_left() -> float:
    """Seconds until the job's end, which its script exported; infinite without one."""
    end = os.environ.get(END_VARIABLE, "")
    return float(end) - clock.now() if end.isdigit() else float("inf")
