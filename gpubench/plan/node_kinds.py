"""Kinds of nodes that a scheduler has, and whether those of a profile's queue are as the profile says. Pure."""

import dataclasses
from collections.abc import Iterator, Sequence

from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.plan.check_result import CheckResult


@dataclasses.dataclass(frozen=True)
class NodeKind:
    """Nodes of one queue that are alike.

    Args:
        queue: its name; ``default`` whether jobs go there that name none.
        nodes: how many there are.
        cores: hardware threads of each; ``memory_mib``: MiB of each; 0: not known.
        gpus: whole GPUs of each; None where the scheduler's answer doesn't tell.
        resources: in the scheduler's own words.
        limit: longest time of a job, in the scheduler's words.
    """

    queue: str
    default: bool
    nodes: int
    cores: int
    memory_mib: int
    gpus: int | None
    resources: str
    limit: str = ""

    def __str__(self) -> str:
        of_node = f"{self.cores} threads and {self.memory_mib // 1024} GiB each"
        parts = [counted(self.nodes, "node"), of_node, self.resources, self.limit]
        return f"{self.queue}: {', '.join(filter(None, parts))}"


def of_queue(kinds: Sequence[NodeKind], queue: str) -> list[NodeKind]:
    """Those of a queue; empty: of the default one."""
    return [kind for kind in kinds if (kind.queue == queue if queue else kind.default)]


def check_node_kinds(site: Site, kinds: Sequence[NodeKind]) -> Iterator[CheckResult]:
    """Whether ``node.gpus`` fits the nodes of the profile's queue; nothing where the scheduler has no such queue."""
    queue_kinds = of_queue(kinds, site.batch.queue)
    if not queue_kinds:
        return
    gpus, of_nodes = (
        site.node.gpus,
        f"{queue_kinds[0].queue}: " + "; ".join(str(kind).partition(": ")[2] for kind in queue_kinds),
    )
    if any(kind.gpus is None for kind in queue_kinds):
        yield CheckResult(None, f"node.gpus = {gpus} against {of_nodes}: slices of GPUs (MIG) are no whole GPUs")
    elif not gpus:
        unused = site.device != "cpu" and all(kind.gpus for kind in queue_kinds)
        say = f'node.gpus isn\'t set, and the nodes have GPUs: set it, or device = "cpu" ({of_nodes})'
        yield CheckResult(not unused, say if unused else f"a job asks for no GPUs of {of_nodes}")
    elif not site.batch.request_gpus:
        yield CheckResult(True, f"batch.request_gpus = false: a job doesn't ask for its {gpus} GPUs of {of_nodes}")
    else:
        fits = any(gpus <= (kind.gpus or 0) for kind in queue_kinds)
        other = (
            "no node of the queue has so many" if any(kind.gpus for kind in queue_kinds) else "the queue has no GPUs"
        )
        yield CheckResult(fits, f"node.gpus = {gpus}, {'as' if fits else f'and {other}:'} {of_nodes}")
