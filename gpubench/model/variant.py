"""Variants, what a campaign compares, and how a user writes them."""

import dataclasses
import re
from collections.abc import Mapping

import pydantic

from gpubench.errors import UsageError
from gpubench.model.base import Settings
from gpubench.model.secrets import holds_secret, is_secret, password_in
from gpubench.model.text import visible


class Variant(Settings):
    """A label, an image, and the settings that this variant adds. The first variant of a list is the baseline.

    ``ucx`` is the UCX spec, and behind it what the image's Python stack has that others haven't: see ``ImageSpec``.
    """

    label: str
    ucx: str
    env: dict[str, str] = pydantic.Field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ImageSpec:
    """``UCX[,stack=NAME][,PACKAGE==VERSION…]``: which UCX, and on which Python stack.

    Args:
        stack: a row of ``docker/compatibility.toml``; empty: the first that runs the campaign's versions of UCX.
        packages: versions that take the place of the row's, by the package's normalised name.
    """

    ucx: str
    stack: str = ""
    packages: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> "ImageSpec":
        """What ``str`` of it says."""
        ucx, *others = text.split(",")
        pins = dict(other.split("==", 1) for other in others if "==" in other)
        stack = next((other.removeprefix(_STACK) for other in others if other.startswith(_STACK)), "")
        return ImageSpec(ucx, stack, pins)

    def __str__(self) -> str:
        pins = [f"{name}=={version}" for name, version in sorted(self.packages.items())]
        return ",".join([self.ucx, *([f"{_STACK}{self.stack}"] if self.stack else []), *pins])


_STACK, _BINDING = "stack=", "ucxx"
_COMMA_BEFORE_KEY = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_]*=|[A-Za-z0-9][A-Za-z0-9._-]*==)")
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.+!-]*)")


def parse_variant(text: str) -> Variant:
    """``[LABEL=]UCX[,stack=NAME][,PACKAGE==VERSION…][,KEY=VALUE…]``, variables of the environment last or between.

    A comma parts only where ``KEY=`` or ``PACKAGE==`` follows, so ``UCX_TLS=tcp,sm`` is one value.
    ``stack=dask==2025.7`` is another way to write ``dask==2025.7``, ``ucxx=0.52.0`` one to write ``stack=ucxx-0.52.0``.

    Raises:
        UsageError: an empty label or spec, a key that is no variable name, a key given twice, a password.
    """
    if visible(text) != text:
        raise UsageError(f"variant '{text}' holds a control character", then="write [LABEL=]VERSION[,KEY=VALUE...]")
    head, *settings = _COMMA_BEFORE_KEY.split(text)
    label, equals, spec = head.partition("=")
    if not equals:
        label, spec = text, head
    if not label or not spec:
        raise UsageError(f"variant '{text}' lacks a label or a version", then="write [LABEL=]VERSION[,KEY=VALUE...]")
    if equals and "," in label:
        raise UsageError(
            f"variant '{text}': '{label.rpartition(',')[2]}' is no name of a variable",
            then="write [LABEL=]VERSION[,KEY=VALUE...]",
        )
    env: dict[str, str] = {}
    packages: dict[str, str] = {}
    stack = ""
    for setting in settings:
        key, _, value = setting.partition("=")
        if value.startswith("=") or (key == "stack" and "==" in value):
            name, version = _pin(f"variant '{text}'", setting.removeprefix(_STACK))
            if packages.setdefault(name, version) != version:
                raise UsageError(f"variant '{text}' names {name} twice")
            continue
        if key in (_STACK.rstrip("="), _BINDING):
            stack = f"{_BINDING}-{value}" if key == _BINDING else value
            continue
        if is_secret(key, value) or holds_secret(value):
            raise password_in(f"variant '{label}': {key}")
        if key in env:
            raise UsageError(f"variant '{text}' sets {key} twice")
        env[key] = value
    if "," in spec or " " in spec:
        raise UsageError(f"variant '{text}': '{spec}' is no version", then="write [LABEL=]VERSION[,KEY=VALUE...]")
    return Variant(label=label, ucx=str(ImageSpec(spec, stack, packages)), env=env)


def _pin(where: str, setting: str) -> tuple[str, str]:
    match = _PIN.fullmatch(setting)
    if match is None:
        raise UsageError(f"{where}: '{setting}' is no exact version of a package", then="write PACKAGE==1.2.3")
    return re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]


def parse_variants(texts: list[str]) -> list[Variant]:
    """Several variants; the first is the baseline. Raises UsageError for fewer than two, or a label twice."""
    variants = [parse_variant(word) for word in texts]
    labels = [variant.label for variant in variants]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise UsageError(
            f"variant '{twice[0]}' is given twice",
            then='to compare a version with itself, label the two: --variants "a=1.22.0 b=1.22.0"',
        )
    if len(variants) < 2:
        raise UsageError("a comparison needs two variants at least", then='for example --ucx "1.16.0 1.22.0"')
    return variants


def with_packages(variants: list[Variant], pins: list[str]) -> list[Variant]:
    """The variants, each with those versions of ``pins`` (``PACKAGE==VERSION``) whose package it does not name itself.

    Raises:
        UsageError: a word that is no exact version, or a package named twice.
    """
    packages: dict[str, str] = {}
    for word in pins:
        name, version = _pin("--with", word)
        if packages.setdefault(name, version) != version:
            raise UsageError(f"--with names {name} twice")
    specs = [ImageSpec.parse(variant.ucx) for variant in variants]
    return [
        variant.model_copy(update={"ucx": str(dataclasses.replace(spec, packages={**packages, **spec.packages}))})
        for variant, spec in zip(variants, specs, strict=True)
    ]
