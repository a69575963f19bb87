"""A workload from a file of the user's: a function, or a class with ``setup``, ``prepare``, ``once`` and ``check``.

Node half: Python 3.9; dask and distributed as the image has them.
"""

import contextlib
import sys
import time
import traceback
from typing import Any, Iterator, Mapping, Tuple

import dask
import distributed

from gpubench.workloads.base import Answer, Measurement, WorkloadContext, judged
from gpubench.workloads.catalogue.own import HASH, module_name


class OwnWorkloadError(Exception):
    """The user's code raised; the message says where in the file."""


@contextlib.contextmanager
def located(name: str, params: Mapping[str, Any]) -> Iterator[None]:
    """What the user's file raises becomes an OwnWorkloadError with its line; the whole traceback goes to the log."""
    try:
        yield
    except (Exception, SystemExit) as error:
        # A time limit, a stop request or a worker without memory interrupt the user's code and aren't its error.
        if type(error).__module__.startswith("gpubench.node."):
            raise
        traceback.print_exc(file=sys.stderr)
        file, line = name.rpartition(":")[0], _line(error, module_name(params) + ".py")
        said = traceback.format_exception_only(type(error), error)[-1].strip().split("\n")[0]
        raise OwnWorkloadError(f"{file}:{line}: {said}" if line else f"{file}: {said}") from error


def _line(error: BaseException, module_file: str) -> int:
    """The last line of the user's file that the error passed; 0 where it passed none."""
    if isinstance(error, SyntaxError) and str(error.filename).endswith(module_file):
        return error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename.endswith(module_file)), 0)


class OwnMeasurement(Measurement):
    """Measures ``what``: a function ``(client, params) -> result``, or a class.

    The clock stands around the call, and around the wait for Dask collections and futures that it returns.
    """

    def __init__(self, context: WorkloadContext, params: Mapping[str, Any], name: str, what: Any) -> None:
        super().__init__(context, params)
        self._name = name
        self._given = {key: value for key, value in params.items() if key != HASH}
        self._is_class = isinstance(what, type)
        with self._located():
            self._what = what() if self._is_class else what

    @property
    def nominal_bytes(self) -> int:
        """What the file says, 0 where it says nothing."""
        return int(getattr(self._what, "nominal_bytes", 0))

    def setup(self) -> None:
        """The class's own, which gets client and parameters."""
        self._call("setup", self.context.client, dict(self._given))

    def prepare(self) -> None:
        """The class's own."""
        self._call("prepare")

    def once(self) -> Tuple[float, Any]:
        """The call, until what it returns is there."""
        call = self._what.once if self._is_class else self._what
        arguments = () if self._is_class else (self.context.client, dict(self._given))
        with self._located():
            began = time.perf_counter()
            result = _finished(self.context.client, call(*arguments))
            return time.perf_counter() - began, result

    def check(self, answer: Any) -> Answer:
        """The class's own: True or False, or an AssertionError with the reason; ``unchecked`` without one."""
        if not (self._is_class and hasattr(self._what, "check")):
            return Answer("unchecked", {})
        with self._located():
            try:
                right = self._what.check(answer)
            except AssertionError as error:
                return Answer("wrong", {"check": str(error) or "AssertionError"})
            if right is None:
                raise TypeError("check returned None: it has to return True or False")
            return judged(right, {"check": bool(right)})

    def teardown(self) -> None:
        """The class's own; then nothing holds its results any more."""
        try:
            self._call("teardown")
        finally:
            self._what = None

    def _call(self, method: str, *arguments: Any) -> None:
        if self._is_class and hasattr(self._what, method):
            with self._located():
                getattr(self._what, method)(*arguments)

    def _located(self) -> Any:
        return located(self._name, self.params)


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
