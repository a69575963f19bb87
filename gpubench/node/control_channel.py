"""The line between the supervisors of one run: JSON lines over TCP, and a heartbeat.

Nobody hangs with the file system: rank 0 hears of a dead worker elsewhere at once, and the other ranks learn within
seconds that rank 0 is done or dead. One thread, one selector: forking from a threaded process is not safe.
"""

import contextlib
import errno
import json
import resource
import selectors
import socket
import time
from typing import Any, Dict, List, Optional, Set

BEAT_S = 2.0
HELLO_S = 30.0
"""Within which a caller has to name itself: a stranger that says nothing would keep its file handle for ever."""
LARGEST_LINE = 64 * 1024 * 1024  # a failed run's logs travel in one message

Message = Dict[str, Any]
FACTS, OVER, STOP = "facts", "over", "stop"
"""Kinds of messages from rank 0: where the cluster is; that it has done with an earlier run; that this run ends."""


class Connection:
    """One connection: whole messages in, whole messages out."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.rank: Optional[int] = None
        self.began = self.heard = time.monotonic()
        self.beaten = 0.0
        self._rest = bytearray()
        self._kept: List[Message] = []
        self.open = True

    def send(self, message: Message) -> None:
        """Send, or mark the line as closed."""
        try:
            self.sock.settimeout(5.0)
            self.sock.sendall(json.dumps(message).encode("utf-8") + b"\n")
        except OSError:
            self.open = False

    def beat(self) -> None:
        """A sign of life when the last one is old enough."""
        now = time.monotonic()
        if now - self.beaten > BEAT_S:
            self.beaten = now
            self.send({"kind": "beat"})

    def receive(self) -> List[Message]:
        """The whole messages that have arrived; heartbeats only renew ``heard``."""
        kept, self._kept = self._kept, []
        return [*kept, *self._arrived()]

    def put_back(self, messages: List[Message]) -> None:
        """The next ``receive`` returns them first: whoever waited for one message hands on the others."""
        self._kept = [*messages, *self._kept]

    def _arrived(self) -> List[Message]:
        try:
            self.sock.settimeout(0.0)
            data = self.sock.recv(1 << 16)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data = b""
        if not data or len(self._rest) > LARGEST_LINE:
            self.open = False
            return []
        self.heard = time.monotonic()
        self._rest += data
        if b"\n" not in data:
            return []
        *whole, self._rest = self._rest.split(b"\n")
        messages = [_decode(line) for line in whole]
        return [message for message in messages if message and message.get("kind") != "beat"]

    def silence(self) -> float:
        """Seconds since the last sign of life."""
        return time.monotonic() - self.heard

    def finish(self, timeout_s: float) -> None:
        """Close when the other end has read everything.

        A plain close with unread heartbeats in the buffer resets the connection, and what is still on its way is lost.
        """
        deadline = time.monotonic() + timeout_s
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
            self.sock.settimeout(timeout_s)
            while self.sock.recv(1 << 16) and time.monotonic() < deadline:
                pass
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.open = False
        with contextlib.suppress(OSError):
            self.sock.close()


def _decode(line: bytearray) -> Optional[Message]:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


class ControlServer:
    """The leader's end: one line per other rank. A caller without the run's token is shown the door.

    ``order`` is the run's place in its block: on a ``port`` that all runs of a job share, who is still at an earlier
    run is told that it is over, and who is ahead has to come again. ``welcome`` is what a caller hears first.
    """

    def __init__(self, host: str, token: str, *, port: int = 0, order: int = 0) -> None:
        self.token = token
        self.order = order
        self.port_is_known = port != 0
        self.welcome: Optional[Message] = None
        self.lines: Dict[int, Connection] = {}
        self._strangers: Set[Connection] = set()
        self._beaten = 0.0
        self._listener = socket.create_server((host, port), backlog=4096)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.host, self.port = self._listener.getsockname()[:2]

    def poll(self, timeout_s: float) -> List[Message]:
        """Wait at most ``timeout_s`` for messages; each carries the sender's ``rank``."""
        found: List[Message] = []
        for key, _ in self._selector.select(timeout_s):
            if key.fileobj is self._listener:
                self._accept()
            elif key.data is not None:
                found.extend(self._read(key.data))
        now = time.monotonic()
        if now - self._beaten > BEAT_S:
            self._beaten = now
            self.broadcast({"kind": "beat"})
            for line in [line for line in self._strangers if now - line.began > HELLO_S]:
                self._drop(line)
        return found

    def wake_on(self, sock: socket.socket) -> None:
        """Let ``poll`` return when there is something to read from a socket that isn't ours."""
        self._selector.register(sock, selectors.EVENT_READ)

    def send(self, rank: int, message: Message) -> None:
        """Send to one rank, if it is there."""
        if rank in self.lines and self.lines[rank].open:
            self.lines[rank].send(message)

    def broadcast(self, message: Message) -> None:
        """Send to every rank that is still there."""
        for line in self.lines.values():
            if line.open:
                line.send(message)

    def gone(self, silence_s: float) -> List[int]:
        """Ranks whose line is closed or has been silent for too long."""
        return [rank for rank, line in self.lines.items() if not line.open or line.silence() > silence_s]

    def forget(self, rank: int) -> None:
        """Close the line of a rank that is gone; it may join again."""
        self._drop(self.lines.pop(rank))

    def close(self) -> None:
        """Close every line and the listener."""
        for line in [*self.lines.values(), *self._strangers]:
            line.close()
        self._selector.close()
        self._listener.close()

    def _drop(self, line: Connection) -> None:
        self._strangers.discard(line)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(line.sock)
        line.close()

    def _accept(self) -> None:
        """Everybody who is at the door."""
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.EMFILE or not _may_open_more():
                    raise
                continue
            line = Connection(sock)
            self._strangers.add(line)
            self._selector.register(sock, selectors.EVENT_READ, line)

    def _read(self, line: Connection) -> List[Message]:
        messages = line.receive()
        if line.rank is None and messages:
            hello = messages[0]
            if hello.get("kind") != "hello" or hello.get("token") != self.token:
                line.open = False
                messages = []
            elif hello.get("order", 0) != self.order:
                if hello.get("order", 0) < self.order:
                    line.send({"kind": OVER})
                line.open = False
                messages = []
            else:
                line.rank = int(hello["rank"])
                self.lines[line.rank] = line
                self._strangers.discard(line)
                if self.welcome is not None:
                    line.send(self.welcome)
        if not line.open:
            self._drop(line)
        return [dict(message, rank=line.rank) for message in messages]


def _may_open_more() -> bool:
    """Raise the limit of open files, 1024 on many systems; not before it is reached, so that no child inherits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft != hard


def join(
    host: str, port: int, token: str, *, rank: int, facts: Message, timeout_s: float, order: int = 0
) -> Connection:
    """Connect to rank 0 and say who this is.

    Raises:
        OSError: rank 0 doesn't answer.
    """
    line = Connection(socket.create_connection((host, port), timeout=timeout_s))
    line.send({"kind": "hello", "token": token, "rank": rank, "order": order, "facts": facts})
    return line
