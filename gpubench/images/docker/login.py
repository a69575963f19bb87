"""How a registry wants to be asked: Basic, or a token of its own (distribution.github.io, "Token authentication")."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import requests
import requests.auth

from gpubench.errors import SchedulerError
from gpubench.images.docker.credentials import Credentials
from gpubench.images.docker.failures import refused
from gpubench.images.docker.names import RepositoryPlace, is_loopback

_PARAMETER = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_CLIENT = "gpubench"

Send = Callable[..., requests.Response]
"""``send(method, url, **options)``, with the deadlines of the transport."""


class Header(requests.auth.AuthBase):
    """Sets ``Authorization``. As an auth object, so that ~/.netrc can't replace it."""

    def __init__(self, value: str = "") -> None:
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Called by requests."""
        if self._value:
            request.headers["Authorization"] = self._value
        return request


def parse_challenge(header: str) -> tuple[str, dict[str, str]]:
    """``WWW-Authenticate`` → the scheme in lower case and its parameters."""
    scheme, _, rest = header.strip().partition(" ")
    return scheme.lower(), {key.lower(): re.sub(r"\\(.)", r"\1", value) for key, value in _PARAMETER.findall(rest)}


def log_in(challenge: str, place: RepositoryPlace, login: Credentials | None, send: Send) -> requests.auth.AuthBase:
    """What answers a registry's 401.

    Raises:
        SchedulerError: no login helps.
        requests.RequestException: the token's server fails; trying again may help.
    """
    scheme, parameters = parse_challenge(challenge)
    if scheme == "bearer":
        return Header(f"Bearer {_token(parameters, place, login, send)}")
    if scheme != "basic":
        raise refused(place.host, f"show {place.repository}", f"401, asks for '{scheme}'")
    if login is None or login.token:
        raise refused(place.host, f"show {place.repository}", "401, it wants a login")
    return requests.auth.HTTPBasicAuth(login.user.encode(), login.password.encode())


def _token(parameters: dict[str, str], place: RepositoryPlace, login: Credentials | None, send: Send) -> str:
    realm = parameters.get("realm", "")
    plain_text = realm.startswith("http://") and not is_loopback(realm[7:].partition("/")[0])
    if not realm.startswith("https://") and (place.scheme == "https" or not realm.startswith("http://") or plain_text):
        raise SchedulerError(
            f"registry {place.host} sends logins to '{realm}', which isn't encrypted", then="tell its administrator"
        )
    asked = {
        "service": parameters.get("service", ""),
        "scope": parameters.get("scope") or f"repository:{place.repository}:pull",
    }
    answer = _ask(realm, asked, login, send)
    if answer.status_code in (400, 401, 403):
        raise refused(place.host, f"show {place.repository}", f"{answer.status_code} from {realm}")
    answer.raise_for_status()
    return _read(answer, realm)


def _ask(realm: str, asked: dict[str, str], login: Credentials | None, send: Send) -> requests.Response:
    if login is not None and login.token:
        form = {**asked, "grant_type": "refresh_token", "refresh_token": login.token, "client_id": _CLIENT}
        return send("POST", realm, data=form, auth=Header())
    if login is None:
        return send("GET", realm, params=asked, auth=Header())
    auth = requests.auth.HTTPBasicAuth(login.user.encode(), login.password.encode())
    return send("GET", realm, params={**asked, "account": login.user}, auth=auth)


def _read(answer: requests.Response, realm: str) -> str:
    try:
        document: dict[str, Any] = answer.json()
        return str(document.get("token") or document["access_token"])
    except (ValueError, KeyError, AttributeError, requests.RequestException):
        raise SchedulerError(f"{realm} gave no token ({answer.status_code})", then="run it again later") from None
