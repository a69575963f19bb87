"""The rank of this node in the job. A launcher that sets another variable needs a line here."""

from typing import Mapping, Optional

RANK_VARIABLES = (
    "GPUBENCH_RANK",  # fork and ssh launchers
    "SLURM_NODEID",  # srun, one supervisor per node
    "PMIX_RANK",  # jsrun and Open MPI, PMIx
    "OMPI_COMM_WORLD_RANK",  # Open MPI
    "JSM_NAMESPACE_RANK",  # jsrun
    "JOB_COMPLETION_INDEX",  # Kubernetes Indexed Job
)


class RankError(ValueError):
    """No rank, or one that doesn't fit the job."""


def find_rank(given: Optional[int], environ: Mapping[str, str], nodes: int) -> int:
    """The rank of this node, from 0.

    Args:
        given: ``--rank``, which overrides every variable.
        environ: the environment that the launcher made.
        nodes: how many nodes the run has.

    Raises:
        RankError: a variable isn't a number, the rank is out of range, or there is none and the run has several nodes.
    """
    rank = given
    source = "--rank"
    if rank is None:
        for name in RANK_VARIABLES:
            if name in environ:
                source = name
                try:
                    rank = int(environ[name])
                except ValueError as error:
                    raise RankError(f"{name}={environ[name]!r} is no rank") from error
                break
    if rank is None:
        if nodes > 1:
            raise RankError(f"a run on {nodes} nodes needs --rank, or one of {', '.join(RANK_VARIABLES)}")
        return 0
    if not 0 <= rank < nodes:
        raise RankError(f"{source} {rank} is not within the {nodes} nodes of the run")
    return rank
