"""The user's logins to registries, from Docker's configuration or its credential helper; never printed, never kept."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from pathlib import Path

import docker.auth
import docker.credentials.errors
import docker.errors

from gpubench.errors import MissingToolError


@dataclasses.dataclass(frozen=True)
class Credentials:
    """A login: a user with a password, or a token that is exchanged for one."""

    user: str
    password: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)


def config_file() -> Path:
    """Where ``docker login`` keeps logins."""
    return Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"


def find_credentials(host: str) -> Credentials | None:
    """The login to ``HOST[:PORT]``, if there is one.

    Raises:
        MissingToolError: the configuration or its credential helper is broken.
    """
    # A missing helper is told by the error alone.
    warnings.filterwarnings("ignore", message="docker-credential-", category=UserWarning)
    try:
        entry = docker.auth.resolve_authconfig(docker.auth.load_config(), host)
    except (docker.credentials.errors.StoreError, docker.errors.InvalidConfigFile, json.JSONDecodeError, KeyError):
        raise broken_logins() from None
    except docker.errors.DockerException as error:
        if str(error).startswith("Credentials store error"):
            raise broken_logins() from None
        raise
    # Docker's file and its helpers spell the keys differently.
    known = {key.lower(): value for key, value in (entry or {}).items() if value}
    if not known.get("username") and not known.get("identitytoken"):
        return None
    return Credentials(known.get("username", ""), known.get("password", ""), known.get("identitytoken", ""))


def broken_logins() -> MissingToolError:
    """The configuration or its credential helper is broken."""
    # Their own messages may quote what a helper printed.
    return MissingToolError(
        f"Docker's logins can't be read: {config_file()} or the credential helper that it names is broken",
        then="mend or remove it, then docker login",
    )
