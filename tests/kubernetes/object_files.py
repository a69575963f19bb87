"""A job by hand: one pod that runs a script in the directory of a claim."""

from __future__ import annotations

import json

_TEXT = """# By hand: kubectl --namespace {namespace} apply --server-side -f job.yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: {namespace}
  labels: {labels}
spec:
  completionMode: Indexed
  completions: 1
  parallelism: 1
  backoffLimit: 0
  activeDeadlineSeconds: {deadline_s}
  template:
    metadata:
      labels: {labels}
    spec:
      restartPolicy: Never
      subdomain: {name}
      terminationGracePeriodSeconds: 30
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            namespaceSelector: {{}}
            labelSelector: {{matchLabels: {{"app.kubernetes.io/name": gpubench}}}}
      securityContext: {{runAsUser: 0}}
      initContainers: []
      containers:
      - name: only
        image: bash
        command: [bash, -c, {script}]
        env: []
        volumeMounts: [{{name: here, mountPath: /run/here}}]
      volumes:
      - {{name: here, persistentVolumeClaim: {{claimName: {claim}}}}}
"""


def object_file(name: str, claim: str, script: str, *, deadline_s: int = 600, namespace: str = "default") -> str:
    """``job.yaml`` as the adapter reads it."""
    labels = {"app.kubernetes.io/name": "gpubench", "app.kubernetes.io/instance": name}
    return _TEXT.format(
        name=name,
        claim=claim,
        labels=json.dumps(labels),
        script=json.dumps(f"cd /run/here\n{script}"),
        deadline_s=deadline_s,
        namespace=namespace,
    )
