"""The rest of a small cluster: Job controller, scheduler and node agents in one loop over the objects of a ``Store``.

As Kubernetes does it: an Indexed Job makes a pod per index with its variables, labels and host name; required
anti-affinity, node selector and requests decide where it may run; init containers run one after the other, then the
last one; a pod that fails, or is deleted, fails the Job when ``backoffLimit`` says so, and the pods that still run are
deleted with their logs; so are they at ``activeDeadlineSeconds``. A Job that fails is FailureTarget first, and Failed
when its last pod is gone. The log of a container that has a file in ``turn-over`` is empty when it has ended, as when
the kubelet turns it over at that moment. (All of it as seen on Kubernetes 1.36.2.) A pod that is no Job's runs once,
and goes with its owner. Names of a headless Service resolve once a pod has an address (``publishNotReadyAddresses``).
Anything else raises: this is no Kubernetes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from tests.kubernetes.api import Api
from tests.kubernetes.pods import Container, Sandbox, host_name
from tests.kubernetes.store import Object, Store
from tests.slurm.hosts import Network

LOOK_S = 0.1
INDEX = "batch.kubernetes.io/job-completion-index"
UID = "batch.kubernetes.io/controller-uid"
ENDED = ("Succeeded", "Failed")
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "m": 1e-3, "": 1}


def amount(text: str) -> float:
    """A quantity as a number."""
    digits = text.rstrip("KMGim")
    return float(digits) * UNITS[text[len(digits) :]]


class Agent:
    """Acts until it is killed. ``nodes`` and ``images`` are JSON files of the store's root, read at every look."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.network = Network()
        self.api = Api(self.store, self.network.router)
        self._next = 9
        self._pods: dict[str, PodRun] = {}
        (root / "nsswitch.conf").write_text("hosts: files\n")
        (root / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
        (root / "hosts").write_text("127.0.0.1 localhost\n")

    def look(self) -> None:
        """One round over all Jobs, and the pods that are no Job's."""
        for job in self.store.all("Job"):
            self._job(job)
        pods = self.store.all("Pod")
        there = {one["metadata"]["uid"] for one in pods}
        for pod in pods:
            if UID not in pod["metadata"]["labels"]:
                self._bare(pod, there)
        for name, run in list(self._pods.items()):
            if run.done.is_set() and self.store.read("Pod", name) is None:
                del self._pods[name]

    def address(self) -> str:
        """Of the next pod."""
        self._next += 1
        return f"{self.network.router.rpartition('.')[0]}.{self._next}"

    def _job(self, job: Object) -> None:
        pods = [one for one in self.store.all("Pod") if one["metadata"]["labels"].get(UID) == job["metadata"]["uid"]]
        name = job["metadata"]["name"]
        if "deletionTimestamp" in job["metadata"]:
            self._delete(pods)
            if not pods:
                with self.store.locked():
                    self.store.remove("Job", name)
            return
        if {one["type"] for one in job["status"].get("conditions", ())} & {"Complete", "Failed"}:
            return
        spec = job["spec"]
        assert (spec["completionMode"], spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (
            "Indexed", 0, "Never",
        )  # fmt: skip
        if not job["status"].get("startTime"):
            self._update(job, {"startTime": time.time()})
            for index in range(spec["completions"]):
                self._create(job, index)
            return
        wrong = "failing" in job["status"]
        failed = [pod for pod in pods if pod["status"].get("phase") == "Failed"]
        missing = len(pods) < spec["completions"] or any("deletionTimestamp" in pod["metadata"] for pod in pods)
        late = time.time() - job["status"]["startTime"] > spec["activeDeadlineSeconds"]
        if wrong or failed or missing or late:
            reason = job["status"].get("failing") or (
                "BackoffLimitExceeded" if failed or missing else "DeadlineExceeded"
            )
            message = {
                "BackoffLimitExceeded": "Job has reached the specified backoff limit",
                "DeadlineExceeded": "Job was active longer than specified deadline",
            }[reason]
            if not wrong:
                self._update(job, {"failing": reason})
                self._condition(job, "FailureTarget", reason, message)
            alive = [pod for pod in pods if pod["status"].get("phase") not in ENDED]
            self._delete(alive)
            if not alive:
                self._condition(job, "Failed", reason, message)
            return
        if all(pod["status"].get("phase") == "Succeeded" for pod in pods):
            self._condition(job, "Complete", "CompletionsReached", "Reached expected number of succeeded pods")
            return
        for pod in pods:
            if pod["metadata"]["name"] not in self._pods:
                self._schedule(pod)

    def _bare(self, pod: Object, there: set[str]) -> None:
        """A pod by itself runs once, and goes with its owner."""
        assert pod["spec"]["restartPolicy"] == "Never"
        owners = [one["uid"] for one in pod["metadata"].get("ownerReferences", ())]
        if "deletionTimestamp" in pod["metadata"] or (owners and not there.intersection(owners)):
            self._delete([pod])
        elif pod["status"]["phase"] not in ENDED and pod["metadata"]["name"] not in self._pods:
            self._schedule(pod)

    def _create(self, job: Object, index: int) -> None:
        template = job["spec"]["template"]
        name = f"{job['metadata']['name']}-{index}"
        # As generateSelector of pkg/registry/batch/job/strategy.go: the names before 1.27 stay beside the new ones.
        own = {"controller-uid": job["metadata"]["uid"], "job-name": job["metadata"]["name"]}
        own |= {f"batch.kubernetes.io/{label}": value for label, value in own.items()} | {INDEX: str(index)}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{uuid.uuid4().hex[:5]}",
                "namespace": job["metadata"]["namespace"],
                "uid": str(uuid.uuid4()),
                "labels": {**template["metadata"]["labels"], **own},
                "annotations": {INDEX: str(index)},
            },
            "spec": {**template["spec"], "hostname": name},
            "status": {"phase": "Pending"},
        }
        with self.store.locked():
            self.store.write(pod)

    def _schedule(self, pod: Object) -> None:
        nodes = json.loads((self.store.root / "nodes.json").read_text())
        others = [
            one for one in self.store.all("Pod") if one["status"]["phase"] not in ENDED and "nodeName" in one["spec"]
        ]
        (term,) = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        wanted = term["labelSelector"]["matchLabels"]
        if term.get("namespaceSelector") != {}:  # without one, a term is about its own namespace
            others = [one for one in others if one["metadata"]["namespace"] == pod["metadata"]["namespace"]]
        taken = {one["spec"]["nodeName"] for one in others if wanted.items() <= one["metadata"]["labels"].items()}
        for name, facts in nodes.items():
            if name in taken or not pod["spec"].get("nodeSelector", {}).items() <= facts["labels"].items():
                continue
            if self._fits(pod, facts["allocatable"]):
                pod["spec"]["nodeName"] = name
                pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
                with self.store.locked():
                    self.store.write(pod)
                self._pods[pod["metadata"]["name"]] = PodRun(self, pod)
                return
        why = f"0/{len(nodes)} nodes are available: {len(taken)} didn't match pod anti-affinity rules."
        unfit = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        with self.store.locked():
            self.store.write({**pod, "status": {"phase": "Pending", "conditions": [unfit]}})

    @staticmethod
    def _fits(pod: Object, allocatable: dict[str, str]) -> bool:
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            resources = container.get("resources", {})
            assert resources.get("requests") == resources.get("limits")
            for name, wanted in resources.get("requests", {}).items():
                if amount(wanted) > amount(allocatable.get(name, "0")):
                    return False
        return True

    def _delete(self, pods: list[Object]) -> None:
        for pod in pods:
            if pod["metadata"]["name"] not in self._pods:
                self.remove(pod)
            elif "deletionTimestamp" not in pod["metadata"]:
                self.store.delete(pod)

    def remove(self, pod: Object) -> None:
        """A pod that is gone, with its logs."""
        with self.store.locked():
            self.store.remove("Pod", pod["metadata"]["name"])
            for log in (self.store.root / "logs" / pod["metadata"]["name"]).glob("*"):
                log.unlink()

    def _update(self, job: Object, status: dict[str, Any]) -> None:
        with self.store.locked():
            now = self.store.read("Job", job["metadata"]["name"])
            if now is not None:
                now["status"] |= status
                job["status"] = now["status"]
                self.store.write(now)

    def _condition(self, job: Object, kind: str, reason: str, message: str) -> None:
        before = job["status"].get("conditions", [])
        row = {"type": kind, "status": "True", "reason": reason, "message": message}
        self._update(job, {"conditions": [*before, row]})


class PodRun(threading.Thread):
    """One pod on its node, from its sandbox to its last container."""

    def __init__(self, agent: Agent, pod: Object) -> None:
        super().__init__(daemon=True)
        self.agent, self.pod = agent, pod
        self.name_ = pod["metadata"]["name"]
        self.done = threading.Event()
        self._ending = threading.Event()
        self._address = agent.address()
        self.start()

    def run(self) -> None:
        """Init containers in order, then the last."""
        store = self.agent.store
        config_maps = self._config_maps()
        if config_maps is None:
            self.agent.remove(self.pod)
            self.done.set()
            return
        sandbox = Sandbox(self.pod, self._address, self.agent.network, store.root, config_maps)
        try:
            self._publish()
            phase = self._containers(sandbox)
            if self._ending.is_set():
                self.agent.remove(self.pod)
            else:
                self._write(phase=phase)
                while not self._ending.wait(LOOK_S):
                    if self._asked():
                        break
                self.agent.remove(self.pod)
        finally:
            sandbox.close()
            self.done.set()

    def _config_maps(self) -> dict[str, Object] | None:
        """What the pod's volumes show, waited for as a kubelet does; None when the pod is deleted before."""
        volumes = self.pod["spec"].get("volumes", ())
        names = [one["configMap"]["name"] for one in volumes if "configMap" in one]
        while True:
            found = {name: held for name in names if (held := self.agent.store.read("ConfigMap", name)) is not None}
            if len(found) == len(names):
                return found
            if self._ending.wait(LOOK_S) or self._asked():
                return None

    def _containers(self, sandbox: Sandbox) -> str:
        spec = self.pod["spec"]
        both = [*spec.get("initContainers", ()), *spec["containers"]]
        states: dict[str, Object] = {one["name"]: {"waiting": {"reason": "PodInitializing"}} for one in both}
        for one in both:
            image = self._image(one["image"], states, one["name"])
            if image is None:
                return "Pending"
            log = self.agent.store.log(self.name_, one["name"])
            container = sandbox.run(one, {**image, **self.agent.api.token(self.pod)}, log, self._env(one))
            states[one["name"]] = {"running": {}}
            self._write(states)
            code = self._wait(container)
            if (self.agent.store.root / "turn-over" / one["name"]).exists():
                log.write_text("")
            states[one["name"]] = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
            self._write(states)
            if code or self._ending.is_set():
                return "Failed"
        return "Succeeded"

    def _wait(self, container: Container) -> int:
        grace = self.pod["spec"]["terminationGracePeriodSeconds"]
        killed_at = 0.0
        while (code := container.code()) is None:
            if (self._ending.is_set() or self._asked()) and not killed_at:
                self._ending.set()
                killed_at = time.monotonic() + grace
                container.signal(signal.SIGTERM)
            if code is None and killed_at and time.monotonic() > killed_at:
                container.signal(signal.SIGKILL)
            time.sleep(0.05)
        return code

    def _image(self, name: str, states: dict[str, Object], container: str) -> dict[str, str] | None:
        """Folders of the image; None when the pod is deleted before it is there."""
        while True:
            images: dict[str, dict[str, str]] = json.loads((self.agent.store.root / "images.json").read_text())
            if name in images:
                return images[name]
            states[container] = {
                "waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{name}"'}
            }
            self._write(states)
            if self._ending.wait(LOOK_S) or self._asked():
                self._ending.set()
                return None

    def _env(self, container: Object) -> dict[str, str]:
        labels = self.pod["metadata"]["labels"]
        env = {"PATH": "/usr/bin:/bin", "HOSTNAME": host_name(self.pod), **self.agent.api.env()}
        for one in container["env"]:
            if "value" in one:
                env[one["name"]] = one["value"]
            else:
                path = one["valueFrom"]["fieldRef"]["fieldPath"]
                label = path.removeprefix("metadata.labels['").removesuffix("']")
                known = {"metadata.name": self.name_, "spec.nodeName": self.pod["spec"]["nodeName"]}
                env[one["name"]] = known[path] if path in known else labels[label]
        return {**env, **({"JOB_COMPLETION_INDEX": labels[INDEX]} if INDEX in labels else {})}

    def _publish(self) -> None:
        """The pod's name, as a headless Service that selects it publishes it before it is ready."""
        spec, labels = self.pod["spec"], self.pod["metadata"]["labels"]
        service = self.agent.store.read("Service", spec.get("subdomain", ""))
        if service is None or not service["spec"]["selector"].items() <= labels.items():
            return
        if service["spec"].get("clusterIP") == "None" and service["spec"].get("publishNotReadyAddresses"):
            name = f"{spec['hostname']}.{spec['subdomain']}"
            with (self.agent.store.root / "hosts").open("a") as out:  # in place: containers have it mounted
                out.write(f"{self._address} {name}.default.svc.cluster.local {name}\n")

    def _write(self, states: dict[str, Object] | None = None, *, phase: str = "") -> None:
        store = self.agent.store
        with store.locked():
            now = store.read("Pod", self.name_)
            if now is None:
                return
            if phase:
                now["status"]["phase"] = phase
            if states is not None:
                inits = {one["name"] for one in now["spec"].get("initContainers", ())}
                images = {
                    one["name"]: one["image"]
                    for one in (*now["spec"].get("initContainers", ()), *now["spec"]["containers"])
                }
                rows = [
                    {
                        "name": name,
                        "state": state,
                        "image": images[name],
                        "imageID": "",
                        "ready": False,
                        "restartCount": 0,
                    }
                    for name, state in states.items()
                ]
                now["status"]["initContainerStatuses"] = [row for row in rows if row["name"] in inits]
                now["status"]["containerStatuses"] = [row for row in rows if row["name"] not in inits]
                if "running" in states[rows[-1]["name"]]:
                    now["status"]["phase"] = "Running"
            store.write(now)

    def _asked(self) -> bool:
        """Whether somebody deleted this very pod."""
        now = self.agent.store.read("Pod", self.name_)
        return now is None or "deletionTimestamp" in now["metadata"]


def main() -> None:
    """Until SIGTERM."""
    agent = Agent(Path(sys.argv[1]))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    print("ready", flush=True)
    while not stop.wait(LOOK_S):
        agent.look()
    agent.network.close()
    os._exit(0)


if __name__ == "__main__":
    main()
