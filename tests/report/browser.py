"""A real headless Chromium, spoken to over the DevTools protocol (a pipe, so no port and no further library)."""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from tests.conftest import need

_SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]


def require_chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    need(found is not None, "chromium, to look at the report: apt-get install chromium")
    assert found is not None
    return found


class Page:
    """One tab. ``console``, ``errors`` and ``requests`` collect everything that the page says, throws and fetches."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.console: list[str] = []
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        os.write(
            self._to, json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False, mobile: bool = False) -> None:
        """Load ``url``."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 240
        while self.evaluate("document.readyState") != "complete" or self.evaluate("location.href") != url:
            assert time.monotonic() < deadline, "the page did not load within 240 s"
            time.sleep(0.05)

    def evaluate(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", answer))
        return answer["result"].get("value")

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], 240)
            assert ready, "chromium has not answered for 240 s"
            chunk = os.read(self._from, 1 << 16)
            assert chunk, "chromium ended"
            self._buffer += chunk
        raw, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(raw)
        self._record(message.get("method", ""), message.get("params", {}))
        return message

    def _record(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            words = [str(one.get("value", one.get("description"))) for one in params["args"]]
            self.console.append(f"{params['type']}: {' '.join(words)}")
        elif method == "Log.entryAdded":
            self.console.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:500])


@contextlib.contextmanager
def chromium() -> Iterator[Page]:
    """A tab in a fresh browser with a fresh profile, gone with everything it started when the block ends."""
    program = require_chromium()
    into_read, into_write = os.pipe()
    out_read, out_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # DevTools' pipe is descriptor 3 for commands and 4 for answers; a shell puts them there.
        moved = f'exec "$0" "$@" 3<&{into_read} 4>&{out_write}'
        process = subprocess.Popen(
            ["bash", "-c", moved, program, *_SWITCHES, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(into_read, out_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(into_read)
        os.close(out_write)
        try:
            yield Page(into_write, out_read)
        finally:
            with contextlib.suppress(OSError):
                os.write(into_write, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its children, too
            process.wait(60)
            os.close(into_write)
            os.close(out_read)
            time.sleep(0.2)  # the browser's own children may still be writing into the profile
