"""Which wheel of libucx a version means."""

import functools
import platform
import re
import sys

import pydantic

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.model.base import Settings, nearest
from gpubench.resources import docker_file

_WHEELS = "locks/libucx-cu12.toml"
PREFIX = re.compile(r"(ucx-)?v?(?=\d)")
"""What may stand before a version, as in ``v1.16.0`` and ``ucx-1.16.0``."""
RELEASE = re.compile(r"\d+(\.\d+)*(\.post\d+)?")


class Wheel(Settings):
    """One wheel of libucx. ``sha256`` maps an architecture (``x86_64``, ``aarch64``) to the wheel's hash."""

    version: str
    sha256: dict[str, str]

    def __str__(self) -> str:
        return f"UCX {self.version}"

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
    name = PREFIX.sub("", spec.strip().lower(), count=1)
    if not RELEASE.fullmatch(name):
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


def _not_a_release(spec: str, name: str) -> UsageError | PlanRefusedError:
    if re.fullmatch(r"[\d.]+\.x|git:.*|[a-z][\w./-]*(@.*)?", name):
        return PlanRefusedError(
            f"UCX '{spec}' is a branch or commit, which needs an image built from source",
            then="write a release, or name a clone on this machine (--set image.ucx_repository=DIR); "
            f"releases: {', '.join(releases())}",
        )
    return UsageError(f"UCX '{spec}' is no version{nearest(name, releases())}", then="write a release like 1.19.0")


def _closest(name: str) -> str:
    key = version_key(name.partition(".post")[0])
    older = [release for release in releases() if version_key(release) <= key]
    return f" (nearest: {older[-1] if older else releases()[0]})"
