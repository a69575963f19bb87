"""A real API server for tests, of Kubernetes 1.20.2, on a real etcd; no controllers and no nodes, so no pod ever is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from gpubench.render.kubernetes_objects import object_name
from tests.conftest import ROOT, free_port, optional
from tests.render.test_rights_for_block_pods import with_pods

PROGRAMS = ("etcd", "kube-apiserver", "kubectl")
BUILD = "tests/kubernetes/build_api_server.sh"
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: here, cluster: {{server: "https://127.0.0.1:{port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: root, user: {{token: {token}}}}}]
contexts: [{{name: old, context: {{cluster: here, user: root}}}}]
current-context: old
"""
TOKEN = "of-a-test"


def built() -> Path:
    """Where the programs are; skips where nobody has built them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "gpubench-tests" / "kubernetes-1.20.2"
    there = all((folder / name).exists() for name in PROGRAMS)
    optional(there, "a real API server, which takes about six minutes to build, once", str(ROOT / BUILD))
    return folder


ACCOUNTS = tuple(object_name(made, job) for made in [with_pods()] for job in made.jobs)
"""Service accounts that have a token: those of the jobs that ``with_pods`` plans."""


class ApiServer:
    """Started, with the namespace ``default``; ``close`` ends it. The user of ``env`` may do everything, an account of
    ACCOUNTS what is bound to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._programs = built()
        self._port = free_port()
        self._running: list[subprocess.Popen[bytes]] = []
        (root / "kubeconfig").write_text(KUBECONFIG.format(port=self._port, token=TOKEN))
        users = [(TOKEN, "root", "system:masters")]
        users += [(name, f"system:serviceaccount:default:{name}", "system:serviceaccounts") for name in ACCOUNTS]
        rows = [f'{token},{user},{token},"{group}"\n' for token, user, group in users]
        (root / "tokens.csv").write_text("".join(rows))
        for name in ACCOUNTS:
            (root / name).write_text(KUBECONFIG.format(port=self._port, token=name))
        subprocess.run(["openssl", "genrsa", "-out", root / "key.pem", "2048"], check=True, capture_output=True)
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise

    def env(self) -> dict[str, str]:
        """Variables of a user: a kubectl of the machine's own goes first, whatever its version."""
        return {"KUBECONFIG": str(self.root / "kubeconfig"), "PATH": f"{os.environ['PATH']}:{self._programs}"}

    def kubectl(self, *words: str | Path, code: int = 0) -> str:
        """What it says; it must exit with ``code``."""
        env = {**os.environ, **self.env()}
        program = shutil.which("kubectl", path=env["PATH"])
        done = subprocess.run(
            [str(program), *map(str, words)], env=env, capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def items(self, *words: str) -> list[dict[str, Any]]:
        """Objects that ``kubectl get`` finds."""
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", *words, "-o", "json"))["items"]
        return found

    def collect(self) -> set[str]:
        """Be the garbage collector: what is being deleted, with what it owns, goes. The kinds."""
        found = self.items("job,service,configmap,serviceaccount,role,rolebinding")
        deleted = [(one["kind"], one["metadata"]["name"]) for one in found if "deletionTimestamp" in one["metadata"]]
        for kind, name in deleted:
            self.kubectl("patch", kind, name, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        return {kind for kind, _ in deleted}

    def close(self) -> None:
        """End all of it, the last one first."""
        for process in reversed(self._running):
            process.kill()
            process.wait(30)

    def _start_all(self) -> None:
        at, peer, key = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}", self.root / "key.pem"
        self._start("etcd", "--data-dir", self.root / "etcd", "--listen-client-urls", at, "--advertise-client-urls", at,
                    "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                    "--initial-cluster", f"default={peer}", "--unsafe-no-fsync")  # fmt: skip
        self._start("kube-apiserver", f"--etcd-servers={at}", f"--secure-port={self._port}", "--bind-address=127.0.0.1",
                    f"--cert-dir={self.root / 'certificates'}", f"--token-auth-file={self.root / 'tokens.csv'}",
                    "--authorization-mode=RBAC", "--service-cluster-ip-range=10.200.0.0/24",
                    "--disable-admission-plugins=ServiceAccount",
                    f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                    "--service-account-issuer=https://kubernetes.default.svc")  # fmt: skip
        self._until_ready()

    def _start(self, program: str, *words: str | Path) -> None:
        with (self.root / f"{program}.log").open("wb") as log:
            # With us in the end, however that comes.
            command = ["setpriv", "--pdeathsig", "KILL", self._programs / program, *words]
            self._running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def _until_ready(self) -> None:
        import ssl

        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        asked = urllib.request.Request(
            f"https://127.0.0.1:{self._port}/readyz", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(asked, timeout=5, context=unchecked):
                    return
            except (urllib.error.URLError, OSError):
                ended = [one for one in self._running if one.poll() is not None]
                logs = "".join((self.root / f"{name}.log").read_text()[-2000:] for name in PROGRAMS[:2])
                assert not ended, logs
                assert time.monotonic() < deadline, logs
            time.sleep(0.2)
