"""What a container engine or a registry said, as one line of ours."""

import docker.errors
import requests
import urllib3.exceptions

from gpubench.errors import GpubenchError, MissingToolError, SchedulerError
from gpubench.images.docker.names import config_file

ENGINE_ERRORS = (docker.errors.DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError)
"""Whatever the SDK lets through."""

_FULL = ("no space left", "quota exceeded")
_REFUSED = ("unauthorized", "authentication required", "no basic auth", "denied", "403 forbidden")
_DOWN = (
    "connection refused",
    "connection reset",
    "connection aborted",
    "no such host",
    "timeout",
    "timed out",
    "deadline exceeded",
    "network is unreachable",
    "no route to host",
    "eof",
    "x509",
    "http response to https client",
)
# In this order: signs, the registry's state, what to do.
_STATES = (
    (("toomanyrequests", "too many requests", "too many 429"), "is overloaded", "run it again later"),
    (("manifest unknown", "not found", "name unknown"), "hasn't got it", "check its name"),
    (_DOWN, "doesn't answer", "check its name and the network, and run it again"),
    (
        # All that Docker passes on when a registry can't write its files.
        ("unexpected http status: 5", "500 internal", "502 bad", "503 service", "unknown error", "too many 5"),
        "is out of order or its disk is full",
        "its log has the cause; run it again when that is fixed",
    ),
)
_LONGEST = 300


def reason(error: Exception) -> str:
    """The engine's own words without the SDK's wrapping, as one line."""
    explanation = error.explanation if isinstance(error, docker.errors.APIError) else None
    return as_one_line(str(explanation or error))


def cause(error: BaseException) -> str:
    """The innermost error, the one that people know: requests wraps urllib3's, which wraps the system's."""
    inner = error
    while (below := inner.__cause__ or inner.__context__) is not None:
        inner = below
    message = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(inner)
    return as_one_line(message or type(inner).__name__)


def as_one_line(text: str) -> str:
    """The text with its line ends blanked and its length bounded."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def is_full(text: str) -> bool:
    """Whether a disk has no room left."""
    return any(sign in text.lower() for sign in _FULL)


def disk_full(what: str, message: str) -> MissingToolError:
    """The engine's own disk."""
    return MissingToolError(
        f"the disk of the container engine is full: could not {what} ({message})",
        then="free some space (docker system prune, podman system prune) and run it again",
    )


def refused(host: str, what: str, message: str) -> SchedulerError:
    """401 or 403."""
    return SchedulerError(
        f"registry {host} refuses to {what} ({message})",
        then=f"check the login in {config_file()}: docker login {host}",
    )


def engine_failure(what: str, message: str, host: str = "") -> GpubenchError:
    """From the engine's message. ``what`` completes "could not …"; ``host`` is the registry that was to do with it."""
    if is_full(message):
        return disk_full(what, message)
    if not host:
        return MissingToolError(f"the container engine could not {what} ({message})")
    lowered = message.lower()
    if any(sign in lowered for sign in _REFUSED):
        return refused(host, what, message)
    for signs, state, then in _STATES:
        if any(sign in lowered for sign in signs):
            return SchedulerError(f"registry {host} {state}: could not {what} ({message})", then=then)
    return SchedulerError(
        f"could not {what} ({message})", then=f"see the container engine's log and that of registry {host}"
    )


def no_engine(address: str, message: str) -> MissingToolError:
    """Docker isn't there, or not for this user."""
    if "permission denied" in message.lower():
        return MissingToolError(
            f"you may not use Docker at {address} (permission denied)",
            then="ask to be added to the group that owns it, or set DOCKER_HOST",
        )
    return MissingToolError(
        f"Docker doesn't answer at {address} ({message})", then="start Docker, install Podman, or set DOCKER_HOST"
    )
