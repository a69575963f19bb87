"""Scratch directories of supervisors on a node: made, probed, and removed where a killed supervisor left one."""

import contextlib
import errno
import fcntl
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path
from typing import Tuple

HOLD = ".held"
"""Locked by its supervisor while that runs; holds the boot id of the kernel that keeps the lock, and the host name."""

FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Errors of a disk, which say nothing about the variant."""
PROBE_BYTES = 64 * 1024


def make(base: Path, name: str) -> Tuple[Path, int]:
    """A new directory ``gpubench-<name>-…`` below ``base``, and the handle that holds it until it is closed."""
    path = Path(tempfile.mkdtemp(prefix=f"gpubench-{name}-", dir=str(base)))
    handle = os.open(str(path / HOLD), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: what is left there stays
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, _kernel() + _host())
    return path, handle


def is_fault(error: BaseException) -> bool:
    """Whether a disk raised it."""
    return isinstance(error, OSError) and error.errno in FAULTS


def fault(directory: Path) -> str:
    """Where nothing can be written, and why; empty where something can."""
    probe = directory / ".probe"
    try:
        with probe.open("wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"{directory}: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    return ""


def clear(base: Path) -> None:
    """Remove the directories below ``base`` whose supervisors are dead; on a shared file system, only this node's.

    A directory of this host that another kernel held was left by a crash or a reboot.
    """
    for hold in base.glob(f"gpubench-*/{HOLD}"):
        with contextlib.suppress(OSError):
            # Anybody may put anything there: a link, or a pipe, which a plain open waits for.
            handle = os.open(str(hold), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(handle, "r+b", buffering=0) as file:
                status = os.fstat(handle)
                ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                held = file.read() if ours else b""
                if held.startswith(_kernel()) or (_host() and held.endswith(b"\n" + _host())):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(str(hold.parent), ignore_errors=True)


def _kernel() -> bytes:
    return Path("/proc/sys/kernel/random/boot_id").read_bytes()


def _host() -> bytes:
    """Empty where the name may be that of any machine."""
    name = socket.gethostname()
    return b"" if name.partition(".")[0] in ("", "localhost") else f"host {name}\n".encode()
