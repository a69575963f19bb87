"""What a registry has, asked over its API: for login nodes without Docker. Deadlines, repetitions, logins."""

import dataclasses
import difflib
import functools
import hashlib
import re
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import requests
import requests.auth
import urllib3
import urllib3.exceptions

from gpubench.errors import DataError, PlanRefusedError, SchedulerError
from gpubench.images.docker import archive
from gpubench.images.docker.failures import cause, refused
from gpubench.images.docker.names import (
    Credentials,
    Repository,
    docker_architecture,
    find_credentials,
    is_digest,
    is_loopback,
    uname_architecture,
)
from gpubench.node.spec.plain import parse_json

_PARAMETER = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_CLIENT = "gpubench"

Send = Callable[..., requests.Response]
"""``send(method, url, **options)``, with the deadlines of the transport."""

ATTEMPTS = 5
SILENCE_S = (10.0, 30.0)
"""To connect, and between two pieces of an answer."""
WHOLE_S = 120.0
"""For one whole answer: a registry that sends a byte now and then is too slow, too."""
LONGEST_PAUSE_S = 30.0
_AGAIN = (408, 429, 500, 502, 503, 504)
_PIECE = 1 << 16
LARGEST_DOCUMENT = 8 << 20
LARGEST_LAST_LAYER = 16 << 20
"""Bytes: the last layer of our images holds the manifest alone."""
_LISTS = ("application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.oci.image.index.v1+json")
_SINGLES = ("application/vnd.docker.distribution.manifest.v2+json", "application/vnd.oci.image.manifest.v1+json")
_ACCEPT = ", ".join((*_SINGLES, *_LISTS))


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
    """``WWW-Authenticate`` → the scheme in lower case and its parameters.

    Of several challenges, a registry's first one counts: a password never goes to the realm of another one.
    """
    scheme, _, rest = header.strip().partition(" ")
    parameters: dict[str, str] = {}
    for key, value in _PARAMETER.findall(rest):
        parameters.setdefault(key.lower(), re.sub(r"\\(.)", r"\1", value))
    return scheme.lower(), parameters


def log_in(challenge: str, repository: Repository, login: Credentials | None, send: Send) -> requests.auth.AuthBase:
    """What answers a registry's 401.

    Raises:
        SchedulerError: no login helps.
        requests.RequestException: the token's server fails; trying again may help.
    """
    scheme, parameters = parse_challenge(challenge)
    if scheme == "bearer":
        return Header(f"Bearer {_token(parameters, repository, login, send)}")
    if scheme != "basic":
        raise refused(repository.host, f"show {repository.path}", f"401, asks for '{scheme}'")
    if login is None or login.token:
        raise refused(repository.host, f"show {repository.path}", "401, it wants a login")
    return requests.auth.HTTPBasicAuth(login.user.encode(), login.password.encode())


def _token(parameters: dict[str, str], repository: Repository, login: Credentials | None, send: Send) -> str:
    realm = parameters.get("realm", "")
    plain_text = realm.startswith("http://") and not is_loopback(realm[7:].partition("/")[0])
    if not realm.startswith("https://") and (
        repository.scheme == "https" or not realm.startswith("http://") or plain_text
    ):
        raise SchedulerError(
            f"registry {repository.host} sends logins to '{realm}', which isn't encrypted",
            then="tell its administrator",
        )
    fields = {
        "service": parameters.get("service", ""),
        "scope": parameters.get("scope") or f"repository:{repository.path}:pull",
    }
    answer = _ask(realm, fields, login, send)
    if answer.status_code in (400, 401, 403):
        raise refused(repository.host, f"show {repository.path}", f"{answer.status_code} from {realm}")
    answer.raise_for_status()
    return _read(answer, realm)


def _ask(realm: str, fields: dict[str, str], login: Credentials | None, send: Send) -> requests.Response:
    if login is not None and login.token:
        form = {**fields, "grant_type": "refresh_token", "refresh_token": login.token, "client_id": _CLIENT}
        # Another address, to which the realm would send it on, gets no token.
        return send("POST", realm, data=form, auth=Header(), allow_redirects=False)
    if login is None:
        return send("GET", realm, params=fields, auth=Header())
    auth = requests.auth.HTTPBasicAuth(login.user.encode(), login.password.encode())
    return send("GET", realm, params={**fields, "account": login.user}, auth=auth)


def _read(answer: requests.Response, realm: str) -> str:
    try:
        document: dict[str, Any] = answer.json()
        return str(document.get("token") or document["access_token"])
    except (ValueError, KeyError, AttributeError, requests.RequestException):
        raise SchedulerError(f"{realm} gave no token ({answer.status_code})", then="run it again later") from None


@dataclasses.dataclass(frozen=True)
class RegistryResponse:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Patience(urllib3.Retry):
    """Pauses between attempts: as long as the registry asks for, but at most LONGEST_PAUSE_S; else ever longer ones."""

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds; 0 for what is no time."""
        try:
            return min(super().parse_retry_after(retry_after), LONGEST_PAUSE_S)
        except urllib3.exceptions.InvalidHeader:
            return 0.0


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer's digest, its size in bytes as it is stored, and its media type."""

    digest: str
    size: int
    media_type: str


@dataclasses.dataclass(frozen=True)
class FoundImage:
    """An image in a registry.

    Args:
        reference: how runtimes name it, ``HOST/REPOSITORY@sha256:…``.
        digest: what the tag means now; of the list, where the tag names a list of architectures.
        labels: of the image.
        architecture: as ``uname -m`` says it.
        config: digest of the image's configuration, which is the image's id in a Docker engine.
        layers: from the base up.
    """

    reference: str
    digest: str
    labels: Mapping[str, str]
    architecture: str
    config: str
    layers: tuple[Layer, ...]


class Registry:
    """One repository. Raises UsageError: ``name`` is no ``HOST[:PORT]/REPOSITORY``."""

    def __init__(self, name: str) -> None:
        self.repository = Repository.parse(name)
        self._session: requests.Session
        self._auth: requests.auth.AuthBase = Header()

    def tags(self) -> list[str]:
        """Every tag, sorted. Raises SchedulerError: no such repository, or a registry that is down, slow or refuses."""
        names: set[str] = set()
        path = f"{self.repository.path}/tags/list?n=1000"
        while path:
            answer = self._get(path, f"list the tags of {self.repository.name}")
            if answer.status == 404:
                raise SchedulerError(
                    f"registry {self.repository.host} has no repository {self.repository.path}",
                    then="push an image there first, or correct image.registry of the site",
                )
            names.update(_json(answer, self.repository.name).get("tags") or ())
            path = _next_page(answer.headers.get("Link", ""))
        return sorted(names)

    def resolve(self, reference: str, *, architecture: str = "") -> FoundImage:
        """What a tag or a digest means; ``architecture``, as ``uname -m`` says it, is the wanted one, empty means any.

        Raises:
            SchedulerError: no such tag (names the nearest), or a registry that is down, slow or refuses.
            PlanRefusedError: there is no image of that architecture.
            DataError: what the registry sends isn't what its digest says.
        """
        name = self.repository.at(reference)
        answer = self._manifest(reference)
        digest = _digest(answer.body)
        declared = answer.headers.get("Docker-Content-Digest", digest)
        if digest != declared or (is_digest(reference) and digest != reference):
            raise _damaged(name)
        manifest = _json(answer, name)
        if "manifests" in manifest:
            manifest = self._chosen(manifest["manifests"], architecture, name)
        if "config" not in manifest or "layers" not in manifest:
            raise DataError(f"{name} is no image that Docker 1.10 or newer wrote", then="push it again")
        return self._image(manifest, digest, architecture, name)

    def last_layer_file(self, image: FoundImage, path: str) -> bytes:
        """A small file of the last layer.

        Raises:
            DataError: it isn't there, or the layer is larger than LARGEST_LAST_LAYER or compressed unlike Docker's.
            SchedulerError: a registry that is down, slow or refuses.
        """
        if not image.layers:
            raise DataError(f"{image.reference} has no layers")
        layer = image.layers[-1]
        if layer.size > LARGEST_LAST_LAYER or layer.media_type.endswith("zstd"):
            raise DataError(
                f"the last layer of {image.reference} doesn't hold {path} alone", then="was it built by gpubench?"
            )
        blob = self._blob(layer.digest, LARGEST_LAST_LAYER, image.reference)
        return archive.member((blob,), path, what=f"the last layer of {image.reference}")

    def _chosen(self, rows: list[dict[str, Any]], architecture: str, name: str) -> dict[str, Any]:
        """The manifest of the wanted architecture; what isn't for Linux (signatures, attestations) is no image."""
        images = {
            row["platform"]["architecture"]: row["digest"]
            for row in rows
            if (row.get("platform") or {}).get("os") == "linux"
        }
        chosen_architecture = docker_architecture(architecture) if architecture else next(iter(images), "")
        if chosen_architecture not in images:
            raise _other_architecture(name, architecture, images)
        answer = self._manifest(images[chosen_architecture])
        if _digest(answer.body) != images[chosen_architecture]:
            raise _damaged(name)
        return _json(answer, name)

    def _image(self, manifest: dict[str, Any], digest: str, architecture: str, name: str) -> FoundImage:
        config = manifest["config"]["digest"]
        document = parse_json(self._blob(config, LARGEST_DOCUMENT, name))
        if architecture and document.get("architecture") != docker_architecture(architecture):
            raise _other_architecture(name, architecture, [document.get("architecture", "unknown")])
        return FoundImage(
            reference=self.repository.at(digest),
            digest=digest,
            labels=(document.get("config") or {}).get("Labels") or {},
            architecture=uname_architecture(document.get("architecture", "")),
            config=config,
            layers=tuple(Layer(row["digest"], row["size"], row.get("mediaType", "")) for row in manifest["layers"]),
        )

    def _manifest(self, reference: str) -> RegistryResponse:
        name = self.repository.at(reference)
        answer = self._get(f"{self.repository.path}/manifests/{reference}", f"look up {name}", accept=_ACCEPT)
        if answer.status == 404:
            near = ", ".join(difflib.get_close_matches(reference, self.tags(), n=3, cutoff=0.5))
            raise SchedulerError(
                f"registry {self.repository.host} has no {name}", then=f"nearest: {near}" if near else ""
            )
        if answer.status != 200:
            raise SchedulerError(f"registry {self.repository.host} doesn't show {name} (status {answer.status})")
        return answer

    def _blob(self, digest: str, limit: int, name: str) -> bytes:
        path = f"{self.repository.path}/blobs/{digest}"
        answer = self._get(path, f"fetch a part of {name}", limit=limit)
        if answer.status != 200:
            raise SchedulerError(
                f"registry {self.repository.host} has lost a part of {name} (status {answer.status})",
                then="push it again",
            )
        if _digest(answer.body) != digest:
            raise _damaged(name)
        return answer.body

    def _get(self, path: str, what: str, *, limit: int = LARGEST_DOCUMENT, accept: str = "*/*") -> RegistryResponse:
        """The answer to ``PATH`` below ``/v2/``: any but 401, 403, 429 and 5xx. ``what`` completes "could not …".

        Raises:
            SchedulerError: refused, down, overloaded, too slow, or an answer of more than ``limit`` bytes.
        """
        # One session per request, closed after it: a login node's front end asks a handful, and none may keep a socket.
        with requests.Session() as self._session:
            # A proxy of the environment is for other machines.
            self._session.trust_env = not is_loopback(self.repository.host)
            return self._attempts(functools.partial(self._response, path, limit, accept), path, what)

    def _attempts(self, ask: Callable[[], RegistryResponse], path: str, what: str) -> RegistryResponse:
        left: urllib3.Retry = _Patience(total=ATTEMPTS - 1, backoff_factor=0.5, backoff_max=LONGEST_PAUSE_S)
        while True:
            response = None
            try:
                answer = self._logged_in(ask, what)
                if answer.status not in _AGAIN:
                    return answer
                why, response = f"status {answer.status}", urllib3.HTTPResponse(headers=answer.headers)
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                slow = isinstance(error, requests.Timeout) or "timed out" in str(error).lower()
                why = "too slow" if slow else cause(error)
            try:
                left = left.increment("GET", path)
            except urllib3.exceptions.MaxRetryError:
                state = {"too slow": "is too slow", "status 429": "is overloaded"}.get(why, "doesn't answer")
                raise SchedulerError(
                    f"registry {self.repository.host} {state}: could not {what} ({why}, {ATTEMPTS} attempts)",
                    then="check its name and the network, and run it again",
                ) from None
            left.sleep(response)

    def _logged_in(self, ask: Callable[[], RegistryResponse], what: str) -> RegistryResponse:
        """One attempt; a login is made, or renewed when its time was over."""
        answer = ask()
        if answer.status == 401:
            login = find_credentials(self.repository.host)
            self._auth = log_in(answer.headers.get("WWW-Authenticate", ""), self.repository, login, self._send)
            answer = ask()
        if answer.status in (401, 403):
            raise refused(self.repository.host, what, str(answer.status))
        return answer

    def _response(self, path: str, limit: int, accept: str) -> RegistryResponse:
        deadline = time.monotonic() + WHOLE_S
        url = self.repository.api + path
        # The bytes as they are stored: it is them that a digest is of.
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        with self._send("GET", url, headers=headers, auth=self._auth, stream=True) as answer:
            body = bytearray()
            # Whatever has come: `iter_content` would wait for a whole piece, however slowly it comes.
            while piece := answer.raw.read1(_PIECE):
                body += piece
                if len(body) > limit:
                    raise SchedulerError(f"registry {self.repository.host} sends more than {limit} bytes for {path}")
                if time.monotonic() > deadline:
                    raise requests.Timeout
            return RegistryResponse(answer.status_code, answer.headers, bytes(body))

    def _send(self, method: str, url: str, **options: Any) -> requests.Response:
        return self._session.request(method, url, timeout=SILENCE_S, **options)


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _json(answer: RegistryResponse, name: str) -> dict[str, Any]:
    try:
        document = parse_json(answer.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise DataError(f"what answers for {name} is no registry", then="check image.registry of the site")
    return document


def _damaged(name: str) -> DataError:
    return DataError(f"the registry's bytes of {name} aren't those of its digest", then="push it again")


def _other_architecture(name: str, architecture: str, architectures: Iterable[str]) -> PlanRefusedError:
    have = ", ".join(uname_architecture(available) for available in architectures) or "no image"
    return PlanRefusedError(
        f"{name} isn't there for {architecture} (there is: {have})", then="build and push it for that architecture"
    )


def _next_page(link: str) -> str:
    """``Link: </v2/NAME/tags/list?last=…>; rel="next"`` → the path below ``/v2/``, always on the same host."""
    target, _, rest = link.partition(">")
    if 'rel="next"' not in rest:
        return ""
    parts = urllib.parse.urlsplit(target.lstrip("< "))
    return f"{parts.path.partition('/v2/')[2]}?{parts.query}"
