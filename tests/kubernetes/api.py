"""The part of an API server that a pod of ours talks to: pods of its namespace, over TLS, by the rights of its account.

It answers create, get, list and delete of pods and a review of one's own rights; anything else is refused. Rights come
from the Roles and RoleBindings in the store, and what is created is checked strictly against a current schema.
"""

from __future__ import annotations

import datetime as dt
import http.server
import json
import secrets
import ssl
import subprocess
import threading
import urllib.parse
import uuid
from typing import Any

import kubernetes_validate

from tests.kubernetes.store import Object, Store

MOUNTED = "/var/run/secrets/kubernetes.io/serviceaccount"
NAMESPACE = "default"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class RefusedError(Exception):
    """An answer with this status and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Api:
    """Answers at ``address``, on a port of its own, until the process ends."""

    def __init__(self, store: Store, address: str) -> None:
        self.store = store
        self._accounts: dict[str, str] = {}
        self._folder = store.root / "api"
        self._folder.mkdir()
        key, certificate = self._folder / "key.pem", self._folder / "ca.crt"
        words = ["-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2"]
        subject = ["-subj", "/CN=kubernetes", "-addext", f"subjectAltName=IP:{address}"]
        subprocess.run(["openssl", "req", "-x509", *words, *subject], check=True, capture_output=True)
        api = self

        class Handler(_Handler):
            answers = api

        self._server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def env(self) -> dict[str, str]:
        """What every container is told."""
        host, port = self._server.server_address[:2]
        return {"KUBERNETES_SERVICE_HOST": str(host), "KUBERNETES_SERVICE_PORT": str(port)}

    def token(self, pod: Object) -> dict[str, str]:
        """What is mounted into the pod, by its place; nothing where it gets no token."""
        spec = pod["spec"]
        if not spec.get("automountServiceAccountToken", True):
            return {}
        folder = self._folder / pod["metadata"]["name"]
        if not folder.exists():
            token = secrets.token_hex(16)
            self._accounts[token] = spec.get("serviceAccountName", "default")
            folder.mkdir()
            (folder / "token").write_text(token)
            (folder / "namespace").write_text(NAMESPACE)
            (folder / "ca.crt").write_text((self._folder / "ca.crt").read_text())
        return {MOUNTED: str(folder)}

    def answer(self, method: str, path: str, token: str, body: Any) -> Object:
        """One request; raises RefusedError."""
        account = self._accounts.get(token)
        if account is None:
            raise RefusedError(401, "Unauthorized")
        url = urllib.parse.urlsplit(path)
        if (method, url.path) == ("POST", REVIEWS):
            asked = body["spec"]["resourceAttributes"]
            assert (asked["namespace"], asked["resource"]) == (NAMESPACE, "pods")
            return {**body, "status": {"allowed": self._may(account, asked["verb"])}}
        where, _, name = url.path.partition(f"{PODS}/")
        if name and not where:
            verb = {"GET": "get", "DELETE": "delete"}[method]
        elif url.path == PODS:
            verb = {"GET": "list", "POST": "create"}[method]
        else:
            raise RefusedError(404, f"no {url.path} here")
        if not self._may(account, verb):
            user = f"system:serviceaccount:{NAMESPACE}:{account}"
            raise RefusedError(403, f'pods is forbidden: User "{user}" cannot {verb} resource "pods"')
        return getattr(self, f"_{verb}")(name, urllib.parse.parse_qs(url.query), body)

    def _get(self, name: str, _query: Any, _body: Any) -> Object:
        found = self.store.read("Pod", name)
        if found is None:
            raise RefusedError(404, f'pods "{name}" not found')
        return found

    def _list(self, _name: str, query: dict[str, list[str]], _body: Any) -> Object:
        (selector,) = query["labelSelector"]
        return {"apiVersion": "v1", "kind": "PodList", "items": self.store.matching("Pod", *selector.split("=", 1))}

    def _create(self, _name: str, _query: Any, body: Any) -> Object:
        pod = {"apiVersion": "v1", "kind": "Pod", **body}
        try:
            kubernetes_validate.validate(pod, "1.37", strict=True)
        except kubernetes_validate.ValidationError as error:
            raise RefusedError(422, error.message) from None
        pod["metadata"] |= {
            "namespace": NAMESPACE,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": dt.datetime.now(dt.UTC).isoformat(),
        }
        with self.store.locked():
            if self.store.read("Pod", pod["metadata"]["name"]) is not None:
                raise RefusedError(409, f'pods "{pod["metadata"]["name"]}" already exists')
            self.store.write({**pod, "status": {"phase": "Pending"}})
        return {**pod, "status": {"phase": "Pending"}}

    def _delete(self, name: str, query: Any, body: Any) -> Object:
        found = self._get(name, query, body)
        self.store.delete(found)
        return found

    def _may(self, account: str, verb: str) -> bool:
        roles = {
            one["roleRef"]["name"]
            for one in self.store.all("RoleBinding")
            if {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE} in one["subjects"]
        }
        return any(
            verb in rule["verbs"] and "pods" in rule["resources"] and "" in rule["apiGroups"]
            for role in self.store.all("Role")
            if role["metadata"]["name"] in roles
            for rule in role["rules"]
        )


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: Api

    def _do(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        token = self.headers.get("Authorization", "").rpartition(" ")[2]  # Bearer, or bearer
        try:
            code, plain = 200, self.answers.answer(self.command, self.path, token, body)
        except RefusedError as error:
            code, plain = error.code, {"kind": "Status", "code": error.code, "message": error.message}
        data = json.dumps(plain).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def __getattr__(self, name: str) -> Any:
        """``do_GET`` and the like."""
        if name in ("do_GET", "do_POST", "do_DELETE"):
            return self._do
        raise AttributeError(name)

    def log_message(self, *_words: Any) -> None:
        """Nothing."""
