"""A workload from a file of the user's: a class of the public base, a plain class, or a function."""

import importlib
import importlib.util
import time
from typing import Any, Mapping, Tuple

import dask
import distributed

from gpubench.node.workloads import device
from gpubench.node.workloads.base import Answer, Measurement, UnavailableError, WorkloadContext, judged
from gpubench.node.workloads.catalogue.own import given, module_name


def create(name: str, context: WorkloadContext, backend: str, params: Mapping[str, Any]) -> Measurement:
    """The measurement of ``FILE.py:NAME``.

    Raises:
        ValueError: its ``plan`` doesn't name this device.
        UnavailableError: a module that the file's ``plan`` wants for the back-end isn't there.
    """
    what = getattr(importlib.import_module(module_name(name, params)), name.rpartition(":")[2])
    attribute = getattr(what, "plan", None)
    plan = attribute if isinstance(attribute, dict) else {}
    if context.device not in plan.get("devices", (context.device,)):
        raise ValueError(f"{name} doesn't run on {context.device!r}")
    for module in plan.get("backends", {}).get(backend, ()):
        if importlib.util.find_spec(module) is None:
            raise UnavailableError(f"{name} with back-end {backend} needs {module}, and this image has none")
    is_measurement = isinstance(what, type) and issubclass(what, Measurement)
    measurement = what(context, given(params)) if is_measurement else OwnMeasurement(context, given(params), what)
    measurement.backend = backend
    return measurement


class OwnMeasurement(Measurement):
    """Measures ``what``: a function ``(client, params) -> result``, or a class with ``once``.

    The clock stands around the call, and around the wait for Dask collections and futures that it returns, and for what
    the GPUs still do.
    """

    def __init__(self, context: WorkloadContext, params: Mapping[str, Any], what: Any) -> None:
        super().__init__(context, params)
        self._is_class = isinstance(what, type)
        self._what = what() if self._is_class else what

    @property
    def nominal_bytes(self) -> int:
        return int(getattr(self._what, "nominal_bytes", 0))

    def setup(self) -> None:
        """The class's own, which gets client and parameters."""
        self._call("setup", self.context.client, dict(self.params))

    def prepare(self) -> None:
        self._call("prepare")

    def once(self) -> Tuple[float, Any]:
        """The call, until what it returns is there."""
        call = self._what.once if self._is_class else self._what
        arguments = () if self._is_class else (self.context.client, dict(self.params))
        began = time.perf_counter()
        result = _finished(self.context.client, call(*arguments))
        device.synchronize_workers(self.context.client, self.context.device)
        return time.perf_counter() - began, result

    def check(self, answer: Any) -> Answer:
        """The class's own: True or False, or an AssertionError with the reason; ``unchecked`` without one."""
        if not (self._is_class and hasattr(self._what, "check")):
            return Answer("unchecked", {})
        try:
            right = self._what.check(answer)
        except AssertionError as error:
            return Answer("wrong", {"check": str(error) or "AssertionError"})
        if right is None:
            raise TypeError(f"check of {type(self._what).__name__} returned None: it has to return True or False")
        return judged(right, {"check": bool(right)})

    def teardown(self) -> None:
        """The class's own; then nothing holds its results any more."""
        try:
            self._call("teardown")
        finally:
            self._what = None

    def _call(self, method: str, *arguments: Any) -> None:
        if self._is_class and hasattr(self._what, method):
            getattr(self._what, method)(*arguments)


def _finished(client: Any, result: Any) -> Any:
    """``result`` once its collections are in the workers' memory and its futures are done.

    It may be one itself, or a list, tuple or dict of some. Raises what a task raised.
    """
    if not isinstance(result, (list, tuple, dict)):
        return _finished(client, [result])[0]
    items = list(result.values() if isinstance(result, dict) else result)
    lazy = [at for at, item in enumerate(items) if dask.is_dask_collection(item)]
    if not lazy and not any(isinstance(item, distributed.Future) for item in items):
        return result
    for at in lazy:
        items[at] = client.persist(items[at])
    futures = distributed.futures_of(items)
    distributed.wait(futures)
    for future in futures:
        if future.status != "finished":
            future.result()
    if isinstance(result, dict):
        return dict(zip(result, items))
    return tuple(items) if isinstance(result, tuple) else items
