"""The connection between the supervisors of one run: JSON lines over TCP, and a heartbeat.

It does not depend on the file system: rank 0 learns of a dead worker on another node at once, and the other ranks learn
within seconds that rank 0 is done or dead. It uses one thread and one selector, because forking a threaded process is
unsafe.
"""

import contextlib
import errno
import json
import resource
import selectors
import socket
import time
from typing import Any, Dict, List, Optional, Set

from gpubench.node.spec.plain import parse_json

BEAT_S = 2.0
HELLO_S = 30.0
"""A caller that has not sent its rank within this time is disconnected: it would keep a file handle for ever."""
LARGEST_LINE = 64 * 1024 * 1024  # a failed run's logs travel in one message

Message = Dict[str, Any]
FACTS, OVER, STOP = "facts", "over", "stop"
"""Kinds of messages from rank 0: where the cluster is; an earlier run is over; this run ends."""


class Connection:
    """One connection: whole messages in, whole messages out."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.rank: Optional[int] = None
        self.began = self.received_at = time.monotonic()
        self.beat_at = 0.0
        self._rest = bytearray()
        self._kept: List[Message] = []
        self.open = True

    def send(self, message: Message) -> None:
        """Send, or mark the connection as closed."""
        try:
            self.sock.settimeout(5.0)
            self.sock.sendall(json.dumps(message).encode("utf-8") + b"\n")
        except OSError:
            self.open = False

    def beat(self) -> None:
        now = time.monotonic()
        if now - self.beat_at > BEAT_S:
            self.beat_at = now
            self.send({"kind": "beat"})

    def receive(self) -> List[Message]:
        """The whole messages that have arrived; heartbeats only renew ``received_at``."""
        kept, self._kept = self._kept, []
        return [*kept, *self._arrived()]

    def put_back(self, messages: List[Message]) -> None:
        """Let the next ``receive`` return these messages first."""
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
        self.received_at = time.monotonic()
        self._rest += data
        if b"\n" not in data:
            return []
        *whole, self._rest = self._rest.split(b"\n")
        messages = [_decode(line) for line in whole]
        return [message for message in messages if message and message.get("kind") != "beat"]

    def silence(self) -> float:
        """Seconds since anything was received."""
        return time.monotonic() - self.received_at

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
        self.open = False
        with contextlib.suppress(OSError):
            self.sock.close()


def _decode(line: bytearray) -> Optional[Message]:
    try:
        message = parse_json(bytes(line))
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


class ControlServer:
    """The leader's end: one connection per other rank. A caller without the run's token is disconnected.

    ``order`` is the run's position in its block. Where all runs of a job share a ``port``, a caller of an earlier run
    is told that it is over, and a caller of a later run is disconnected and connects again. ``greeting`` is the first
    message to every rank.
    """

    def __init__(self, host: str, token: str, *, port: int = 0, order: int = 0) -> None:
        self.token = token
        self.order = order
        self.port_is_known = port != 0
        self.greeting: Optional[Message] = None
        self.connections: Dict[int, Connection] = {}
        self._unidentified: Set[Connection] = set()
        self._beat_at = 0.0
        self._listener = socket.create_server((host, port), backlog=4096)
        self._listener.setblocking(False)
        self._selector = selectors.EpollSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.host, self.port = self._listener.getsockname()[:2]

    def poll(self, timeout_s: float) -> List[Message]:
        """Wait at most ``timeout_s`` for messages; each carries the sender's ``rank``."""
        messages: List[Message] = []
        for key, _ in self._selector.select(timeout_s):
            if key.fileobj is self._listener:
                self._accept()
            elif key.data is not None:
                messages.extend(self._read(key.data))
        now = time.monotonic()
        if now - self._beat_at > BEAT_S:
            self._beat_at = now
            self.broadcast({"kind": "beat"})
            for connection in [connection for connection in self._unidentified if now - connection.began > HELLO_S]:
                self._drop(connection)
        return messages

    def fileno(self) -> int:
        """A handle that can be read when ``poll`` wouldn't wait."""
        return self._selector.fileno()

    def wake_on(self, sock: socket.socket) -> None:
        """Let ``poll`` return when there is something to read from a socket that isn't ours."""
        self._selector.register(sock, selectors.EVENT_READ)

    def wake_no_more_on(self, sock: socket.socket) -> None:
        """Forget a socket of ``wake_on``, for example one that is closed and therefore can always be read."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(sock)

    def send(self, rank: int, message: Message) -> None:
        if rank in self.connections and self.connections[rank].open:
            self.connections[rank].send(message)

    def broadcast(self, message: Message) -> None:
        for connection in self.connections.values():
            if connection.open:
                connection.send(message)

    def gone(self, silence_s: float) -> List[int]:
        """Ranks whose connection is closed or has been silent for too long."""
        return [
            rank
            for rank, connection in self.connections.items()
            if not connection.open or connection.silence() > silence_s
        ]

    def forget(self, rank: int) -> None:
        """Close the connection of a rank that is gone; it may join again."""
        self._drop(self.connections.pop(rank))

    def close(self) -> None:
        for connection in [*self.connections.values(), *self._unidentified]:
            connection.close()
        self._selector.close()
        self._listener.close()

    def _drop(self, connection: Connection) -> None:
        self._unidentified.discard(connection)
        self.wake_no_more_on(connection.sock)
        connection.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.EMFILE or not _may_open_more():
                    raise
                continue
            connection = Connection(sock)
            self._unidentified.add(connection)
            self._selector.register(sock, selectors.EVENT_READ, connection)

    def _read(self, connection: Connection) -> List[Message]:
        messages = connection.receive()
        if connection.rank is None and messages:
            hello = messages[0]
            is_ours = hello.get("kind") == "hello" and hello.get("token") == self.token
            order = hello.get("order", 0)
            if is_ours and order < self.order:
                connection.send({"kind": OVER})
            if not is_ours or order != self.order:
                connection.open, messages = False, []
            else:
                connection.rank = int(hello["rank"])
                self.connections[connection.rank] = connection
                self._unidentified.discard(connection)
                if self.greeting is not None:
                    connection.send(self.greeting)
        if not connection.open:
            self._drop(connection)
        return [dict(message, rank=connection.rank) for message in messages]


def _may_open_more() -> bool:
    """Raise the limit of open files, 1024 on many systems; not before it is reached, so that no child inherits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft != hard


def join(
    host: str, port: int, token: str, *, rank: int, facts: Message, timeout_s: float, order: int = 0
) -> Connection:
    """Connect to rank 0 and say who this is. Raises OSError: rank 0 doesn't answer."""
    connection = Connection(socket.create_connection((host, port), timeout=timeout_s))
    connection.send({"kind": "hello", "token": token, "rank": rank, "order": order, "facts": facts})
    return connection
