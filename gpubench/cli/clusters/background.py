"""The front end of a cluster's job where jobs end with theirs: a session of its own that outlives the command.

Started as ``python -I -m gpubench.cli.clusters.background SCHEDULER JOB_DIR [HOLD]``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from gpubench.cli.campaign.running import LOOK_S, interrupts
from gpubench.schedulers import ATTACHED
from gpubench.schedulers.job_environment import inherited

LOG = "front-end.log"


def start(scheduler: str, job_dir: Path, hold: int | None) -> subprocess.Popen[bytes]:
    """Start the front end; ``hold`` is the machine's turn, which it keeps for the job."""
    words = [sys.executable, "-I", "-m", __name__, scheduler, str(job_dir), *([] if hold is None else [str(hold)])]
    with (job_dir / LOG).open("ab") as log:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=() if hold is None else (hold,),
        )


def main(scheduler: str, job_dir: str, hold: str = "") -> int:
    """Hold the job until it has ended; its exit code."""
    with interrupts() as interrupted:
        running = ATTACHED[scheduler].submit(Path(job_dir), inherited(os.environ), int(hold) if hold else None)
        while not running.ended() and not interrupted:
            time.sleep(LOOK_S)
        if interrupted:
            running.cancel()
        return running.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
