"""A real docker-registry with small images put into it over HTTP, and a proxy before it that misbehaves."""

import base64
import contextlib
import gzip
import hashlib
import http.client
import http.server
import io
import json
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.docker.daemon import PASSWORD, USER, RegistryServer

_LOGIN = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Registry(RegistryServer):
    """A registry whose access log is read and that takes images without an engine."""

    @property
    def requests(self) -> list[str]:
        """``GET /v2/…`` of everybody so far, from the access log."""
        lines = self.log.read_text().splitlines()
        return [line.split('"')[1].rpartition(" ")[0] for line in lines if ' HTTP/1.1" ' in line]

    def push(
        self,
        repository: str,
        tag: str,
        files: Mapping[str, bytes],
        *,
        labels: Mapping[str, str] | None = None,
        architecture: str = "amd64",
        lower: Mapping[str, bytes] | None = None,
        tree: Path | None = None,
        environment: Sequence[str] = ("STACK=of the image",),
    ) -> str:
        """Put in an image with these files, over layers with ``lower`` and with what is below ``tree``; its digest."""
        layers = [layer(each) for each in (lower, files) if each is not None]
        if tree is not None:
            layers.insert(0, tree_layer(tree))
        config = json.dumps(
            {
                "architecture": architecture,
                "os": "linux",
                "config": {"Env": list(environment), "Labels": dict(labels or {})},
                # Without a history the registry can't answer an old client that names a tag, as enroot's first request.
                "history": [{"created_by": "test"} for _ in layers],
                "rootfs": {"type": "layers", "diff_ids": [sha256(gzip.decompress(each)) for each in layers]},
            }
        ).encode()
        descriptions = [
            {"mediaType": kind, "size": len(data), "digest": self._blob(repository, data)}
            for kind, data in [
                ("application/vnd.docker.container.image.v1+json", config),
                *(("application/vnd.docker.image.rootfs.diff.tar.gzip", each) for each in layers),
            ]
        ]
        manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptions[0], "layers": descriptions[1:]}
        ).encode()
        self._send("PUT", f"/v2/{repository}/manifests/{tag}", manifest, MANIFEST)
        return sha256(manifest)

    def _blob(self, repository: str, data: bytes) -> str:
        place = self._send("POST", f"/v2/{repository}/blobs/uploads/", b"").headers["Location"]
        digest = sha256(data)
        self._send("PUT", f"{place}&digest={digest}", data)
        return digest

    def _send(
        self, method: str, path: str, data: bytes, kind: str = "application/octet-stream"
    ) -> http.client.HTTPResponse:
        url = path if path.startswith("http") else f"http://{self.host}{path}"
        headers = {"Content-Type": kind, "Authorization": f"Basic {_LOGIN}"}
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer  # type: ignore[no-any-return]


def sha256(data: bytes) -> str:
    """``sha256:<hex>``."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layer(files: Mapping[str, bytes]) -> bytes:
    """A gzipped tar with these files, in order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mode = 0o644
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), compresslevel=1, mtime=0)


def tree_layer(tree: Path) -> bytes:
    """A gzipped tar with all that is below ``tree``."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        archive.add(tree, arcname=".")
    return buffer.getvalue()


Answer = Callable[[str, int], int | None]
"""Given a request's path and its number: a status to send, ``0`` to break off in the body, None to pass it on."""


class Proxy:
    """Passes GET and HEAD on to a registry, but for what ``answer`` decides."""

    def __init__(self, target: str, answer: Answer | None = None, *, slow_s: float = 0.0) -> None:
        self.paths: list[str] = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy.paths.append(self.path)
                status = answer(self.path, len(proxy.paths)) if answer else None
                if status:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                headers = {name: value for name, value in self.headers.items() if name in ("Accept", "Authorization")}
                request = urllib.request.Request(f"http://{target}{self.path}", headers=headers, method=self.command)
                try:
                    with urllib.request.urlopen(request, timeout=30) as passed:
                        self._pass(passed.status, passed.headers, passed.read(), status)
                except urllib.error.HTTPError as refused:
                    with refused:
                        self._pass(refused.code, refused.headers, refused.read(), status)

            def _pass(self, code: int, headers: Mapping[str, str], body: bytes, status: int | None) -> None:
                self.send_response(code)
                for name in ("Content-Type", "Content-Length", "WWW-Authenticate"):
                    if headers.get(name):
                        self.send_header(name, headers[name])
                self.end_headers()
                if status == 0:
                    self.wfile.write(body[: len(body) // 2])
                    self.close_connection = True
                    return
                if slow_s and "/blobs/" in self.path:
                    time.sleep(slow_s)
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

            def log_message(self, *_: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128  # a storm of importers connects at once

        self.server = Server(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@contextlib.contextmanager
def proxy(target: str, answer: Answer | None = None, *, slow_s: float = 0.0) -> Iterator[Proxy]:
    """A running proxy."""
    running = Proxy(target, answer, slow_s=slow_s)
    try:
        yield running
    finally:
        running.stop()
