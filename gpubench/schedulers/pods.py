"""What a pod of an Indexed Job says of itself, as ``kubectl get -o json`` shows it.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodStatus
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

INDEX = "batch.kubernetes.io/job-completion-index"
_HARMLESS = ("PodInitializing", "ContainerCreating")
"""Reasons of containers whose turn hasn't come."""


class Pod:
    """One pod; ``rank`` is the number that its Job gave it."""

    def __init__(self, plain: Mapping[str, Any]) -> None:
        self.name = str(plain["metadata"]["name"])
        self.rank = int(plain["metadata"]["annotations"][INDEX])
        self.node = str(plain.get("spec", {}).get("nodeName", ""))
        self._status = plain.get("status", {})

    def began(self) -> list[str]:
        """Names of the containers that have a log."""
        return [name for name, now in self._containers() if "running" in now or "terminated" in now]

    def over(self) -> list[str]:
        """Names of those that have ended."""
        return [name for name, now in self._containers() if "terminated" in now]

    def waits(self) -> str:
        """Why it doesn't go on; empty where it does."""
        for condition in self._status.get("conditions", ()):
            if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
                return f"pod {self.name}: {condition.get('reason', '')}: {condition.get('message', '')}"
        for name, now in self._containers():
            waiting = now.get("waiting", {})
            if waiting and waiting.get("reason") not in (None, *_HARMLESS):
                return f"pod {self.name}, container {name}: {waiting['reason']}: {waiting.get('message', '')}"
        return ""

    def failure(self) -> tuple[int | None, str] | None:
        """Exit code and words of the container that failed, or of the pod as a whole; None where it didn't."""
        if self._status.get("phase") != "Failed":
            return None
        for name, now in self._containers():
            ended = now.get("terminated")
            if ended and ended["exitCode"]:
                why = "" if ended.get("reason") in (None, "Error") else f" ({ended['reason']})"
                return int(ended["exitCode"]), f"container {name} of pod {self.name}{why}"
        words = ": ".join(str(self._status[key]) for key in ("reason", "message") if self._status.get(key))
        return None, f"pod {self.name}: {words or 'failed'}"

    def _containers(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Names and states, in the order in which they run."""
        both = (*self._status.get("initContainerStatuses", ()), *self._status.get("containerStatuses", ()))
        return [(str(one["name"]), one.get("state", {})) for one in both]
