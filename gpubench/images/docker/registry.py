"""What a registry has, asked over its API: for login nodes without Docker."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from gpubench.errors import DataError, PlanRefusedError, SchedulerError
from gpubench.images.docker import archive
from gpubench.images.docker.names import RepositoryPlace, docker_architecture, is_digest, uname_architecture
from gpubench.images.docker.transport import RegistryResponse, Transport

LARGEST_DOCUMENT = 8 << 20
LARGEST_LAST_LAYER = 16 << 20
"""Bytes: the last layer of our images holds the manifest alone."""

_LISTS = ("application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.oci.image.index.v1+json")
_SINGLES = ("application/vnd.docker.distribution.manifest.v2+json", "application/vnd.oci.image.manifest.v1+json")
_ACCEPT = ", ".join((*_SINGLES, *_LISTS))


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
    """One repository.

    Raises:
        UsageError: ``place`` is no ``HOST[:PORT]/REPOSITORY``.
    """

    def __init__(self, place: str) -> None:
        self.place = RepositoryPlace.parse(place)
        self._transport = Transport(self.place)

    def tags(self) -> list[str]:
        """Every tag, sorted.

        Raises:
            SchedulerError: no such repository, or a registry that is down, slow or refuses.
        """
        found: set[str] = set()
        path = f"{self.place.repository}/tags/list?n=1000"
        while path:
            answer = self._get(path, f"list the tags of {self.place.name}")
            if answer.status == 404:
                raise SchedulerError(
                    f"registry {self.place.host} has no repository {self.place.repository}",
                    then="push an image there first, or correct image.registry of the site",
                )
            found.update(_json(answer, self.place.name).get("tags") or ())
            path = _next_page(answer.headers.get("Link", ""))
        return sorted(found)

    def resolve(self, reference: str, *, architecture: str = "") -> FoundImage:
        """What a tag or a digest means; ``architecture``, as ``uname -m`` says it, is the wanted one, empty means any.

        Raises:
            SchedulerError: no such tag (names the nearest), or a registry that is down, slow or refuses.
            PlanRefusedError: there is no image of that architecture.
            DataError: what the registry sends isn't what its digest says.
        """
        name = self.place.at(reference)
        answer = self._manifest(reference)
        digest = _digest(answer.body)
        said = answer.headers.get("Docker-Content-Digest", digest)
        if digest != said or (is_digest(reference) and digest != reference):
            raise _damaged(name)
        manifest = _json(answer, name)
        if "manifests" in manifest:
            manifest = self._chosen(manifest["manifests"], architecture, name)
        if "config" not in manifest or "layers" not in manifest:
            raise DataError(f"{name} is no image that Docker 1.10 or newer wrote", then="push it again")
        return self._found(manifest, digest, architecture, name)

    def last_layer_file(self, found: FoundImage, path: str) -> bytes:
        """A small file of the last layer.

        Raises:
            DataError: it isn't there, or the layer is larger than LARGEST_LAST_LAYER or compressed unlike Docker's.
            SchedulerError: a registry that is down, slow or refuses.
        """
        if not found.layers:
            raise DataError(f"{found.reference} has no layers")
        layer = found.layers[-1]
        if layer.size > LARGEST_LAST_LAYER or layer.media_type.endswith("zstd"):
            raise DataError(
                f"the last layer of {found.reference} doesn't hold {path} alone", then="was it built by gpubench?"
            )
        blob = self._blob(layer.digest, LARGEST_LAST_LAYER, found.reference)
        return archive.member((blob,), path, what=f"the last layer of {found.reference}")

    def _chosen(self, rows: list[dict[str, Any]], architecture: str, name: str) -> dict[str, Any]:
        """The manifest of the wanted architecture; what isn't for Linux (signatures, attestations) is no image."""
        images = {row["platform"]["architecture"]: row["digest"] for row in rows if _is_linux(row)}
        wanted = docker_architecture(architecture) if architecture else next(iter(images), "")
        if wanted not in images:
            raise _other_architecture(name, architecture, images)
        answer = self._manifest(images[wanted])
        if _digest(answer.body) != images[wanted]:
            raise _damaged(name)
        return _json(answer, name)

    def _found(self, manifest: dict[str, Any], digest: str, architecture: str, name: str) -> FoundImage:
        config = manifest["config"]["digest"]
        document = json.loads(self._blob(config, LARGEST_DOCUMENT, name))
        if architecture and document.get("architecture") != docker_architecture(architecture):
            raise _other_architecture(name, architecture, [document.get("architecture", "unknown")])
        return FoundImage(
            reference=self.place.at(digest),
            digest=digest,
            labels=(document.get("config") or {}).get("Labels") or {},
            architecture=uname_architecture(document.get("architecture", "")),
            config=config,
            layers=tuple(Layer(row["digest"], row["size"], row.get("mediaType", "")) for row in manifest["layers"]),
        )

    def _manifest(self, reference: str) -> RegistryResponse:
        name = self.place.at(reference)
        answer = self._get(f"{self.place.repository}/manifests/{reference}", f"look up {name}", accept=_ACCEPT)
        if answer.status == 404:
            near = ", ".join(difflib.get_close_matches(reference, self.tags(), n=3, cutoff=0.5))
            raise SchedulerError(f"registry {self.place.host} has no {name}", then=f"nearest: {near}" if near else "")
        if answer.status != 200:
            raise SchedulerError(f"registry {self.place.host} doesn't show {name} (status {answer.status})")
        return answer

    def _blob(self, digest: str, limit: int, name: str) -> bytes:
        path = f"{self.place.repository}/blobs/{digest}"
        answer = self._get(path, f"fetch a part of {name}", limit=limit)
        if answer.status != 200:
            raise SchedulerError(
                f"registry {self.place.host} has lost a part of {name} (status {answer.status})", then="push it again"
            )
        if _digest(answer.body) != digest:
            raise _damaged(name)
        return answer.body

    def _get(self, path: str, what: str, *, limit: int = LARGEST_DOCUMENT, accept: str = "*/*") -> RegistryResponse:
        return self._transport.get(path, limit=limit, what=what, accept=accept)


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _is_linux(row: Mapping[str, Any]) -> bool:
    return (row.get("platform") or {}).get("os") == "linux"


def _json(answer: RegistryResponse, name: str) -> dict[str, Any]:
    try:
        document = json.loads(answer.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise DataError(f"what answers for {name} is no registry", then="check image.registry of the site")
    return document


def _damaged(name: str) -> DataError:
    return DataError(f"the registry's bytes of {name} aren't those of its digest", then="push it again")


def _other_architecture(name: str, wanted: str, there: Iterable[str]) -> PlanRefusedError:
    have = ", ".join(uname_architecture(one) for one in there) or "no image"
    return PlanRefusedError(
        f"{name} isn't there for {wanted} (there is: {have})", then="build and push it for that architecture"
    )


def _next_page(link: str) -> str:
    """``Link: </v2/NAME/tags/list?last=…>; rel="next"`` → the path below ``/v2/``, always on the same host."""
    target, _, rest = link.partition(">")
    if 'rel="next"' not in rest:
        return ""
    parts = urllib.parse.urlsplit(target.lstrip("< "))
    return f"{parts.path.partition('/v2/')[2]}?{parts.query}"
