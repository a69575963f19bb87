"""Passwords in what a user writes are refused: they would stand in every plan, record and report."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpubench.errors import UsageError

# A token is often the user of a web address; the user of another one (ssh://git@...) is none.
_LOGIN = re.compile(r"https?://[^/\s@]+@|\w://[^/\s@:]*:[^/\s@]+@", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/\s]+@")
_OPTION = re.compile(r"([?&;]\w*(?:pass|pwd|secret|token|key)\w*=)[^&;\s]+", re.IGNORECASE)
_LOGIN_OF_REFERENCE = re.compile(r"^[^/\s@]*:[^\s@]*@(?!sha256:)")
_ASSIGNMENT = re.compile(r"(?:^|[\s,=])([A-Z_][A-Z0-9_]*)=([^\s,]+)")
_SECRET = re.compile(r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIALS?)$", re.IGNORECASE)
_OFTEN_SECRET = re.compile(r"(?:^|_)(?:PASS|TOKEN|(?:API)?KEY)$", re.IGNORECASE)
_PATH = re.compile(r"/|~|\.\.?/")
_SETTING = re.compile(r"\d+|0x[0-9a-f]+|true|false|yes|no|on|off|y|n|none|auto", re.IGNORECASE)
THEN = "leave it out; registries: docker login (enroot: its .credentials file); others: a variable with a file's path"


def is_secret(name: str, value: str) -> bool:
    """Whether an environment variable holds a password by its name; the path of a file with one is none.

    ``..._TOKEN`` and ``..._KEY`` may also be settings: numbers and words like ``auto`` are.
    """
    if not value or _PATH.match(value):
        return False
    return bool(_SECRET.search(name) or (_OFTEN_SECRET.search(name) and not _SETTING.fullmatch(value)))


def holds_secret(text: str) -> bool:
    """Whether a text holds a login of an address, or sets a variable that ``is_secret``."""
    return bool(_LOGIN.search(text)) or any(is_secret(*match.groups()) for match in _ASSIGNMENT.finditer(text))


def holds_login(reference: str) -> bool:
    """Whether a registry or the name of an image begins with ``USER:PASSWORD@``."""
    return bool(_LOGIN.search(reference) or _LOGIN_OF_REFERENCE.match(reference))


def without_login(text: str) -> str:
    """The text with ``***`` for the login of each address in it, and for each password among an address's options.

    ``postgresql://me:word@host/db`` becomes ``postgresql://***@host/db``.
    """
    return _OPTION.sub(r"\1***", _USER_INFO.sub("***@", text))


def secrets(plain: Mapping[str, Any], at: Callable[[str], str]) -> list[UsageError]:
    """The refusal of every text of a file that holds one, which the message doesn't; ``at`` is the place of a key."""
    return [
        password_in(f"{at('.'.join(path))}: '{'.'.join(path)}'")
        for path, text in texts(plain)
        if holds_secret(text) or ("env" in path[:-1] and is_secret(path[-1], text))
    ]


def password_in(where: str) -> UsageError:
    """The refusal of what ``where`` names."""
    return UsageError(f"{where} holds a password, which would be stored in every plan and report", then=THEN)


def texts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in plain data, with the keys that lead to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from texts(inner, (*path, str(key)))
