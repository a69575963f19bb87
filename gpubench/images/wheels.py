"""The wheels of libucx."""

import functools
import platform
import sys

import pydantic

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.model.base import Settings
from gpubench.model.text import version_key
from gpubench.resources import docker_file

_WHEELS = "locks/libucx-cu12.toml"


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


@functools.cache
def wheels() -> tuple[Wheel, ...]:
    """Every wheel of the lock, oldest first."""
    path = docker_file(_WHEELS)
    return tuple(sorted(_Wheels.load(path.read_text("utf-8"), str(path)).wheel, key=lambda wheel: wheel.order))


def releases() -> list[str]:
    """Every release that exists as a wheel, oldest first."""
    return list(dict.fromkeys(wheel.release for wheel in wheels()))


def resolve(name: str) -> Wheel:
    """The newest wheel of release ``1.16.0``, or that of version ``1.16.0.post1``; UsageError: there is none."""
    versions = [wheel for wheel in wheels() if name in (wheel.release, wheel.version)]
    if versions:
        return versions[-1]
    key = version_key(name.partition(".post")[0])
    nearest = [release for release in releases() if version_key(release) <= key] or releases()[:1]
    raise UsageError(
        f"there is no wheel of UCX '{name}' (nearest: {nearest[-1]})", then=f"wheels exist of {', '.join(releases())}"
    )
