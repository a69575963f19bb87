"""A UCX spec as typed → what it asks for, and the wheel that it means."""

import dataclasses
import functools
import platform
import re
import sys
from typing import Literal

import pydantic

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.model.base import Settings, nearest
from gpubench.resources import docker_file

_WHEELS = "locks/libucx-cu12.toml"
_PREFIX = re.compile(r"(ucx-)?v?(?=\d)")
_RELEASE = re.compile(r"\d+(\.\d+)*(\.post\d+)?")
_REF = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/+-]*[A-Za-z0-9])?")
_BARE_BRANCH = re.compile(r"\d+\.\d+\.x")
_RELEASE_OF_REF = re.compile(r"v?(\d+\.\d+(?:\.\d+)?)(?:\.x|-rc\d+)?")
COMMIT = re.compile(r"[0-9a-f]{40}")
"""The full name of a commit."""


class Wheel(Settings):
    """One wheel of libucx. ``sha256`` maps an architecture (``x86_64``, ``aarch64``) to the wheel's hash."""

    version: str
    sha256: dict[str, str]

    @property
    def release(self) -> str:
        """The version that the library reports: without ``.postN``."""
        return self.version.partition(".post")[0]

    @property
    def order(self) -> tuple[int, ...]:
        """Sorts as versions do: 1.9.0 < 1.10.0 < 1.10.0.post1."""
        release, _, post = self.version.partition(".post")
        return (*version_key(release), int(post or 0))

    def digest(self) -> str:
        """SHA-256 of this machine's wheel. Raises PlanRefusedError: there is no wheel for this machine."""
        machine = platform.machine()
        if sys.platform != "linux" or machine not in self.sha256:
            raise PlanRefusedError(
                f"UCX {self.version} has no wheel for {sys.platform} on {machine}",
                then=f"wheels exist for linux on {' and '.join(sorted(self.sha256))}",
            )
        return self.sha256[machine]


class _Wheels(Settings):
    wheel: list[Wheel] = pydantic.Field(min_length=1)


def version_key(release: str) -> tuple[int, ...]:
    """``1.16.0`` → (1, 16, 0)."""
    return tuple(int(part) for part in release.split("."))


@functools.cache
def wheels() -> tuple[Wheel, ...]:
    """Every wheel of the lock, oldest first."""
    path = docker_file(_WHEELS)
    return tuple(sorted(_Wheels.load(path.read_text("utf-8"), str(path)).wheel, key=lambda wheel: wheel.order))


def releases() -> list[str]:
    """Every release that exists as a wheel, oldest first."""
    return list(dict.fromkeys(wheel.release for wheel in wheels()))


def resolve(spec: str) -> Wheel:
    """The wheel that ``spec`` means: of a release its newest, post-releases included; of ``1.16.0.post1`` that one.

    Raises:
        UsageError: no such release, or several that begin so.
        PlanRefusedError: a branch, which wheels can't give.
    """
    name = _PREFIX.sub("", spec.strip().lower(), count=1)
    if not _RELEASE.fullmatch(name):
        raise _not_a_release(spec, name)
    exact = [wheel for wheel in wheels() if name in (wheel.release, wheel.version)]
    if exact:
        return exact[-1]
    begins = [release for release in releases() if release.startswith(name + ".")]
    if len(begins) > 1:
        raise UsageError(f"UCX '{spec}' is ambiguous", then=f"write one of {', '.join(begins)}")
    if begins:
        return resolve(begins[0])
    raise UsageError(
        f"there is no wheel of UCX '{spec}'{_closest(name)}", then=f"wheels exist of {', '.join(releases())}"
    )


@dataclasses.dataclass(frozen=True)
class RequestedUcx:
    """What a spec asks for: ``name`` is a release for ``release`` and ``wheel``, a ref for ``git``, else empty.

    A ``release`` leaves open where it comes from. ``commit`` was pinned by hand.
    """

    kind: Literal["release", "wheel", "git", "distribution", "none"]
    name: str = ""
    commit: str = ""

    @property
    def release(self) -> str:
        """The release as far as the name tells: ``1.16.0``, of a branch ``1.14``; empty: unknown."""
        if self.kind == "git":
            match = _RELEASE_OF_REF.fullmatch(self.name)
            return match[1] if match else ""
        return self.name.partition(".post")[0]


def parse(spec: str) -> RequestedUcx:
    """Read a spec of a built image; ``resolve`` is for those that hold wheels only.

    ``1.16.0 v1.16.0 ucx-1.16.0`` a release · ``wheel:1.16.0`` · ``v1.14.x master git:REF`` · ``REF@COMMIT`` ·
    ``distribution`` the base's own · ``none``.

    Raises:
        UsageError: none of these, an abbreviated commit, or an ambiguous release.
    """
    text = spec.strip()
    if "," in text:
        raise PlanRefusedError(
            f"image '{text}': only images of kind venv can have packages or a stack of their own",
            then="take --runtime venv, or build all images on one stack: gpubench images build --stack",
        )
    how, colon, rest = text.partition(":")
    if text in ("distribution", "none"):
        return RequestedUcx(kind="distribution" if text == "distribution" else "none")
    if colon and how == "wheel":
        return RequestedUcx(kind="wheel", name=resolve(rest).version)
    name = _PREFIX.sub("", text.lower(), count=1)
    if not colon and _RELEASE.fullmatch(name):
        return RequestedUcx(kind="release", name=_full(spec, name))
    if colon and how != "git":
        raise UsageError(f"UCX '{spec}': '{how}:' is no source of UCX", then="write wheel:VERSION or git:REF")
    return _git(spec, rest if colon else text)


def _full(spec: str, name: str) -> str:
    """``1.22`` → ``1.22.0``; a release without a wheel may still be a tag."""
    if name.count(".") >= 2:
        return name
    begins = [release for release in releases() if release.startswith(name + ".")]
    if len(begins) == 1:
        return begins[0]
    what = "is ambiguous" if begins else "is no full release"
    raise UsageError(f"UCX '{spec}' {what}", then=f"write three numbers like {' or '.join(begins or releases()[-2:])}")


def _git(spec: str, text: str) -> RequestedUcx:
    ref, pinned, commit = text.partition("@")
    if not _REF.fullmatch(ref) or ".." in ref:
        raise UsageError(f"UCX '{spec}' is no version and no git ref", then="write a release like 1.19.0, or a branch")
    if pinned and not COMMIT.fullmatch(commit):
        raise UsageError(
            f"UCX '{spec}': '{commit}' is no full commit", then="write all 40 hexadecimal digits behind the @"
        )
    return RequestedUcx(kind="git", name=f"v{ref}" if _BARE_BRANCH.fullmatch(ref) else ref, commit=commit)


def _not_a_release(spec: str, name: str) -> UsageError | PlanRefusedError:
    if re.fullmatch(r"[\d.]+\.x|[a-z][\w./-]*", name):
        return PlanRefusedError(
            f"UCX '{spec}' is a branch, and a branch needs an image built from source",
            then=f"images of kind venv hold releases: {', '.join(releases())}",
        )
    return UsageError(f"UCX '{spec}' is no version{nearest(name, releases())}", then="write a release like 1.19.0")


def _closest(name: str) -> str:
    key = version_key(name.partition(".post")[0])
    older = [release for release in releases() if version_key(release) <= key]
    return f" (nearest: {older[-1] if older else releases()[0]})"
