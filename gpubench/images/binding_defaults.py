"""What a binding sets on its own: a difference that is the UCX version's doing, and nobody's choice."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpubench.images.compatibility import Stack, stacks
from gpubench.images.specs import version_key

_RELEASE = re.compile(r"\d+\.\d+\.\d+")


def set_by_binding(stack: str, ucx_version: str, table: Sequence[Stack] | None = None) -> dict[str, str]:
    """Variables that appear by themselves in processes of ``stack`` that load ``ucx_version``.

    None for a stack that the table doesn't hold, or for a UCX without a number.
    """
    release = _RELEASE.match(ucx_version)
    if release is None:
        return {}
    rows = [row for row in (stacks() if table is None else table) if row.name == stack]
    return {
        one.variable: one.value for row in rows for one in row.sets if version_key(release[0]) < version_key(one.below)
    }
