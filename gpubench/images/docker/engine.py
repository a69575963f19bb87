"""The Docker engine, as far as images need it: images, pushes and pulls over its API."""

import contextlib
import dataclasses
import datetime as dt
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import docker.errors
import docker.utils
import requests
import urllib3.exceptions

import docker
import docker.context
from gpubench.errors import GpubenchError, InterruptedByUserError, MissingToolError, SchedulerError
from gpubench.images.docker import archive
from gpubench.images.docker.failures import ENGINE_ERRORS, cause, engine_failure, no_engine, one_line, reason, too_slow
from gpubench.images.docker.names import (
    Repository,
    find_credentials,
    is_digest,
    split_reference,
    uname_architecture,
)

Cancelled = Callable[[], bool]
"""Asked a few times a second from another thread; True ends what is under way."""

_LOOK_S = 0.1

_DONE = ("Pushed", "Layer already exists", "Mounted from")
CALL_S = 60
"""For an answer that needs no work."""
SILENCE_S = 300
"""Between two messages of a push or a pull."""
_DEFAULT = "unix:///var/run/docker.sock"


class StreamClient(docker.APIClient):
    """A client for one long answer. Its ``timeout`` bounds every silence, also where the SDK would wait forever."""

    answer: requests.Response | None = None

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send one request, and remember its answer."""
        options["timeout"] = options.get("timeout") or self.timeout
        self.answer = super().send(request, **options)
        return self.answer

    def give_up(self) -> None:
        """Wake whoever reads the answer."""
        if self.answer is not None:
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                self.answer.raw.shutdown()


def never() -> bool:
    """The Cancelled of what can't be cancelled."""
    return False


@contextlib.contextmanager
def ending(end: Callable[[], None], cancelled: Cancelled) -> Iterator[None]:
    """While the block runs, call ``end`` when ``cancelled`` says so."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_S):
            if cancelled():
                end()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@dataclasses.dataclass(frozen=True)
class PushProgress:
    """What a push is doing, and the share of its bytes (0 to 1) that the registry has."""

    text: str
    share: float


class Layers:
    """Adds up the engine's messages about single layers."""

    def __init__(self) -> None:
        self._bytes: dict[str, tuple[float, float]] = {}
        self._done: dict[str, bool] = {}

    def note(self, message: dict[str, Any]) -> PushProgress | None:
        """The progress after one message of the engine, None where it isn't about a layer."""
        layer, status = message.get("id", ""), str(message.get("status", ""))
        if not layer or not status:
            return None
        self._done[layer] = status.startswith(_DONE)
        detail = message.get("progressDetail") or {}
        if total := float(detail.get("total", 0)):
            # What is on the wire may be more than the engine foresaw.
            self._bytes[layer] = (min(float(detail.get("current", 0)), total), total)
        elif self._done[layer] and layer in self._bytes:
            self._bytes[layer] = (self._bytes[layer][1],) * 2
        text = f"pushing, {sum(self._done.values())} of {len(self._done)} layers done"
        if status.startswith("Retrying"):
            text += "; the registry failed, trying again"
        total = sum(total for _, total in self._bytes.values())
        return PushProgress(text, sum(sent for sent, _ in self._bytes.values()) / total if total else 0.0)


@dataclasses.dataclass(frozen=True)
class LocalImage:
    """An image in the engine. ``created`` in UTC; ``digests`` as registries know it, ``HOST/REPOSITORY@sha256:…``."""

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str]
    created: dt.datetime
    digests: tuple[str, ...]


class Engine:
    """A connection to an engine that answers; may be used by several threads at once. ``with`` closes it."""

    def __init__(self, client: docker.APIClient, address: Mapping[str, Any]) -> None:
        self._api = client
        self._address = address

    @staticmethod
    def connect() -> "Engine":
        """The engine that the ``docker`` command would use: DOCKER_HOST, else its current context.

        Raises:
            MissingToolError: it doesn't answer, or this user may not use it.
        """
        address: dict[str, Any] = {}
        try:
            address.update(docker.utils.kwargs_from_env())
            if "base_url" not in address:
                address = {**docker.context.ContextAPI.kwargs_from_context(), **address}
            client = docker.APIClient(**address, timeout=CALL_S)
            client.ping()
        except (*ENGINE_ERRORS, ValueError) as error:
            raise no_engine(str(address.get("base_url", _DEFAULT)), cause(error)) from None
        return Engine(client, address)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self._api.close()

    def tag(self, image: str, tag: str) -> None:
        """Name an image ``REPOSITORY:TAG``."""
        name, word = split_reference(tag)
        with _failing(f"tag image {tag}"):
            self._api.tag(image, name, word)

    def push(
        self,
        image: str,
        name: str,
        tag: str,
        on_progress: Callable[[PushProgress], None],
        cancelled: Cancelled = never,
    ) -> str:
        """Push as ``REPOSITORY:TAG`` and return the registry's digest, ``sha256:…``.

        Raises:
            SchedulerError: the registry is down, refuses, is full or slow.
            InterruptedByUserError: ``cancelled`` said so.
        """
        repository = Repository.parse(name)
        auth = _auth(repository.host)
        self.tag(image, repository.at(tag))
        layers, digest, what = Layers(), "", f"push {repository.at(tag)}"

        def begin(client: docker.APIClient) -> Iterator[dict[str, Any]]:
            yield from client.push(repository.name, tag, stream=True, decode=True, auth_config=auth)

        with contextlib.closing(self._transfer(begin, cancelled, what=what, host=repository.host)) as answers:
            for message in answers:
                digest = str((message.get("aux") or {}).get("Digest", digest))
                if progress := layers.note(message):
                    on_progress(progress)
        if not digest:
            raise SchedulerError(f"could not {what}: Docker ended without a digest", then="run it again")
        return digest

    def pull(self, reference: str) -> str:
        """Fetch ``HOST/REPOSITORY@sha256:…`` (or ``:TAG``) and return the image's id.

        Raises:
            SchedulerError: the registry is down, refuses, or hasn't got it.
            MissingToolError: the disk is full.
        """
        name, word = split_reference(reference)
        repository = Repository.parse(name)
        auth = _auth(repository.host)

        def begin(client: docker.APIClient) -> Iterator[dict[str, Any]]:
            yield from client.pull(repository.name, tag=word, stream=True, decode=True, auth_config=auth)

        for _ in self._transfer(begin, never, what=f"pull {reference}", host=repository.host):
            pass
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

    def images(self, label: str) -> list[LocalImage]:
        """Every image that carries the label (``KEY`` or ``KEY=VALUE``), also those without a tag; newest first."""
        with _failing("list images"):
            rows = self._api.images(filters={"label": label})
        local_images = [
            LocalImage(
                id=row["Id"],
                tags=tuple(tag for tag in row.get("RepoTags") or () if not tag.startswith("<none>")),
                labels=row.get("Labels") or {},
                created=dt.datetime.fromtimestamp(row["Created"], dt.UTC),
                digests=tuple(digest for digest in row.get("RepoDigests") or () if not digest.startswith("<none>")),
            )
            for row in rows
        ]
        return sorted(local_images, key=lambda image: (image.created, image.id), reverse=True)

    def architecture(self, image: str) -> str:
        """As ``uname -m`` says it."""
        return uname_architecture(str(self._inspect(image)["Architecture"]))

    def has(self, image: str) -> bool:
        """Whether the engine has an image of this name, digest or id."""
        try:
            self._api.inspect_image(image)  # type: ignore[no-untyped-call]
        except docker.errors.ImageNotFound:
            return False
        except ENGINE_ERRORS as error:
            raise engine_failure(f"find image {image}", reason(error)) from None
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

    def pin(self, reference: str) -> str:
        """The name that always means what ``reference`` means now: by digest, of an image without one by its id."""
        self.ensure(reference)
        image = self._inspect(reference)
        return next(
            (digest for digest in image.get("RepoDigests") or () if not digest.startswith("<none>")), str(image["Id"])
        )

    def _inspect(self, image: str) -> dict[str, Any]:
        with _failing(f"find image {image}"):
            return dict(self._api.inspect_image(image))  # type: ignore[no-untyped-call]

    def _transfer(
        self,
        begin: Callable[[docker.APIClient], Iterator[dict[str, Any]]],
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
        client = StreamClient(**self._address, version=self._api.api_version, timeout=SILENCE_S)
        try:
            with ending(client.give_up, cancelled):
                for message in begin(client):
                    if "error" in message:
                        raise engine_failure(what, one_line(str(message["error"])), host)
                    yield message
        except (requests.Timeout, urllib3.exceptions.TimeoutError):
            if not cancelled():
                raise too_slow(what, host, SILENCE_S) from None
        except ENGINE_ERRORS as error:
            if not cancelled():
                raise engine_failure(what, reason(error), host) from None
        finally:
            if client.answer is not None:
                client.answer.close()
            client.close()
        if cancelled():
            raise InterruptedByUserError("interrupted")


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
    except GpubenchError:
        raise
    except ENGINE_ERRORS as error:
        raise engine_failure(what, reason(error)) from None
