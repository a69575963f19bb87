"""The configuration of a run's UCX, as its own ``ucx_info`` prints it on the run's node."""

import subprocess
from typing import Dict, Mapping

from gpubench.node.spec.records import UCX_CONFIGURATIONS
from gpubench.node.workloads.programs import program_of

_ANSWER_S = 20.0


def configurations(library: str, environment: Mapping[str, str]) -> Dict[str, str]:
    """Two answers, by file name: what differs between them is derived from the machine. Empty where there is none.

    Args:
        library: path of the libucp that the run's processes have loaded.
        environment: of the run; without its ``UCX_*``, so that defaults are printed.
    """
    program = program_of(library, "ucx_info")
    if not program:
        return {}
    plain = {name: value for name, value in environment.items() if not name.startswith("UCX_")}
    try:
        return {
            name: subprocess.run(
                [program, "-c", "-a", "-f"],
                env=plain,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_ANSWER_S,
                check=False,
            ).stdout.decode("utf-8", "replace")
            for name in UCX_CONFIGURATIONS
        }
    except (OSError, subprocess.TimeoutExpired):
        return {}
