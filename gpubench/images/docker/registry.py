"""What a registry has, asked over its API where a person asks: deadlines, repetitions, logins; no Docker is needed."""

import dataclasses
import hashlib
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import requests
import requests.adapters
import requests.auth
import urllib3
import urllib3.exceptions

from gpubench.errors import DataError, SchedulerError
from gpubench.images.docker import archive
from gpubench.images.docker.failures import cause, engine_failure, refused
from gpubench.images.docker.names import (
    Credentials,
    Repository,
    docker_architecture,
    find_credentials,
    is_digest,
    is_loopback,
)
from gpubench.node.spec.plain import parse_json

_WORD = re.compile(r'([\w-]+)(?:(=)(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?')

Auth = Callable[[requests.PreparedRequest], requests.PreparedRequest]
Send = Callable[..., requests.Response]
"""``send(method, url, **options)``, with the deadlines of the transport."""

ATTEMPTS = 5
SILENCE_S = (10.0, 30.0)
"""To connect, and between two pieces of an answer."""
LONGEST_PAUSE_S = 30.0
_AGAIN = (408, 429, 500, 502, 503, 504)
LARGEST = 16 << 20
"""Bytes of an answer: the last layer of our images holds the manifest alone."""
_LISTS = ("application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.oci.image.index.v1+json")
_SINGLES = ("application/vnd.docker.distribution.manifest.v2+json", "application/vnd.oci.image.manifest.v1+json")
_ACCEPT = ", ".join((*_SINGLES, *_LISTS))


def header(value: str = "") -> Auth:
    """Sets ``Authorization``. As an auth function, so that ~/.netrc can't replace it."""

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if value:
            request.headers["Authorization"] = value
        return request

    return sign


def parse_challenges(text: str) -> dict[str, dict[str, str]]:
    """``WWW-Authenticate`` → the parameters of each scheme; the first challenge of a scheme counts.

    No challenge gets the parameters of another: a password must not go to the realm of another one.
    """
    challenges: dict[str, dict[str, str]] = {}
    parameters: dict[str, str] = {}
    for name, equals, quoted, bare in _WORD.findall(text):
        if equals:
            parameters.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or bare)
        else:
            parameters = {}
            challenges.setdefault(name.lower(), parameters)
    return challenges


def log_in(challenge: str, repository: Repository, login: Credentials | None, send: Send) -> Auth:
    """What answers a registry's 401: a token where it gives tokens, else the password.

    Raises:
        SchedulerError: no login helps.
        requests.RequestException: the token's server fails.
    """
    challenges = parse_challenges(challenge)
    if "bearer" in challenges:
        return header(f"Bearer {_token(challenges['bearer'], repository, login, send)}")
    if "basic" not in challenges:
        raise refused(repository.host, f"show {repository.path}", f"401, asks for '{', '.join(challenges)}'")
    if login is None or login.token:
        raise refused(repository.host, f"show {repository.path}", "401, it wants a login")
    return requests.auth.HTTPBasicAuth(login.user.encode(), login.password.encode())


def _token(parameters: dict[str, str], repository: Repository, login: Credentials | None, send: Send) -> str:
    realm = parameters.get("realm", "")
    here = repository.scheme == "http" and realm.startswith("http://") and is_loopback(realm[7:].partition("/")[0])
    if not realm.startswith("https://") and not here:
        raise SchedulerError(
            f"registry {repository.host} sends logins to '{realm}', which isn't encrypted",
            then="tell its administrator",
        )
    fields = {
        "service": parameters.get("service", ""),
        "scope": parameters.get("scope") or f"repository:{repository.path}:pull",
    }
    if login is not None and login.token:
        form = {**fields, "grant_type": "refresh_token", "refresh_token": login.token, "client_id": "gpubench"}
        # Another address, to which the realm would send it on, gets no token.
        answer = send("POST", realm, data=form, auth=header(), allow_redirects=False)
    elif login is not None:
        auth = requests.auth.HTTPBasicAuth(login.user.encode(), login.password.encode())
        answer = send("GET", realm, params={**fields, "account": login.user}, auth=auth)
    else:
        answer = send("GET", realm, params=fields, auth=header())
    if answer.status_code in (400, 401, 403):
        raise refused(repository.host, f"show {repository.path}", f"{answer.status_code} from {realm}")
    try:
        answer.raise_for_status()
        document: dict[str, Any] = answer.json()
        return str(document.get("token") or document["access_token"])
    except (ValueError, KeyError, AttributeError, requests.RequestException):
        raise SchedulerError(f"{realm} gave no token ({answer.status_code})", then="run it again later") from None


class _RetryPolicy(urllib3.Retry):
    """Pauses between attempts: as long as the registry asks for, but at most LONGEST_PAUSE_S; else ever longer ones."""

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds; 0 for what is no time."""
        try:
            return min(super().parse_retry_after(retry_after), LONGEST_PAUSE_S)
        except urllib3.exceptions.InvalidHeader:
            return 0.0


@dataclasses.dataclass(frozen=True)
class RegistryResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclasses.dataclass(frozen=True)
class FoundImage:
    """An image in a registry.

    Args:
        reference: how runtimes name it, ``HOST/REPOSITORY@sha256:…``.
        digest: what the tag means now; of the list, where the tag names a list of architectures.
        labels: of the image.
        config: digest of the image's configuration, which is the image's id in a Docker engine.
        last_layer: its digest; empty: there is none.
    """

    reference: str
    digest: str
    labels: Mapping[str, str]
    config: str
    last_layer: str


class Registry:
    """One repository. Raises UsageError: ``name`` is no ``HOST[:PORT]/REPOSITORY``."""

    def __init__(self, name: str) -> None:
        self.repository = Repository.parse(name)
        self._auth: Auth = header()

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

    def resolve(self, reference: str, architecture: str) -> FoundImage:
        """What a tag or a digest means for an architecture, as ``uname -m`` says it.

        Raises:
            SchedulerError: no such tag, or a registry that is down, slow or refuses.
            DataError: no image of that architecture, or what the registry sends isn't what its digest says.
        """
        name = self.repository.at(reference)
        answer = self._manifest(reference)
        digest = _digest(answer.body)
        declared = answer.headers.get("Docker-Content-Digest", digest)
        if digest != declared or (is_digest(reference) and digest != reference):
            raise _damaged(name)
        manifest = _json(answer, name)
        if "manifests" in manifest:
            # What isn't for Linux (signatures, attestations) is no image.
            platform = {"os": "linux", "architecture": docker_architecture(architecture)}
            rows = [row for row in manifest["manifests"] if platform.items() <= (row.get("platform") or {}).items()]
            if not rows:
                raise _other_architecture(name, architecture)
            answer = self._manifest(rows[0]["digest"])
            if _digest(answer.body) != rows[0]["digest"]:
                raise _damaged(name)
            manifest = _json(answer, name)
        if "config" not in manifest or "layers" not in manifest:
            raise DataError(f"{name} is no image that Docker 1.10 or newer wrote", then="push it again")
        config = manifest["config"]["digest"]
        document = parse_json(self._blob(config, name))
        if document.get("architecture") != docker_architecture(architecture):
            raise _other_architecture(name, architecture)
        labels = (document.get("config") or {}).get("Labels") or {}
        last = manifest["layers"][-1]["digest"] if manifest["layers"] else ""
        return FoundImage(self.repository.at(digest), digest, labels, config, last)

    def last_layer_file(self, image: FoundImage, path: str) -> bytes:
        """A small file of the last layer.

        Raises:
            DataError: it isn't there, or the layer is larger than LARGEST or compressed unlike Docker's.
            SchedulerError: a registry that is down, slow or refuses.
        """
        if not image.last_layer:
            raise DataError(f"{image.reference} has no layers")
        blob = self._blob(image.last_layer, image.reference)
        return archive.member((blob,), path, what=f"the last layer of {image.reference}")

    def _manifest(self, reference: str) -> RegistryResponse:
        name = self.repository.at(reference)
        answer = self._get(f"{self.repository.path}/manifests/{reference}", f"look up {name}", accept=_ACCEPT)
        if answer.status != 200:
            raise SchedulerError(f"registry {self.repository.host} doesn't show {name} (status {answer.status})")
        return answer

    def _blob(self, digest: str, name: str) -> bytes:
        answer = self._get(f"{self.repository.path}/blobs/{digest}", f"fetch a part of {name}")
        if answer.status != 200:
            raise SchedulerError(
                f"registry {self.repository.host} has lost a part of {name} (status {answer.status})",
                then="push it again",
            )
        if _digest(answer.body) != digest:
            raise _damaged(name)
        return answer.body

    def _get(self, path: str, what: str, *, accept: str = "*/*") -> RegistryResponse:
        """The answer to ``PATH`` below ``/v2/``: any but 401, 403, 429 and 5xx. ``what`` completes "could not …".

        Raises:
            SchedulerError: refused, down, overloaded, or too slow.
            DataError: an answer of more than LARGEST bytes.
        """
        retry_policy = _RetryPolicy(
            total=ATTEMPTS - 1, backoff_factor=0.5, backoff_max=LONGEST_PAUSE_S, status_forcelist=_AGAIN
        )
        with requests.Session() as session:
            # A proxy of the environment is for other machines.
            session.trust_env = not is_loopback(self.repository.host)
            for scheme in ("http://", "https://"):
                session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry_policy))

            def send(method: str, url: str, **options: Any) -> requests.Response:
                return session.request(method, url, timeout=SILENCE_S, **options)

            def ask() -> RegistryResponse:
                # The bytes as they are stored: it is them that a digest is of.
                headers = {"Accept": accept, "Accept-Encoding": "identity"}
                with send("GET", self.repository.api + path, headers=headers, auth=self._auth, stream=True) as answer:
                    body = answer.raw.read(LARGEST + 1)
                    return RegistryResponse(answer.status_code, answer.headers, body)

            try:
                answer = ask()
                if answer.status == 401:  # a login is made, or renewed when its time was over
                    login = find_credentials(self.repository.host)
                    self._auth = log_in(answer.headers.get("WWW-Authenticate", ""), self.repository, login, send)
                    answer = ask()
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                raise engine_failure(what, cause(error), self.repository.host) from None
        if answer.status in (401, 403):
            raise refused(self.repository.host, what, str(answer.status))
        if len(answer.body) > LARGEST:
            raise DataError(f"registry {self.repository.host} sends more than {LARGEST} bytes: could not {what}")
        return answer


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


def _other_architecture(name: str, architecture: str) -> DataError:
    return DataError(f"{name} isn't there for {architecture}", then="build and push it for that architecture")


def _next_page(link: str) -> str:
    """``Link: </v2/NAME/tags/list?last=…>; rel="next"`` → the path below ``/v2/``, always on the same host."""
    target, _, rest = link.partition(">")
    if 'rel="next"' not in rest:
        return ""
    parts = urllib.parse.urlsplit(target.lstrip("< "))
    return f"{parts.path.partition('/v2/')[2]}?{parts.query}"
