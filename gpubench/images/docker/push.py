"""How far a push is."""

from __future__ import annotations

import dataclasses
from typing import Any

_DONE = ("Pushed", "Layer already exists", "Mounted from")


@dataclasses.dataclass(frozen=True)
class PushProgress:
    """What a push is doing, and the share of its bytes (0 to 1) that the registry has."""

    text: str
    share: float


class Layers:
    """Adds up the engine's messages about single layers."""

    def __init__(self) -> None:
        self._bytes: dict[str, tuple[float, float]] = {}
        self._done: dict[str, bool] = {}

    def note(self, message: dict[str, Any]) -> PushProgress | None:
        """The progress after one message of the engine, None where it isn't about a layer."""
        layer, status = message.get("id", ""), str(message.get("status", ""))
        if not layer or not status:
            return None
        self._done[layer] = status.startswith(_DONE)
        detail = message.get("progressDetail") or {}
        if total := float(detail.get("total", 0)):
            # What is on the wire may be more than the engine foresaw.
            self._bytes[layer] = (min(float(detail.get("current", 0)), total), total)
        elif self._done[layer] and layer in self._bytes:
            self._bytes[layer] = (self._bytes[layer][1],) * 2
        return PushProgress(self._text(status), self._share())

    def _text(self, status: str) -> str:
        done = f"pushing, {sum(self._done.values())} of {len(self._done)} layers done"
        return f"{done}; the registry failed, trying again" if status.startswith("Retrying") else done

    def _share(self) -> float:
        total = sum(total for _, total in self._bytes.values())
        return sum(sent for sent, _ in self._bytes.values()) / total if total else 0.0
