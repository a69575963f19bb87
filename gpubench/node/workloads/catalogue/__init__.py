"""What can be measured: plain data, so that the tool can plan and explain without importing dask.

Node half: Python 3.9, standard library only. The tool imports this package and nothing else of the workloads. One file
per family.
"""

from typing import Dict

from gpubench.node.workloads.catalogue import array, communication, dataframe, scheduler, weak
from gpubench.node.workloads.catalogue.entry import Param, Shape, Workload

CATALOGUE: Dict[str, Workload] = {
    workload.name: workload
    for family in (
        dataframe.WORKLOADS,
        array.WORKLOADS,
        weak.WORKLOADS,
        scheduler.WORKLOADS,
        communication.WORKLOADS,
    )
    for workload in family
}

__all__ = ["CATALOGUE", "Param", "Shape", "Workload"]
