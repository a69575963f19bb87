"""How the node half's command runs inside the image: one module each, named in the one dict."""

from __future__ import annotations

from typing import Protocol

from gpubench.model.image import Image
from gpubench.runtimes import venv


class Runtime(Protocol):
    """An adapter between a command and an image."""

    def command(self, image: Image, words: list[str]) -> list[str]:
        """The words that run ``words`` (arguments of Python) in the image."""


RUNTIMES: dict[str, Runtime] = {
    "venv": venv,
}
