"""Names of images, registries and architectures, as Docker reads them; the user's logins, never printed or kept."""

import dataclasses
import ipaddress
import json
import os
import re
import warnings
from pathlib import Path

import docker.auth
import docker.credentials.errors
import docker.errors

from gpubench.errors import MissingToolError, PlanRefusedError, UsageError

HUB = "docker.io"
_HUB_API = "registry-1.docker.io"
_HUB_NAMES = (HUB, "index.docker.io", _HUB_API)
# The grammar of github.com/distribution/reference.
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d+)?")
_LOGIN = re.compile(r"[^/]*@(?=[^/]*/)")
"""``USER:PASSWORD@`` of an address: nobody's to print."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le"}


@dataclasses.dataclass(frozen=True)
class Repository:
    """A repository of a registry.

    Args:
        host: with its port, ``docker.io`` for Docker's own.
        path: below the host, with the ``library/`` that Docker adds to short names of its own registry.
        scheme: ``http`` or ``https``.
    """

    host: str
    path: str
    scheme: str

    @staticmethod
    def parse(text: str) -> "Repository":
        """``[http://|https://]HOST[:PORT]/REPOSITORY``; a name without a host is Docker's own registry.

        Without a scheme this machine itself is asked over http and any other over https, as Docker does it.

        Raises:
            UsageError: no such name is possible.
        """
        scheme, _, name = text.rpartition("://")
        host, slash, repository = name.partition("/")
        if not slash or not ("." in host or ":" in host or host == "localhost"):
            host, repository = HUB, name
        if host in _HUB_NAMES:
            host = HUB
            repository = repository if "/" in repository else f"library/{repository}"
        if scheme not in ("", "http", "https") or not _HOST.fullmatch(host) or not _REPOSITORY.fullmatch(repository):
            raise UsageError(
                f"'{_LOGIN.sub('', text)}' is no repository of a registry",
                then="write HOST[:PORT]/REPOSITORY, in lower case; logins are docker login's",
            )
        return Repository(host, repository, scheme or ("http" if is_loopback(host) else "https"))

    @property
    def name(self) -> str:
        return f"{self.host}/{self.path}"

    @property
    def api(self) -> str:
        return f"{self.scheme}://{_HUB_API if self.host == HUB else self.host}/v2/"

    def at(self, reference: str) -> str:
        """``NAME:TAG`` or ``NAME@sha256:…``."""
        return f"{self.name}{'@' if is_digest(reference) else ':'}{reference}"


def split_reference(reference: str) -> tuple[str, str]:
    """``NAME:TAG`` or ``NAME@sha256:…`` → name and tag or digest; the tag is empty where none is given."""
    name, at, digest = reference.partition("@")
    if at:
        return name, digest
    head, colon, tag = reference.rpartition(":")
    # The colon of HOST:PORT/NAME is no tag's.
    return (head, tag) if colon and "/" not in tag else (reference, "")


def is_digest(text: str) -> bool:
    """Whether it is ``sha256:…`` rather than a tag."""
    return _DIGEST.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Whether ``HOST[:PORT]`` is this machine itself."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def docker_architecture(uname: str) -> str:
    """``x86_64`` → ``amd64``: what Docker calls what ``uname -m`` says."""
    return _ARCHITECTURES.get(uname, uname)


def uname_architecture(docker: str) -> str:
    """``amd64`` → ``x86_64``."""
    return next((uname for uname, name in _ARCHITECTURES.items() if name == docker), docker)


def require_architecture(architecture: str, expected: str, what: str) -> None:
    """Refuse an image of another architecture; both as ``uname -m`` says them, ``what`` names the image.

    Raises:
        PlanRefusedError: they differ.
    """
    if architecture != expected:
        raise PlanRefusedError(
            f"{what} is for {architecture}, the site's nodes are {expected}",
            then="use a base image of that architecture, or correct image.architecture of the site",
        )


@dataclasses.dataclass(frozen=True)
class Credentials:
    """A login: a user with a password, or a token that is exchanged for one."""

    user: str
    password: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)


def config_file() -> Path:
    """Where ``docker login`` keeps logins."""
    return Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"


def _podman_logins() -> Path:
    """Where ``podman login`` keeps logins, in Docker's format (containers-auth.json(5))."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return Path(os.environ.get("REGISTRY_AUTH_FILE") or f"{runtime}/containers/auth.json")


def find_credentials(host: str) -> Credentials | None:
    """The login to ``HOST[:PORT]`` by ``docker login``, else by ``podman login``, if there is one.

    Raises:
        MissingToolError: the configuration or its credential helper is broken.
    """
    # A missing helper is told by the error alone.
    warnings.filterwarnings("ignore", message="docker-credential-", category=UserWarning)
    try:
        entry = docker.auth.resolve_authconfig(docker.auth.load_config(), host)
        if not entry and _podman_logins().is_file():
            entry = docker.auth.resolve_authconfig(docker.auth.load_config(str(_podman_logins())), host)
    except (docker.credentials.errors.StoreError, docker.errors.InvalidConfigFile, json.JSONDecodeError, KeyError):
        raise broken_logins() from None
    except docker.errors.DockerException as error:
        if str(error).startswith("Credentials store error"):
            raise broken_logins() from None
        raise
    # Docker's file and its helpers spell the keys differently.
    credentials = {key.lower(): value for key, value in (entry or {}).items() if value}
    if not credentials.get("username") and not credentials.get("identitytoken"):
        return None
    return Credentials(
        credentials.get("username", ""), credentials.get("password", ""), credentials.get("identitytoken", "")
    )


def broken_logins() -> MissingToolError:
    # Their own messages may quote what a helper printed.
    return MissingToolError(
        f"Docker's logins can't be read: {config_file()} or the credential helper that it names is broken",
        then="repair or remove it, then docker login",
    )
