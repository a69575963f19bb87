"""What a launcher is: how a job starts one supervisor on every node, and what a plan has to know of it."""

import dataclasses
from collections.abc import Callable

from gpubench.model.site import Site


@dataclasses.dataclass(frozen=True)
class Launcher:
    """An adapter to a command that starts one process on every node.

    Args:
        schedulers: names of those whose jobs it can start.
        template: shell below ``templates/`` that defines ``launch COMMAND...`` and ``write_record COMMAND...``, and
            handles signals; empty where the job is no script.
        rank: variable that tells a supervisor which node it is on; a container has to get it.
        shape: words that the template gets as ``step_shape``: what every step says about itself, or how long it takes.
        check_steps: of a site, a number of nodes and workers on each: the arithmetic of a job's steps, to be printed;
            raises PlanRefusedError where a node can't hold them.
        has_launch_node: the job's script runs on none of its nodes, and can start a step beside the supervisors'.
        takes_options: the command takes the further options of ``launch.options``.
        can_interleave: a node can have the supervisors of several runs at the same time.
        has_one_block: a job holds one block; with any other launcher as many as surely fit into its time limit.
        brings_files: jobs bring all their files along, and nodes need not see a directory of the machine that submits.
    """

    schedulers: tuple[str, ...]
    template: str
    rank: str
    shape: Callable[[Site], list[str]] = lambda _site: []
    check_steps: Callable[[Site, int, int], list[str]] = lambda _site, _nodes, _workers: []
    has_launch_node: bool = False
    takes_options: bool = False
    can_interleave: bool = False
    has_one_block: bool = False
    brings_files: bool = False
