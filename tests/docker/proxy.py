"""A real HTTP server in front of a real registry, that misbehaves when it is told to."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import http.server
import json
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable
from types import TracebackType

from tests.docker.daemon import PASSWORD, USER

TOKEN = "planted-token-51c2"
REFRESH = "planted-refresh-token-90ab"


@dataclasses.dataclass
class Fault:
    """What happens to the next request whose path holds ``path``.

    ``status`` is answered instead of the registry; ``reset`` cuts the connection; ``silent`` seconds pass before each
    byte of the body; ``change`` alters the body, ``headers`` are added.
    """

    path: str = ""
    status: int = 0
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    reset: bool = False
    silent: float = 0.0
    change: Callable[[bytes], bytes] | None = None


class Proxy:
    """``faults`` are used up one by one, ``requests`` are the paths that were asked for.

    ``tokens``: every request needs a Bearer token, which the proxy itself hands out to USER with PASSWORD, to
    whoever has REFRESH, or to anybody where ``anonymous``.
    """

    def __init__(self, upstream: str, *, tokens: bool = False, anonymous: bool = False) -> None:
        self.upstream = upstream
        self.tokens = tokens
        self.anonymous = anonymous
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path: str) -> Fault | None:
        """The fault of this request."""
        found = next((fault for fault in self.faults if fault.path in path), None)
        if found:
            self.faults.remove(found)
        return found

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()


def _handler(proxy: Proxy) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            return

        def _handle(self) -> None:
            proxy.requests.append(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = proxy.take(self.path)
            if fault and fault.reset:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            elif fault and fault.status:
                self._answer(fault.status, fault.headers, b'{"errors": []}')
            elif self.path.startswith("/token"):
                self._token(body)
            elif proxy.tokens and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                realm = f'Bearer realm="http://{proxy.host}/token",service="test",scope="repository:x:pull"'
                self._answer(401, {"WWW-Authenticate": realm}, b"{}")
            else:
                with contextlib.suppress(OSError, http.client.HTTPException):  # the registry was stopped
                    self._forward(body, fault)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = _handle  # noqa: N815 - http.server wants it

        def _token(self, body: bytes) -> None:
            form = urllib.parse.parse_qs(body.decode())
            basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            known = self.headers.get("Authorization") == f"Basic {basic}" or form.get("refresh_token") == [REFRESH]
            if known or (proxy.anonymous and not self.headers.get("Authorization")):
                self._answer(200, {}, json.dumps({"access_token": TOKEN}).encode())
            else:
                self._answer(401, {}, b"{}")

        def _forward(self, body: bytes, fault: Fault | None) -> None:
            with contextlib.closing(http.client.HTTPConnection(proxy.upstream, timeout=60)) as upstream:
                upstream.request(self.command, self.path, body, dict(self.headers))
                answer = upstream.getresponse()
                content = answer.read()
            content = fault.change(content) if fault and fault.change else content
            headers = {**dict(answer.getheaders()), **(fault.headers if fault else {})}
            self._answer(answer.status, headers, content, fault.silent if fault else 0.0)

        def _answer(self, status: int, headers: dict[str, str], body: bytes, silent: float = 0.0) -> None:
            self.send_response(status)
            for key, value in headers.items():
                if key.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                    self.send_header(key, value)
            length = headers.get("Content-Length", str(len(body))) if self.command == "HEAD" else str(len(body))
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command == "HEAD":
                return
            try:
                for at in range(0, len(body), 1 if silent else len(body) or 1):
                    time.sleep(silent)
                    self.wfile.write(body[at : at + 1] if silent else body)
            except OSError:
                self.close_connection = True  # the client didn't wait

    return Handler
