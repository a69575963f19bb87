"""A recipe: all that decides what an image holds, settled before anything is rendered or built."""

import hashlib
import re
from typing import Literal

from gpubench.model.base import Settings
from gpubench.model.site import ImageSettings

Source = Literal["wheel", "git", "distribution", "none"]

_NOT_IN_A_TAG = re.compile(r"[^A-Za-z0-9_.-]")


class Recipe(Settings):
    """One UCX version on one stack for one site.

    Args:
        ucx_version: full version of the wheel (``1.16.0.post1``), git ref (``v1.14.x``), ``distribution`` or ``none``.
        ucx_release: what the library must report as far as the name tells: ``1.16.0``, a branch ``1.14``; empty: any.
        ucx_commit: 40 hexadecimal digits; empty: not from git, or not resolved.
        wheel_sha256: of the wheel for the site's architecture.
        stack: row of the compatibility table; ``stack_source`` says what its packages are, ``lock`` where they are
            pinned (below ``docker/``).
        binding: ``ucxx``, ``ucx-py`` or ``none``; ``scheme`` is the address under which it registers with Dask.
        python: the oldest minor that the stack runs on, ``python_max`` the newest; a conda stack has one.
        gpus: GPU workers run in it.
        cuda: the newest release that both the site's driver and the stack can run; empty: no CUDA.
        site: the profile's name; ``settings`` its image section; ``base`` the image that the build starts from.
        pinned: the base by digest or id, as the engine that builds resolved it; empty: nobody has been asked.
    """

    spec: str
    source: Source
    ucx_version: str
    ucx_release: str
    ucx_commit: str = ""
    ucx_repository: str = ""
    wheel_sha256: str = ""
    stack: str
    binding: str
    binding_version: str
    dask: str
    rapids: str
    scheme: str
    stack_source: Literal["wheels", "conda"]
    lock: str
    python: str
    python_max: str
    gpus: bool = False
    cuda: str
    site: str
    settings: ImageSettings
    base: str
    pinned: str = ""

    def tag(self, date: str) -> str:
        """``ucx-py-<spec>-<date>``; a spec that no tag can carry is spelt with ``-`` and told apart by a hash."""
        plain = _NOT_IN_A_TAG.sub("-", self.spec)
        if plain != self.spec:
            plain = f"{plain[:80]}-{hashlib.sha256(self.spec.encode()).hexdigest()[:8]}"
        return f"ucx-py-{plain}-{date}"
