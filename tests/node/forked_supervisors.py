"""As a program: the supervisors of many ranks as forks of one Python, each alone on a host of its own.

``python -I forked_supervisors.py NODE_PYZ STAND_IN FIRST LAST WORDS...`` runs ``node.pyz WORDS --rank N`` for each rank
from FIRST to LAST. What a supervisor starts is the program STAND_IN instead of Python. A host is a process id, a mount
and a host name namespace, with ``SCRATCHDIR`` below the one given. Prints a line of JSON for each host that has ended.
"""

import ctypes
import gc
import json
import os
import sys
from pathlib import Path

CLONE_NEWPID, CLONE_NEWNS, CLONE_NEWUTS = 0x20000000, 0x20000, 0x4000000  # linux/sched.h
MS_REC, MS_PRIVATE = 0x4000, 0x40000  # linux/mount.h
PR_SET_PDEATHSIG, SIGKILL = 1, 9  # linux/prctl.h
LIBC = ctypes.CDLL(None, use_errno=True)


def done(code: int) -> None:
    """Raise OSError if a call of the C library has failed."""
    if code:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def boot(name: str) -> None:
    """As the first process of a host: it ends with the program, and sees its own processes only."""
    done(LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL))
    done(LIBC.unshare(CLONE_NEWNS | CLONE_NEWUTS))
    done(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    done(LIBC.mount(b"proc", b"/proc", b"proc", 0, None))
    done(LIBC.sethostname(name.encode(), len(name)))
    os.environ["SCRATCHDIR"] = str(Path(os.environ["SCRATCHDIR"], name))
    Path(os.environ["SCRATCHDIR"]).mkdir()


def serve(words: list[str], rank: int, go: int) -> None:
    """Run the supervisor, once the pipe ``go`` is closed, and say how it ended and which processes it left."""
    from gpubench.node.main import main

    os.read(go, 1)
    os.close(go)
    pid = os.fork()
    if pid == 0:
        os._exit(main([*words, "--rank", str(rank)]))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    left = sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name != "1")
    os.write(1, json.dumps({"rank": rank, "code": code, "left": left}).encode() + b"\n")


def fork_hosts(node_pyz: str, stand_in: str, first: str, last: str, *words: str) -> None:
    """Start every host, then all supervisors at once, and wait for the end of all.

    Supervisors that wait for others use the processor, too: started one by one, they held up the forks behind them.
    """
    sys.path.insert(0, node_pyz)
    from gpubench.node import follower, main, run  # noqa: F401 - imported once, before the forks

    sys.argv = [node_pyz]
    sys.executable = stand_in
    gc.freeze()
    go, held = os.pipe()
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    for rank in range(int(first), int(last) + 1):
        done(LIBC.unshare(CLONE_NEWPID))  # of the next child
        if os.fork() == 0:
            os.close(held)
            boot(f"n{rank:04d}")
            serve(list(words), rank, go)
            os._exit(0)
        done(LIBC.setns(own, CLONE_NEWPID))
    os.close(held)
    for _ in range(int(first), int(last) + 1):
        os.wait()


if __name__ == "__main__":
    fork_hosts(*sys.argv[1:])
