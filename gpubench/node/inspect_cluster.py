"""``node.pyz look``: the versions of a standing cluster's processes, and one question to all of them."""

import contextlib
import pkgutil
from pathlib import Path
from typing import Any, Dict, List

from gpubench.node import process
from gpubench.node.spec.cluster import INSPECT_RECORD, InspectRecord
from gpubench.node.writer.atomic import write_atomic

MUST_AGREE = ("python", "dask", "distributed")
SHOULD_AGREE = ("numpy", "pandas", "cloudpickle", "msgpack", "tornado")


def look(address: str, record_file: Path, *, connect_s: float, answer_s: float) -> int:
    """Inspect the cluster of the scheduler at ``address``, and write the record; returns the process's exit code.

    The scheduler may take ``connect_s`` seconds to answer. Workers are also asked where they may run if ``answer_s``
    isn't 0; one that is busy may take so many seconds.
    """
    from distributed import Client

    record = InspectRecord(schema=INSPECT_RECORD)
    try:
        client = Client(address, timeout=connect_s, name="gpubench-look", set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:  # no answer, no keys, no binding ...
        record.unreachable = str(error).strip().split("\n")[0][:200] or type(error).__name__
    else:
        with contextlib.closing(client):
            answers = client.get_versions(check=False)
            processes = {"client": answers["client"], "scheduler": answers["scheduler"], **answers["workers"]}
            record.versions = {name: _versions(answer) for name, answer in processes.items()}
            if len({tuple(map(known.get, MUST_AGREE)) for known in record.versions.values()}) == 1:
                record.processes = _ask(client, answer_s)  # other versions couldn't read the question
    write_atomic(record_file, record.dump().encode("utf-8"))
    return 0


def _versions(answer: Any) -> Dict[str, str]:
    """By package; Python's as major.minor. A worker that didn't answer has none."""
    packages = answer.get("packages", {}) if isinstance(answer, dict) else {}
    versions = {str(name): str(version) for name, version in dict(packages).items()}
    if "python" in versions:
        versions["python"] = ".".join(versions["python"].split(".")[:2])
    return {name: versions[name] for name in (*MUST_AGREE, *SHOULD_AGREE) if name in versions}


def _ask(client: Any, answer_s: float) -> List[Dict[str, Any]]:
    """The scheduler's answer, and those of the workers that it knows."""
    carried = {"__name__": "__main__"}
    exec(pkgutil.get_data("gpubench.node", "inspect_sender.py") or b"", carried)  # noqa: S102 - our own file
    question = (carried["ask"], Path(process.archive()).read_bytes())
    scheduler = client.run_on_scheduler(*question, "of_scheduler")
    workers = client.run(*question, "of_worker", answer_s)
    known = scheduler.pop("workers")
    return [scheduler, *({**known[at], **answer} for at, answer in sorted(workers.items()) if at in known)]
