"""Requests to a registry: each with a deadline, repeated where that may help, logged in where that is wanted."""

from __future__ import annotations

import dataclasses
import email.utils
import math
import time
from collections.abc import Mapping
from typing import Any

import requests
import requests.auth
import urllib3.exceptions

from gpubench.errors import SchedulerError
from gpubench.images.docker.credentials import find_credentials
from gpubench.images.docker.failures import cause, refused
from gpubench.images.docker.login import Header, log_in
from gpubench.images.docker.names import RepositoryPlace, is_loopback

ATTEMPTS = 5
SILENCE_S = (10.0, 30.0)
"""To connect, and between two pieces of an answer."""
WHOLE_S = 120.0
"""For one whole answer: a registry that sends a byte now and then is too slow, too."""
LONGEST_PAUSE_S = 30.0
_AGAIN = (408, 429, 500, 502, 503, 504)
_PIECE = 1 << 16


@dataclasses.dataclass(frozen=True)
class RegistryResponse:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _SlowError(requests.Timeout):
    """WHOLE_S is over."""


class Transport:
    """GET requests to one place."""

    def __init__(self, place: RepositoryPlace) -> None:
        self.place = place
        self._session: requests.Session
        self._auth: requests.auth.AuthBase = Header()

    def get(self, path: str, *, limit: int, what: str, accept: str = "*/*") -> RegistryResponse:
        """The answer to ``PATH`` below ``/v2/``: any but 401, 403, 429 and 5xx. ``what`` completes "could not …".

        Raises:
            SchedulerError: refused, down, overloaded, too slow, or an answer of more than ``limit`` bytes.
        """
        # One session per request, closed after it: a login node's front end asks a handful, and none may keep a socket.
        with requests.Session() as self._session:
            # A proxy of the environment is for other machines.
            self._session.trust_env = not is_loopback(self.place.host)
            return self._attempts(path, limit, what, accept)

    def _attempts(self, path: str, limit: int, what: str, accept: str) -> RegistryResponse:
        why = ""
        for attempt in range(ATTEMPTS):
            try:
                answer = self._logged_in(path, limit, what, accept)
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                why, pause = _cause(error), 0.0
            else:
                if answer.status not in _AGAIN:
                    return answer
                why, pause = f"status {answer.status}", _retry_after(answer.headers.get("Retry-After", ""))
            if attempt + 1 < ATTEMPTS:
                time.sleep(min(max(pause, 0.5 * 2**attempt), LONGEST_PAUSE_S))
        raise _gave_up(self.place.host, what, why)

    def _logged_in(self, path: str, limit: int, what: str, accept: str) -> RegistryResponse:
        """One attempt; a login is made, or renewed when its time was over."""
        answer = self._one(path, limit, accept)
        if answer.status == 401:
            login = find_credentials(self.place.host)
            self._auth = log_in(answer.headers.get("WWW-Authenticate", ""), self.place, login, self._send)
            answer = self._one(path, limit, accept)
        if answer.status in (401, 403):
            raise refused(self.place.host, what, str(answer.status))
        return answer

    def _one(self, path: str, limit: int, accept: str) -> RegistryResponse:
        deadline = time.monotonic() + WHOLE_S
        url = self.place.api + path
        # The bytes as they are stored: it is them that a digest is of.
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        with self._send("GET", url, headers=headers, auth=self._auth, stream=True) as answer:
            body = bytearray()
            # Whatever has come: `iter_content` would wait for a whole piece, however slowly it comes.
            while piece := answer.raw.read1(_PIECE):
                body += piece
                if len(body) > limit:
                    raise SchedulerError(f"registry {self.place.host} sends more than {limit} bytes for {path}")
                if time.monotonic() > deadline:
                    raise _SlowError
            return RegistryResponse(answer.status_code, answer.headers, bytes(body))

    def _send(self, method: str, url: str, **options: Any) -> requests.Response:
        return self._session.request(method, url, timeout=SILENCE_S, **options)


def _cause(error: Exception) -> str:
    if isinstance(error, requests.Timeout) or "timed out" in str(error).lower():
        return "too slow"
    return cause(error)


def _retry_after(value: str) -> float:
    """Seconds, from the header's two forms: seconds or a date."""
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:
        return seconds if math.isfinite(seconds) else 0.0
    try:
        return email.utils.parsedate_to_datetime(value).timestamp() - time.time()
    except (TypeError, ValueError):
        return 0.0


def _gave_up(host: str, what: str, cause: str) -> SchedulerError:
    state = {"too slow": "is too slow", "status 429": "is overloaded"}.get(cause, "doesn't answer")
    return SchedulerError(
        f"registry {host} {state}: could not {what} ({cause}, {ATTEMPTS} attempts)",
        then="check its name and the network, and run it again",
    )
