"""One storm: importers that share a folder, what they fetched, and whether each got the right bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import random
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gpubench.model.images_lock import LockRow
from gpubench.render.importing import squashfs_name
from tests.importing.nodes import Importer, item
from tests.importing.registry import Proxy, Registry

CHECK = 'unsquashfs -cat "$IMAGE" data 2>/dev/null | sha256sum | grep -q "$EXPECTED" || exit 99'
NAIVE = '[ -f "$IMAGE" ] || enroot import -o "$IMAGE" "$URI" || exit 1'
SPREAD_S = 2.0
LIMIT_S = 500.0


@dataclasses.dataclass(frozen=True)
class Result:
    """What a storm did. ``corrupt``: importers that were told all is well and found other bytes."""

    failed: int
    corrupt: int
    requests: int
    blobs: int
    seconds: float


@dataclasses.dataclass
class Storm:
    """``count`` importers of one image, ``naive`` or ours.

    Args:
        home: empty; becomes the shared folder and the nodes' own directories.
        refuse: answers requests in the registry's place.
        kill: kill the first importer with -9 as soon as it has begun to write its squashfs file.
    """

    home: Path
    registry: Registry
    count: int
    naive: bool
    kill: bool = False
    refuse: Callable[[str, int], int | None] | None = None
    image_bytes: int = 8 << 20

    def run(self) -> Result:
        """Start all, wait for all."""
        data = os.urandom(self.image_bytes)
        files = {"gpubench/manifest.json": b'{"build_id": "b"}', "data": data}
        digest = self.registry.push("storm", "image", files)
        folder = self.home / "shared"
        folder.mkdir(parents=True)
        began = time.monotonic()
        with self._proxy() as proxy:
            host = proxy.host
            row = item(host, digest, spec="1", build_id="b").model_copy(update={"registry": f"{host}/storm"})
            env = {
                "IMAGE": str(folder / ("x.sqsh" if self.naive else squashfs_name(digest))),
                "EXPECTED": hashlib.sha256(data).hexdigest(),
                "URI": f"docker://{host}#storm:image",
                "ENROOT_SQUASH_OPTIONS": "-comp gzip -processors 1",
                "GPUBENCH_IMPORT_PAUSE": "1",
                "GPUBENCH_IMPORT_TRIES": "8",
            }
            started = list(self._start(folder, row, env))
            codes = [each.wait(timeout=LIMIT_S) for each in started]
        others = codes[1:] if self.kill else codes
        return Result(
            failed=sum(code not in (0, 99) for code in others),
            corrupt=others.count(99),
            requests=len(proxy.paths),
            blobs=sum("/blobs/" in path for path in proxy.paths),
            seconds=time.monotonic() - began,
        )

    @contextlib.contextmanager
    def _proxy(self) -> Iterator[Proxy]:
        proxy = Proxy(self.registry.host, self.refuse)
        try:
            yield proxy
        finally:
            proxy.stop()

    def _start(self, folder: Path, row: LockRow, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
        """The first one is the leader; if it is to be killed, half of the others come after that."""
        delays = random.Random(7)
        for number in range(self.count):
            node = Importer(self.home / f"node{number}", folder)
            script = NAIVE if self.naive else f"bash {shlex.quote(str(node.write([row])))} || exit 1"
            process = subprocess.Popen(
                ["bash", "-c", f"{script}\n{CHECK}"],
                env={**node.env, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=(node.home / "said").open("w"),
                start_new_session=True,
                text=True,
            )
            if self.kill and number == 0:
                killer = threading.Thread(target=self._kill, args=(folder, process))
                killer.start()
            if self.kill and number == self.count // 2:
                killer.join()
            yield process
            time.sleep(delays.uniform(0, 2 * SPREAD_S / self.count))

    def _kill(self, folder: Path, leader: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + 60
        pattern = "x.sqsh" if self.naive else ".*.part/image.sqsh"
        while not list(folder.glob(pattern)) and time.monotonic() < deadline:
            time.sleep(0.002)
        os.killpg(leader.pid, signal.SIGKILL)


def rate_limit(per_second: int) -> Callable[[str, int], int | None]:
    """Answers 429 to what exceeds this many requests in one second."""
    served: list[float] = []
    lock = threading.Lock()

    def answer(_path: str, _count: int) -> int | None:
        with lock:
            now = time.monotonic()
            served[:] = [moment for moment in served if moment > now - 1]
            if len(served) >= per_second:
                return 429
            served.append(now)
            return None

    return answer
