"""Known issues: rules about runs that can't work here, or need something, as data."""

import fnmatch
import re
from typing import Literal, Self

import pydantic

from gpubench.model.base import Settings
from gpubench.model.text import version_key

_RELEASE = re.compile(r"(?:\w+:)?(?:ucx-)?v?(\d+(?:\.\d+)+)")


class UcxRange(Settings):
    """Versions from ``min`` to ``max``, both included; ``1.13`` as an end stands for all of 1.13."""

    min: str = pydantic.Field(pattern=r"^\d+(\.\d+)*$")
    max: str = pydantic.Field(pattern=r"^\d+(\.\d+)*$")

    @pydantic.model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = version_key(self.min), version_key(self.max)
        if low[: len(high)] > high[: len(low)]:
            raise ValueError(f"min {self.min} lies above max {self.max}")
        return self

    def holds(self, version: str) -> bool:
        """Whether a version, tag or branch surely lies inside; of ``v1.20.x`` only its first two numbers are known."""
        match = _RELEASE.match(version)
        if not match:
            return False
        key, low, high = version_key(match[1]), version_key(self.min), version_key(self.max)
        if len(key) < max(len(low), len(high)):
            # The branch may stand on either side of an end that is told more exactly.
            return low[: len(key)] < key < high[: len(key)]
        return key[: len(low)] >= low and key[: len(high)] <= high


class Circumstances(Settings):
    """What a rule asks about: one variant at one node count.

    ``ucx`` is a version or a spec, ``gpus`` those of the whole job, ``env`` the variables in force.
    """

    ucx: str
    nodes: int
    gpus: int
    protocol: str
    runtime: str
    transports: list[str]
    env: dict[str, str]


class Conditions(Settings):
    """All that are given must hold; see ``issues/known.toml``."""

    ucx: UcxRange | None = None
    nodes_above: int | None = None
    gpus_above: int | None = None
    protocols: list[str] = pydantic.Field(default_factory=list)
    runtimes: list[str] = pydantic.Field(default_factory=list)
    transports: list[str] = pydantic.Field(default_factory=list)
    env: dict[str, str] = pydantic.Field(default_factory=dict)

    @pydantic.model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("a rule without a condition would concern every run")
        return self

    def hold(self, now: Circumstances) -> bool:
        """Whether the rule concerns such a run."""
        return (
            (self.ucx is None or self.ucx.holds(now.ucx))
            and (self.nodes_above is None or now.nodes > self.nodes_above)
            and (self.gpus_above is None or now.gpus > self.gpus_above)
            and (not self.protocols or now.protocol in self.protocols)
            and (not self.runtimes or now.runtime in self.runtimes)
            and (not self.transports or bool(set(self.transports) & set(now.transports)))
            and all(
                name in now.env and fnmatch.fnmatchcase(now.env[name], pattern) for name, pattern in self.env.items()
            )
        )


class KnownIssue(Settings):
    """One rule. ``expires`` is the first day (``2027-01-31``) on which it is no longer applied; empty: never.

    ``env`` belongs to the action of that name.
    """

    name: str = pydantic.Field(pattern=r"^[\w.#/-]+$")
    action: Literal["skip", "warn", "env"]
    reason: str = pydantic.Field(min_length=1)
    url: str = pydantic.Field(pattern=r"^https?://\S+$")
    when: Conditions
    env: dict[str, str] = pydantic.Field(default_factory=dict)
    expires: str = pydantic.Field(default="", pattern=r"^(\d{4}-[01]\d-[0-3]\d)?$")

    @pydantic.model_validator(mode="after")
    def _action_and_env(self) -> Self:
        if (self.action == "env") != bool(self.env):
            raise ValueError("action env and the table env go together")
        return self

    @property
    def why(self) -> str:
        """Reason and address, in a phrase."""
        return f"known issue {self.name}: {self.reason} ({self.url})"


class KnownIssues(Settings):
    """A file of rules."""

    issue: list[KnownIssue] = pydantic.Field(default_factory=list)


def load_known_issues(text: str, source: str) -> list[KnownIssue]:
    """Read a file of rules; raises UsageError."""
    return KnownIssues.load(text, source).issue
