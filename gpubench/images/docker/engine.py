"""The container engine, Docker's or Podman's, as far as images need it: images, pushes and pulls over Docker's API."""

import contextlib
import functools
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import docker.errors
import docker.utils
import requests
from docker.context.config import get_current_context_name

import docker
import docker.context
from gpubench.errors import MissingToolError, SchedulerError
from gpubench.files import temporary_directory
from gpubench.images.docker import archive
from gpubench.images.docker.failures import ENGINE_ERRORS, as_one_line, cause, engine_failure, no_engine, reason
from gpubench.images.docker.names import (
    Repository,
    find_credentials,
    is_digest,
    require_architecture,
    split_reference,
    uname_architecture,
)
from gpubench.images.process import die_with_parent
from gpubench.polling import poll_until

CALL_S = 60
"""For an answer that needs no work."""
SILENCE_S = 300
"""Between two messages of a push or a pull."""
PODMAN_START_S = 60.0
_DEFAULT = "unix:///var/run/docker.sock"
# Docker's and Podman's names of images that were only built here.
_NO_REGISTRY = ("<none>", "localhost/")
# Docker tells the digest apart, too; Podman only so.
_PUSHED = re.compile(r"digest: (sha256:[0-9a-f]{64}) size: \d+$")
_log = logging.getLogger(__name__)


class _StreamClient(docker.APIClient):
    """A client for one long answer. Its ``timeout`` bounds every silence, also where the SDK would wait forever."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        return super().send(request, **{**options, "timeout": options.get("timeout") or self.timeout})


class Engine:
    """A connection to an engine that answers; may be used by several threads at once. ``with`` closes it."""

    def __init__(self, address: Mapping[str, Any], resources: contextlib.ExitStack) -> None:
        self._address = address
        self._api = docker.APIClient(**address, timeout=CALL_S)
        self._resources = resources
        resources.callback(self._api.close)
        self._api.ping()

    @staticmethod
    def connect() -> "Engine":
        """The engine that the ``docker`` command would use; where none is named and Docker doesn't answer, Podman's.

        Raises:
            MissingToolError: it doesn't answer, or this user may not use it.
        """
        address: dict[str, Any] = {}
        resources = contextlib.ExitStack()
        try:
            address.update(docker.utils.kwargs_from_env())
            if "base_url" not in address:
                address = {**docker.context.ContextAPI.kwargs_from_context(), **address}
            return Engine(address, resources)
        except (*ENGINE_ERRORS, ValueError) as error:
            resources.close()
            if _is_named() or not shutil.which("podman"):
                raise no_engine(str(address.get("base_url", _DEFAULT)), cause(error)) from None
        _log.info("Docker doesn't answer; Podman is used")
        return Engine({"base_url": resources.enter_context(_podman_service())}, resources)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self._address["base_url"])

    def is_podman(self) -> bool:
        """Whether it is Podman, which speaks Docker's API."""
        with _failing("tell what it is"):
            components = self._api.version().get("Components") or ()
            return any(component["Name"].startswith("Podman") for component in components)

    def tag(self, image: str, tag: str) -> None:
        """Name an image ``REPOSITORY:TAG``."""
        name, word = split_reference(tag)
        with _failing(f"tag image {tag}"):
            self._api.tag(image, name, word)

    def push(self, image: str, name: str, tag: str) -> str:
        """Push as ``REPOSITORY:TAG`` and return the registry's digest, ``sha256:…``.

        Raises:
            SchedulerError: the registry is down, refuses, is full or slow.
        """
        repository = Repository.parse(name)
        reference = repository.at(tag)
        self.tag(image, reference)
        options: dict[str, Any] = {"stream": True, "decode": True, "auth_config": _auth(repository.host)}
        push = functools.partial(docker.APIClient.push, repository=repository.name, tag=tag, **options)
        if digest := self._transfer(push, f"push {reference}", repository.host):
            return digest
        raise SchedulerError(f"could not push {reference}: Docker ended without a digest", then="run it again")

    def pull(self, reference: str) -> str:
        """Fetch ``HOST/REPOSITORY@sha256:…`` (or ``:TAG``) and return the image's id.

        Raises:
            SchedulerError: the registry is down, refuses, or hasn't got it.
            MissingToolError: the disk is full.
        """
        name, word = split_reference(reference)
        repository = Repository.parse(name)
        options: dict[str, Any] = {"stream": True, "decode": True, "auth_config": _auth(repository.host)}
        pull = functools.partial(docker.APIClient.pull, repository=repository.name, tag=word, **options)
        self._transfer(pull, f"pull {reference}", repository.host)
        return str(self._inspect(repository.at(word))["Id"])

    def read_file(self, image: str, path: str) -> bytes:
        """The content of a small file of an image, which isn't started.

        Raises:
            DataError: the image has no such file.
            MissingToolError: there is no such image.
        """
        with _failing(f"read {path} of image {image}"):
            container = self._api.create_container(image, command=["-"], network_disabled=True)["Id"]
            try:
                chunks, _ = self._api.get_archive(container, path)
                return archive.member(chunks, path.rpartition("/")[2], what=f"image {image}")
            except docker.errors.NotFound:
                raise archive.missing(path, f"image {image}") from None
            finally:
                self._api.remove_container(container, force=True, v=True)

    def digests(self, image: str) -> Sequence[str]:
        """What registries know it as, ``HOST/REPOSITORY@sha256:…``."""
        names: Sequence[str] = self._inspect(image).get("RepoDigests") or ()
        return [name for name in names if not name.startswith(_NO_REGISTRY)]

    def architecture(self, image: str) -> str:
        """As ``uname -m`` says it."""
        return uname_architecture(str(self._inspect(image)["Architecture"]))

    def has(self, image: str) -> bool:
        """Whether the engine has an image of this name, digest or id."""
        with _failing(f"find image {image}"):
            try:
                self._api.inspect_image(image)  # type: ignore[no-untyped-call]
            except docker.errors.ImageNotFound:
                return False
        return True

    def ensure(self, reference: str) -> None:
        """Pull the image unless the engine has it; raises as ``pull``, MissingToolError for a local id that is gone."""
        if self.has(reference):
            return
        if is_digest(reference):
            raise MissingToolError(
                f"image {reference} is no longer in the local engine, and was pushed nowhere",
                then="build it again with gpubench images build, and plan again",
            )
        self.pull(reference)

    def pin(self, reference: str, architecture: str) -> str:
        """The name that always means what ``reference`` means now: by digest, of an image without one by its id.

        Raises:
            PlanRefusedError: an image that only this engine has, for another ``architecture`` (as ``uname -m`` does).
            MissingToolError, SchedulerError: as ``pull``.
        """
        self.ensure(reference)
        if digests := self.digests(reference):
            return digests[0]
        image = self._inspect(reference)
        require_architecture(uname_architecture(image["Architecture"]), architecture, f"base image {reference}")
        return str(image["Id"])

    def _inspect(self, image: str) -> dict[str, Any]:
        with _failing(f"find image {image}"):
            return dict(self._api.inspect_image(image))  # type: ignore[no-untyped-call]

    def _transfer(self, begin: Callable[[docker.APIClient], Iterable[dict[str, Any]]], what: str, host: str) -> str:
        """A push to, or a pull from, registry ``host``, and the digest if it is told; ``what`` completes "could not …".

        Raises:
            SchedulerError: the registry failed.
            MissingToolError: the engine failed.
        """
        client = _StreamClient(**self._address, version=self._api.api_version, timeout=SILENCE_S)
        digest = ""
        try:
            for message in begin(client):
                if "error" in message:
                    raise engine_failure(what, as_one_line(str(message["error"])), host)
                if match := _PUSHED.search(str(message.get("status", ""))):
                    digest = match[1]
        except ENGINE_ERRORS as error:
            raise engine_failure(what, reason(error), host) from None
        finally:
            client.close()
        return digest


def _is_named() -> bool:
    """Whether the user names an engine, by DOCKER_HOST or by a context of the ``docker`` command."""
    context = os.environ.get("DOCKER_CONTEXT") or get_current_context_name()
    return bool(os.environ.get("DOCKER_HOST")) or context != "default"


def _auth(host: str) -> dict[str, str]:
    """The login to a registry as Docker's API takes it."""
    login = find_credentials(host)
    if login is None:
        return {}
    return {"identitytoken": login.token} if login.token else {"username": login.user, "password": login.password}


@contextlib.contextmanager
def _failing(what: str) -> Iterator[None]:
    try:
        yield
    except ENGINE_ERRORS as error:
        raise engine_failure(what, reason(error)) from None


def find_podman() -> str:
    """The path of Podman. Raises MissingToolError: it isn't installed."""
    program = shutil.which("podman")
    if program is None:
        raise MissingToolError("podman, whose engine is to build images, is not installed", then="install it here, too")
    return program


@contextlib.contextmanager
def _podman_service() -> Iterator[str]:
    """The address of this user's Podman (podman-system-service(1)), ``unix://…``, as long as the block lasts.

    Raises:
        MissingToolError: Podman isn't installed, or doesn't start.
    """
    program = find_podman()
    with temporary_directory("podman-service") as folder, (folder / "log").open("w+b") as log:
        socket = folder / "socket"
        command = [program, "system", "service", "--time=0", f"unix://{socket}"]
        with subprocess.Popen(die_with_parent(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
            try:
                poll_until(
                    lambda: socket.is_socket() or process.poll() is not None, interval_s=0.05, timeout_s=PODMAN_START_S
                )
                if not socket.is_socket():
                    raise MissingToolError(
                        f"podman doesn't start ({_last_line((folder / 'log').read_text(errors='replace'))})",
                        then="see what podman info says",
                    )
                yield f"unix://{socket}"
            finally:
                process.terminate()


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it says nothing")
