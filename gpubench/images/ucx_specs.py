"""A UCX spec as typed → what it asks for."""

import dataclasses
import re
from typing import Literal

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.images.wheels import Wheel, releases, resolve

_PREFIX = re.compile(r"(ucx-)?v?(?=\d)")
"""What may stand before a version, as in ``v1.16.0`` and ``ucx-1.16.0``."""
_RELEASE = re.compile(r"\d+(\.\d+)*(\.post\d+)?")
_REF = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/+-]*[A-Za-z0-9])?")
_BARE_BRANCH = re.compile(r"\d+\.\d+\.x")
_RELEASE_OF_REF = re.compile(r"v?(\d+\.\d+(?:\.\d+)?)(?:\.x|-rc\d+)?")
COMMIT = re.compile(r"[0-9a-f]{40}")
"""The full name of a commit."""


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
    """Read a spec of an image.

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
    if how == "wheel" and is_release(rest):
        return RequestedUcx(kind="wheel", name=resolve(_full(spec, rest)).version)
    if is_release(text):
        return RequestedUcx(kind="release", name=_full(spec, text))
    if colon and how != "git":
        raise UsageError(f"UCX '{spec}': '{how}:' is no source of UCX", then="write wheel:VERSION or git:REF")
    return _git(spec, rest if colon else text)


def is_release(text: str) -> bool:
    """Whether it is a release, or the beginning of one, and no branch or commit."""
    return _RELEASE.fullmatch(_PREFIX.sub("", text.lower(), count=1)) is not None


def wheel_of(spec: str) -> Wheel:
    """The wheel that a spec means.

    Raises:
        UsageError: as ``parse``, and where there is no such wheel.
        PlanRefusedError: a branch or a commit, which wheels can't give.
    """
    ucx = parse(spec)
    if ucx.kind not in ("release", "wheel"):
        raise PlanRefusedError(
            f"UCX '{spec}' is no release: images of kind venv hold the UCX of a wheel, or of a commit of a clone",
            then=f"write one of {', '.join(releases())}, or name a clone (--set image.ucx_repository=DIR)",
        )
    return resolve(ucx.name)


def named(spec: str) -> str:
    """The spec by which an image is built and found: of ``1.16`` and ``v1.16.0`` ``1.16.0``, others as they are."""
    ucx, comma, stack = spec.partition(",")
    try:
        parsed = parse(ucx)
    except UsageError:  # whoever needs its image says so
        return spec
    return f"{parsed.name}{comma}{stack}" if parsed.kind == "release" else spec


def _full(spec: str, text: str) -> str:
    """``v1.22`` → ``1.22.0``; a release without a wheel may still be a tag."""
    name = _PREFIX.sub("", text.lower(), count=1)
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
