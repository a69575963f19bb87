"""The front end of a cluster's job where jobs end with theirs: a session of its own that outlives the command.

Started as ``python -I -m gpubench.clusters.background SCHEDULER JOB_DIR [LOCK]``.
"""

import os
import subprocess
import sys
from pathlib import Path

from gpubench.campaign.interrupts import LOOK_S, interrupts
from gpubench.polling import poll_until
from gpubench.schedulers import LOCAL
from gpubench.schedulers.batch import inherited

LOG = "front-end.log"


def start(scheduler: str, job_dir: Path, lock: int | None) -> subprocess.Popen[bytes]:
    """Start the front end; ``lock`` is the machine's, which it keeps for the job."""
    command = [sys.executable, "-I", "-m", __name__, scheduler, str(job_dir), *([] if lock is None else [str(lock)])]
    with (job_dir / LOG).open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=() if lock is None else (lock,),
        )


def main(scheduler: str, job_dir: str, lock: str = "") -> int:
    """Hold the job until it has ended; its exit code."""
    with interrupts() as interrupted:
        running = LOCAL[scheduler].submit(Path(job_dir), inherited(os.environ), int(lock) if lock else None)
        poll_until(lambda: running.ended() or interrupted, interval_s=LOOK_S)
        if interrupted:
            running.cancel()
        return running.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
