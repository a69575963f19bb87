"""A stand-in for dask that starts fast and does nothing: for tests of who notices what."""

from pathlib import Path

IMPORT = """
import os, threading, time
if os.environ.get("IMPORT") == "thread":
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
if os.environ.get("IMPORT") == "hangs":
    print("imports", flush=True)
    time.sleep(600)
"""
SCHEDULER = """
import json, os, socket, time
class main:
    @staticmethod
    def main(args, prog_name):
        server = socket.create_server(("127.0.0.1", 0))
        path = args[args.index("--scheduler-file") + 1]
        with open(path + ".part", "w") as out:
            json.dump({"address": "tcp://127.0.0.1:%d" % server.getsockname()[1]}, out)
        os.rename(path + ".part", path)
        print("scheduler stands", flush=True)
        time.sleep(600)
"""
WORKER = """
import sys, time
class main:
    @staticmethod
    def main(args, prog_name):
        print(*sys.argv[2:4], flush=True)
        print("worker stands", flush=True)
        time.sleep(600)
"""
CORE = """
class Listener:
    async def on_connection(self, comm):
        pass
"""
REGISTRY = """
class Connector:
    async def connect(self):
        pass
class get_backend:
    def __init__(self, protocol):
        pass
    get_connector = Connector
"""
CLIENT = """
import errno, os, time
class Client:
    def __init__(self, address, **_):
        print("client stands", flush=True)
        if os.environ.get("CLIENT") == "fails":
            raise OSError("nobody there")
        if os.environ.get("CLIENT") == "can't write":
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        time.sleep(600)
"""


def write_dask(directory: Path) -> Path:
    """The modules of dask that a run's processes import, below a new directory; returns it."""
    files = {
        "dask/__init__.py": "class config:\n    config = {}\n",
        "distributed/__init__.py": CLIENT,
        "distributed/cli/__init__.py": IMPORT,
        "distributed/cli/dask_scheduler.py": SCHEDULER,
        "distributed/cli/dask_worker.py": WORKER,
        "distributed/comm/__init__.py": "connect = listen = None  # of workloads, which no test runs here\n",
        "distributed/protocol/__init__.py": "to_serialize = None\n",
        "distributed/comm/core.py": CORE,
        "distributed/comm/registry.py": REGISTRY,
    }
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory
