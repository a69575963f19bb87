"""Blocks of parsl as pods beside the run's. The only file that names the package kubernetes.

parsl's KubernetesProvider asks for a bare pod with its own default of cores and memory, which starts again when it ends
and which only the process that asked for it can find. So what it sends is completed on its way. The pod of a block gets
what the run's own pod gets, carries the labels by which ``gpubench cancel`` finds all pods of a job, and never starts
again. The run's pod owns it, so that Kubernetes deletes it with that one.

The run's pods are kept away from others of gpubench, and so are these: a block is on other nodes than the run.
"""

import contextlib
import functools
import json
import os
import sys
import time
from typing import Any, Callable, Dict, List, Mapping

from gpubench.node.workloads.base import UnavailableError
from gpubench.node.workloads.clock import poll_until
from gpubench.node.workloads.process_reaper import Guard, clean_up_after

POD_VARIABLE = "GPUBENCH_POD_NAME"
"""Name of the run's own pod."""
ASKED_VARIABLE = "GPUBENCH_BLOCK_PODS"
"""JSON object, rendered for each run: ``namespace``, ``container`` (that of the run, in its pod), ``labels`` and
``annotations`` of every block's pod, and ``start_s``, how long it may take until such a pod runs."""
MARK_LABEL = "gpubench/blocks-of"
RIGHTS = ("create", "get", "list", "delete")
WALLTIME_S = 3600
CALL_S = 20.0
GONE_S = 15.0
LOOK_S = 1.0
_POLL_S = 0.2
_OF_THE_POD = (
    *("affinity", "nodeSelector", "tolerations", "imagePullSecrets", "securityContext", "runtimeClassName"),
    *("priorityClassName", "hostNetwork", "dnsPolicy", "enableServiceLinks"),
)
_OF_THE_CONTAINER = ("image", "imagePullPolicy", "securityContext")
_HARMLESS = ("PodInitializing", "ContainerCreating")
"""Reasons of containers that haven't started yet."""


class BlockPods:
    """The pods of one submitting process.

    Args:
        mark: tells them from those of every other process; a label's value.
        marks: variables of the run that the process which cleans up behind us doesn't carry.

    Raises:
        UnavailableError: this isn't a run's pod, its image has no client of a cluster, or it has no rights there.
    """

    def __init__(self, mark: str, marks: List[str]) -> None:
        name, request = os.environ.get(POD_VARIABLE), os.environ.get(ASKED_VARIABLE)
        if not name or not request:
            raise UnavailableError(
                'parsl_provider = "kubernetes" works in a campaign on a site with scheduler kubernetes: '
                f"{POD_VARIABLE if request else ASKED_VARIABLE} isn't set here"
            )
        self._asked: Dict[str, Any] = json.loads(request)
        self.namespace: str = self._asked["namespace"]
        self.api = _connected()
        self._check_rights()
        self._labels = {**self._asked["labels"], MARK_LABEL: mark}
        self._own = self._plain(_said(self.api.read_namespaced_pod, name, self.namespace))
        spec = self._own["spec"]
        both = [*spec.get("initContainers", ()), *spec["containers"]]
        self._container = next(container for container in both if container["name"] == self._asked["container"])
        self._selector = f"{MARK_LABEL}={mark}"
        self._guard = Guard(__name__, [self.namespace, self._selector], marks)
        self._refused = ""
        self._late = time.monotonic() + self._asked["start_s"]
        self._next_look = 0.0

    @property
    def image(self) -> str:
        return str(self._container["image"])

    def __getattr__(self, name: str) -> Any:
        """In place of parsl's client of a cluster: whatever else it calls."""
        return getattr(self.api, name)

    def create_namespaced_pod(self, namespace: str, body: Any) -> Any:
        """What parsl sends, completed; a refusal is remembered, because parsl only tries again."""
        try:
            return _said(self.api.create_namespaced_pod, namespace, self.completed(self._plain(body)))
        except UnavailableError as error:
            self._refused = str(error)
            raise

    def delete_namespaced_pod(self, name: str, namespace: str, body: Any) -> Any:  # noqa: ARG002
        """It may be gone already."""
        return _delete(self.api, name, namespace)

    def completed(self, pod: Mapping[str, Any]) -> Dict[str, Any]:
        """A pod of parsl's with what makes it one of the run's."""
        (container,), own = pod["spec"]["containers"], self._container
        metadata, spec = pod["metadata"], self._own["spec"]
        amounts_by_kind = own.get("resources", {})
        # Neither GPUs nor fabrics: tasks that do nothing need none.
        resources = {
            kind: {key: amounts[key] for key in ("cpu", "memory") if key in amounts}
            for kind, amounts in amounts_by_kind.items()
        }
        owner = {"apiVersion": "v1", "kind": "Pod"}
        owner.update({key: self._own["metadata"][key] for key in ("name", "uid")})
        return {
            **pod,
            "metadata": {
                **metadata,
                "labels": {**metadata["labels"], **self._labels},
                "annotations": self._asked["annotations"],
                "ownerReferences": [owner],
            },
            "spec": {
                **pod["spec"],
                **{key: spec[key] for key in _OF_THE_POD if key in spec},
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "activeDeadlineSeconds": WALLTIME_S,
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {**container, **{key: own[key] for key in _OF_THE_CONTAINER if key in own}, "resources": resources}
                ],
            },
        }

    def check(self) -> None:
        """Raise UnavailableError where a pod was refused, has ended, or didn't start in time; looks once a second."""
        if self._refused:
            raise UnavailableError(self._refused)
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_S
        for pod in _pods(self.api, self.namespace, self._selector):
            status = self._plain(pod).get("status", {})
            name, phase = pod.metadata.name, status.get("phase")
            if phase in ("Failed", "Succeeded"):
                raise UnavailableError(f"pod {name}, a block of parsl, has ended before it had work: {_why(status)}")
            if phase != "Running" and now > self._late:
                waited = f"{self._asked['start_s']:g} s"
                raise UnavailableError(f"pod {name}, a block of parsl, didn't run after {waited}: {_why(status)}")

    def over(self) -> None:
        """Delete what is left, and come back when it is gone."""
        if _end(self.api, self.namespace, self._selector):
            self._guard.over()
        else:
            self._guard.close()

    def _plain(self, answer: Any) -> Dict[str, Any]:
        plain: Dict[str, Any] = self.api.api_client.sanitize_for_serialization(answer)
        return plain

    def _check_rights(self) -> None:
        """Ask for all of them at once: a missing one would show when there are pods already."""
        from kubernetes import client

        reviews = client.AuthorizationV1Api(self.api.api_client)
        lacks = []
        for verb in RIGHTS:
            about = {"namespace": self.namespace, "verb": verb, "resource": "pods"}
            body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
            review = {**body, "spec": {"resourceAttributes": about}}
            answer = _said(reviews.create_self_subject_access_review, review)
            if not answer.status.allowed:
                lacks.append(verb)
        if lacks:
            raise UnavailableError(
                f"the service account of the run's pods may not {', '.join(lacks)} pods in namespace {self.namespace}, "
                "which a block of parsl needs"
            )


def main(namespace: str, selector: str) -> None:
    api = _connected()
    clean_up_after(functools.partial(_end, api, namespace, selector))


def _connected() -> Any:
    """A client, with what parsl's provider would take: a kubeconfig, else the pod's own service account."""
    try:
        from kubernetes import client, config
    except ImportError as error:
        raise UnavailableError(
            f'parsl_provider = "kubernetes" needs the package kubernetes, which this image doesn\'t have: {error}'
        ) from None
    try:
        try:
            config.load_kube_config()
        except config.ConfigException:
            config.load_incluster_config()
    except config.ConfigException as error:
        raise UnavailableError(f"no cluster to start parsl's blocks in: {error}") from None
    return client.CoreV1Api()


def _said(call: Callable[..., Any], *arguments: Any) -> Any:
    """What the cluster answers; its refusal as an UnavailableError, in its own words."""
    from kubernetes.client.exceptions import ApiException

    try:
        return call(*arguments)
    except ApiException as error:
        message = error.reason
        with contextlib.suppress(ValueError, TypeError, KeyError):
            message = json.loads(error.body)["message"]
        raise UnavailableError(f"the cluster refuses a pod for a block of parsl: {message}") from None


def _pods(api: Any, namespace: str, selector: str) -> List[Any]:
    pods: List[Any] = api.list_namespaced_pod(namespace, label_selector=selector, _request_timeout=CALL_S).items
    return pods


def _delete(api: Any, name: str, namespace: str) -> Any:
    from kubernetes import client
    from kubernetes.client.exceptions import ApiException

    try:
        return api.delete_namespaced_pod(name, namespace, _request_timeout=CALL_S)
    except ApiException as error:
        if error.status != 404:
            raise
        return client.V1Status()


def _end(api: Any, namespace: str, selector: str) -> bool:
    """Delete the pods, and look until they are gone, or a while has passed; whether they are."""
    deleted = set()

    def gone() -> bool:
        there = _pods(api, namespace, selector)
        for pod in there:
            if pod.metadata.uid not in deleted:
                _delete(api, pod.metadata.name, namespace)
                deleted.add(pod.metadata.uid)
        return not there

    try:
        return poll_until(gone, time.monotonic() + GONE_S, _POLL_S)
    except Exception as error:  # noqa: BLE001 - the network's and the cluster's; the pods have an owner and a time limit
        print(f"parsl's blocks couldn't be deleted: {error}", file=sys.stderr)  # noqa: T201
        return False


def _why(status: Mapping[str, Any]) -> str:
    """What a pod says of itself while it doesn't run."""
    for state in status.get("conditions", ()):
        if (state["type"], state["status"]) == ("PodScheduled", "False"):
            return f"{state.get('reason', '')}: {state.get('message', '')}"
    for state in status.get("containerStatuses", ()):
        now = next(filter(None, map(state.get("state", {}).get, ("terminated", "waiting"))), None)
        if now and now.get("reason") not in (None, *_HARMLESS):
            code = f", exit code {now['exitCode']}" if "exitCode" in now else ""
            return f"{now['reason']}{code}: {now.get('message', '')}".rstrip(": ")
    return str(status.get("message") or status.get("reason") or status.get("phase"))
