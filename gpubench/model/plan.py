"""The plan: what will be run, on which nodes, in which order, and what can be concluded. Written once, never edited."""

from collections.abc import Iterable, Iterator
from typing import Literal

import pydantic

from gpubench.model.base import PathPart, Record, Settings
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.model.variant import Variant
from gpubench.node.spec import WorkloadSpec

PLAN = "gpubench/plan/1"
PLAN_ADDITION = "gpubench/plan-addition/1"


class PlannedVariant(Variant):
    """A variant with its image; ``image`` is None while it isn't built (scripts render, submit refuses)."""

    image: Image | None


class PlannedRun(Settings):
    """One variant in one block. ``run`` is the hash of its plan row; ``order`` its place in the block, from 0."""

    run: PathPart
    variant: str
    order: int
    workloads: list[str]
    """``params_id`` of the workloads in the order in which this run takes them."""


class PlannedTurn(Settings):
    """``reps`` timed repetitions of one workload (its ``params_id``) by one variant, before another has its turn."""

    variant: str
    workload: str
    reps: int


class PlannedBlock(Settings):
    """One pass over all variants. ``replaces`` names the broken block that this one makes good, if any.

    ``turns`` are those of an interleaved block, in their order; its clusters start and end in the order of ``runs``.
    """

    block: int
    runs: list[PlannedRun]
    replaces: int | None = None
    turns: list[PlannedTurn] = pydantic.Field(default_factory=list)

    def spec_path(self, run: PlannedRun) -> str:
        """Where the spec of a run stands, below the directory of its job."""
        return f"specs/{self.block:03d}-{run.order}-{run.run}.json"

    @property
    def turns_path(self) -> str:
        """Where the spec of its turns stands."""
        return f"specs/{self.block:03d}-turns.json"


Place = tuple[int, int]
"""Nodes and workers per node: what two runs must have in common to be compared, and blocks to count together."""


class PlannedJob(Settings):
    """One allocation at one node count, its runs with so many workers on each node.

    ``limit_s`` is its time limit, ``memory_limit`` bytes per worker; 0: half of the node's over its workers, worked out
    on the node.
    """

    job: PathPart
    nodes: int
    workers_per_node: int
    memory_limit: int
    limit_s: float
    blocks: list[PlannedBlock]

    @property
    def place(self) -> Place:
        return self.nodes, self.workers_per_node


def numbers_of_blocks(jobs: Iterable[PlannedJob]) -> dict[str, list[int]]:
    """Of all their blocks, by job."""
    return {job.job: [block.block for block in job.blocks] for job in jobs}


class Comparison(Settings):
    """One member of the family: a cell of the candidate against the same cell of the baseline."""

    workload: str
    backend: str
    params_id: str
    nodes: int
    workers_per_node: int
    threads_per_worker: int
    baseline: str
    candidate: str

    @property
    def place(self) -> Place:
        return self.nodes, self.workers_per_node


class PowerPrediction(Settings):
    """What the planned blocks can do for one workload at one place; effects are ratios minus one.

    ``sigma`` is σ_d of an earlier campaign of this shape in logs, ``sigma_upper`` its 80 % upper limit; ``detectable``
    and ``detectable_upper`` the effects found with the wished power at the one and the other. Blocks: None above 200.
    """

    workload: str
    params_id: str
    nodes: int
    workers_per_node: int
    sigma: float
    sigma_upper: float
    detectable: float
    detectable_upper: float
    blocks_for_margin: int | None
    blocks_for_equivalence: int | None


class AppliedIssue(Settings):
    """A known issue that concerns one variant at one node count; ``variant`` is its label.

    ``env`` is what it sets for all variants at that node count: what one of them alone had would be compared too.
    """

    name: str
    action: Literal["skip", "warn", "env"]
    why: str
    nodes: int
    variant: str
    env: dict[str, str] = pydantic.Field(default_factory=dict)


class TimeModel(Settings):
    """Where the minutes come from: seconds of one run and of one block, and what the numbers rest on."""

    run_s: float
    block_s: float
    total_s: float
    source: str


class Plan(Record):
    """A campaign as planned."""

    schema_: str = pydantic.Field(alias="schema", default=PLAN)
    campaign: PathPart
    created_at: str
    gpubench: str
    seed: int
    site: Site
    suite: str
    workloads: list[WorkloadSpec]
    variants: list[PlannedVariant]
    protocol: str
    device: str
    threads_per_worker: int
    margin: float
    jobs: list[PlannedJob]
    comparisons: list[Comparison]
    foreseen: list[PowerPrediction] = pydantic.Field(default_factory=list)
    known_issues: list[AppliedIssue] = pydantic.Field(default_factory=list)
    time: TimeModel
    budget_s: float | None
    notes: list[str]
    first_pass: str = ""
    """Campaign of the one run from which the repetitions follow; empty where the suite or the user said them."""

    @property
    def baseline(self) -> str:
        """Label of the first variant."""
        return self.variants[0].label

    @property
    def places(self) -> list[Place]:
        """All of them, ascending."""
        return sorted({job.place for job in self.jobs})

    @property
    def listeners(self) -> str:
        """Where scheduler, workers and clients of its runs listen, and which connections they accept."""
        where = "every interface of their nodes" if self.protocol == "ucx" else f"{self.site.interface} only"
        return f"{where}; a connection without the job's secret is refused"

    def variant(self, label: str) -> PlannedVariant | None:
        return next((variant for variant in self.variants if variant.label == label), None)

    def memory_limit(self, place: Place) -> int:
        """Bytes per worker there; 0: worked out on the node."""
        return next(job.memory_limit for job in self.jobs if job.place == place)

    def skip_reason(self, nodes: int, *variants: str) -> str:
        """Why runs of one of these variants at this node count are planned to be skipped; empty where they aren't."""
        return next(
            (
                issue.why
                for issue in self.known_issues
                if issue.action == "skip" and issue.nodes == nodes and issue.variant in variants
            ),
            "",
        )

    def workarounds(self, nodes: int) -> dict[str, str]:
        """Variables that known issues set in every run at this node count."""
        return {name: value for issue in self.known_issues if issue.nodes == nodes for name, value in issue.env.items()}

    def runs(self) -> Iterator[tuple[PlannedJob, PlannedBlock, PlannedRun]]:
        """Every planned run, in the order in which it is planned to run."""
        for job in self.jobs:
            for block in job.blocks:
                for run in block.runs:
                    yield job, block, run


class PlanAddition(Record):
    """What going on with a campaign appends to its plan; ``plan.json`` itself is never rewritten."""

    schema_: str = pydantic.Field(alias="schema", default=PLAN_ADDITION)
    created_at: str
    reason: str
    jobs: list[PlannedJob]
