"""Long answers of the engine: bounded silence, and an end when the user wants one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import requests
import urllib3.exceptions

import docker
from gpubench.errors import InterruptedByUserError
from gpubench.images.docker.failures import ENGINE_ERRORS, engine_failure, one_line, reason, too_slow

Cancelled = Callable[[], bool]
"""Asked a few times a second from another thread; True ends what is under way."""

_LOOK_S = 0.1


class StreamClient(docker.APIClient):
    """A client for one long answer. Its ``timeout`` bounds every silence, also where the SDK would wait forever."""

    answer: requests.Response | None = None

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send one request, and remember its answer."""
        options["timeout"] = options.get("timeout") or self.timeout
        self.answer = super().send(request, **options)
        return self.answer

    def give_up(self) -> None:
        """Wake whoever reads the answer. The engine ends a build when nobody listens any more."""
        if self.answer is not None:
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                self.answer.raw.shutdown()


def never() -> bool:
    """The Cancelled of what can't be cancelled."""
    return False


def messages(
    client: StreamClient, begin: Callable[[], Iterator[dict[str, Any]]], cancelled: Cancelled
) -> Generator[dict[str, Any], None, None]:
    """The engine's messages one by one; closes ``client``.

    Raises:
        InterruptedByUserError: ``cancelled`` said so.
        One of ENGINE_ERRORS.
    """
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(client, cancelled, over), daemon=True)
    watcher.start()
    try:
        yield from begin()
    except ENGINE_ERRORS:
        if not cancelled():
            raise
    finally:
        over.set()
        watcher.join()
        if client.answer is not None:
            client.answer.close()
        client.close()
    if cancelled():
        raise InterruptedByUserError("interrupted")


def transfer(
    client: StreamClient,
    begin: Callable[[], Iterator[dict[str, Any]]],
    cancelled: Cancelled,
    *,
    what: str,
    host: str,
) -> Generator[dict[str, Any], None, None]:
    """The messages of a push to, or a pull from, registry ``host``; ``what`` completes "could not …".

    Raises:
        SchedulerError: the registry failed.
        MissingToolError: the engine failed.
        InterruptedByUserError: ``cancelled`` said so.
    """
    try:
        with contextlib.closing(messages(client, begin, cancelled)) as answers:
            for message in answers:
                if "error" in message:
                    raise engine_failure(what, one_line(str(message["error"])), host)
                yield message
    except (requests.Timeout, urllib3.exceptions.TimeoutError):
        raise too_slow(what, host, client.timeout) from None
    except ENGINE_ERRORS as error:
        raise engine_failure(what, reason(error), host) from None


def _watch(client: StreamClient, cancelled: Cancelled, over: threading.Event) -> None:
    while not over.wait(_LOOK_S):
        if cancelled():
            client.give_up()
