"""What a pod of an Indexed Job says of itself: how far it is, why it waits, who ends it, how it failed.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodStatus
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any

INDEX = "batch.kubernetes.io/job-completion-index"
STUCK_S = 60.0
"""Seconds beyond the end of its grace period after which a pod that is still there is on a node that doesn't answer."""
_HARMLESS = ("PodInitializing", "ContainerCreating")
"""Reasons of containers that haven't started yet."""


class Pod:
    """``rank`` is the number that its Job gave it."""

    def __init__(self, plain: Mapping[str, Any]) -> None:
        metadata = plain["metadata"]
        self.name = str(metadata["name"])
        self.uid = str(metadata.get("uid", ""))
        self.rank = int(metadata["annotations"][INDEX])
        self.node = str(plain.get("spec", {}).get("nodeName", ""))
        self._deleted = str(metadata.get("deletionTimestamp", ""))
        self._status = plain.get("status", {})

    def began(self) -> list[str]:
        """Names of the containers that have a log."""
        return [name for name, now in self._containers() if "running" in now or "terminated" in now]

    def exit_codes(self) -> dict[str, int]:
        """Of those that have ended, by name."""
        return {name: int(now["terminated"]["exitCode"]) for name, now in self._containers() if "terminated" in now}

    def lives(self) -> bool:
        """Whether a container of it may still run."""
        return self._status.get("phase") not in ("Succeeded", "Failed")

    def stuck(self) -> bool:
        """Whether it was deleted so long ago that its node can't answer any more; its containers may still run."""
        if not self._deleted or not self.lives():
            return False
        # The API server's time of the request and the grace period together.
        late = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(self._deleted)
        return late.total_seconds() > STUCK_S

    def place(self) -> str:
        return f"pod {self.name}{f' on node {self.node}' if self.node else ''}"

    def waits(self) -> tuple[str, str]:
        """What doesn't go on, and why; both empty where it does."""
        if ended_by := self._disruption():
            return self.place(), ended_by
        for condition in self._status.get("conditions", ()):
            if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
                return f"pod {self.name}", f"{condition.get('reason', '')}: {condition.get('message', '')}"
        for name, now in self._containers():
            waiting = now.get("waiting", {})
            if waiting and waiting.get("reason") not in (None, *_HARMLESS):
                return f"pod {self.name}, container {name}", f"{waiting['reason']}: {waiting.get('message', '')}"
        return "", ""

    def failure(self) -> tuple[int | None, str] | None:
        """Exit code and words of the container that failed, or of the pod as a whole; None where it didn't."""
        if self._status.get("phase") != "Failed":
            return None
        for name, now in self._containers():
            ended = now.get("terminated")
            if ended and ended["exitCode"]:
                why = "" if ended.get("reason") in (None, "Error") else f" ({ended['reason']})"
                return int(ended["exitCode"]), f"container {name} of pod {self.name}{why}"
        if self._disruption():
            return None, ""  # `waits` says more
        reason = ": ".join(str(self._status[key]) for key in ("reason", "message") if self._status.get(key))
        return None, f"pod {self.name}: {reason or 'failed'}"

    def _disruption(self) -> str:
        """Who ends it, and why: eviction, preemption, a taint of its node, or the node itself; empty for nobody.

        https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
        """
        for condition in self._status.get("conditions", ()):
            if (condition["type"], condition["status"]) == ("DisruptionTarget", "True"):
                return f"{condition.get('reason', '')}: {condition.get('message', '')}"
        return ""

    def _containers(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Names and states, in the order in which they run."""
        both = (*self._status.get("initContainerStatuses", ()), *self._status.get("containerStatuses", ()))
        return [(str(status["name"]), status.get("state", {})) for status in both]
