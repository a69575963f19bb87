"""From a workload's name to the object that measures it."""

import contextlib
import importlib
from typing import Any, Iterable, Mapping

from gpubench.node.spec import WorkloadSpec
from gpubench.node.workloads.base import Measurement, WorkloadContext
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.node.workloads.catalogue.own import is_own, module_name


def load(workloads: Iterable[WorkloadSpec]) -> None:
    """Import the files of these workloads, and with them dask's collections.

    To be called before a process communicates: beside UCX's progress thread, which competes for the interpreter, the
    import of ``dask.dataframe`` takes 8 s instead of 1. What a user's file raises is said when it is to be measured.
    """
    for planned in workloads:
        if is_own(planned.name):
            importlib.import_module("gpubench.node.workloads.own")
            with contextlib.suppress(Exception, SystemExit):
                importlib.import_module(module_name(planned.name, planned.params))
        else:
            importlib.import_module("gpubench.node.workloads." + CATALOGUE[planned.name].factory.partition(":")[0])


def create(name: str, context: WorkloadContext, backend: str, params: Mapping[str, Any]) -> Measurement:
    """The measurement of workload ``name``; its family's file, and so dask and numpy, is imported only now.

    Whatever a user's file raises comes through.
    """
    if is_own(name):
        from gpubench.node.workloads import own

        return own.create(name, context, backend, params)
    file, _, kind = CATALOGUE[name].factory.partition(":")
    family = importlib.import_module("gpubench.node.workloads." + file)
    measurement: Measurement = getattr(family, kind)(context, params)
    measurement.backend = backend
    return measurement
