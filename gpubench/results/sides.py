"""Two campaigns or imports as two sides of one question: which of their cells may be held against each other. Pure."""

import dataclasses
from collections.abc import Iterator, Sequence

from gpubench.errors import DataError, UsageError
from gpubench.model.base import nearest
from gpubench.model.quantities import format_bytes
from gpubench.model.text import counted
from gpubench.render.shell import command_line
from gpubench.results.curves import workload_of
from gpubench.results.imports import pooled, sortable
from gpubench.results.results import Results
from gpubench.stats.data import CellRun, ComparisonInput, Key
from gpubench.stats.question import Question

_QUESTION = ("workload", "backend", "params")


@dataclasses.dataclass(frozen=True)
class SideLayout:
    """How the workers of a cluster stood: what isn't recorded is None. ``memory`` is bytes of all workers of a node."""

    workers: int
    processes: int | None
    threads: int | None
    memory: int | None

    def __str__(self) -> str:
        first = f"{self.workers} in all" if self.processes is None else str(self.processes)
        memory = "memory not recorded" if self.memory is None else format_bytes(self.memory)
        return f"{first} x {'?' if self.threads is None else self.threads} x {memory}"

    def unlike(self, other: "SideLayout") -> bool:
        """Whether anything that both recorded differs."""
        both = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return any(None not in pair and pair[0] != pair[1] for pair in both)

    def unknown(self, other: "SideLayout") -> list[str]:
        """What only one of them, or none, recorded."""
        names = {"processes": "processes per node", "threads": "threads per process", "memory": "memory per node"}
        return [text for name, text in names.items() if None in (getattr(self, name), getattr(other, name))]


@dataclasses.dataclass(frozen=True)
class SideCell:
    """A cell of one side under the variant that was chosen there.

    Args:
        question: what was measured; no size of the cluster, nothing of the machine.
        units: worker threads of the cluster.
    """

    question: Key
    units: int
    layout: SideLayout
    protocol: str | None
    device: str | None
    runs: list[CellRun] = dataclasses.field(default_factory=list, compare=False)

    def refusal(self, other: "SideCell") -> str:
        """Why the two can't be compared; empty where they can."""
        if self.layout.unlike(other.layout):
            return f"layout: {self.layout} against {other.layout} (processes x threads x memory of a node)"
        if None not in (self.device, other.device) and self.device != other.device:
            return f"device: {self.device} against {other.device}"
        return ""


def two_sides(first: Results, second: Results, question: Question, *, every: bool = True) -> Results:
    """Both as one: cells of the same question and size, of one variant of each, whose labels say the side.

    Args:
        every: where no variant is named, compare each that both have as one family.

    Raises:
        UsageError: it isn't clear which variants are meant, or one isn't there; one side is a copy of the other.
        DataError: the sides have no cell in common.
    """
    if _measured(first) & _measured(second):
        raise UsageError(
            f"{first.place} and {second.place} hold the same runs", then="one is a copy of the other: compare one alone"
        )
    common = [(label, label) for label in first.variants if label in second.variants]
    if not every or question.baseline or question.candidate or len(common) < 2:
        common = [_choose(first.variants, second.variants, question.baseline, question.candidate)]
    pairs = [_Sides(first, second, *variants) for variants in common]
    pairs = [pair for pair in pairs if pair.matched]
    if not pairs:
        raise DataError(
            f"{first.place} and {second.place} have no cell in common: no workload with the same parameters at the "
            "same size",
            then="gpubench report --only scaling of each shows what they hold",
        )
    comparisons = [comparison for pair in pairs for comparison in pair.comparisons()]
    runs = [run for pair in pairs for run in pair.runs()]
    return Results(
        kind="sides",
        name=" and ".join(f"{pair.labels[1]} against {pair.labels[0]}" for pair in pairs),
        place=second.place,
        variants=list(dict.fromkeys(label for pair in pairs for label in pair.labels)),
        keys=sorted({run.key for run in runs}, key=sortable),
        runs=runs,
        family=lambda _question: comparisons,
        plans=[results.plan for results in (first, second) if results.plan],
        lone=list(dict.fromkeys((letter, _key(cell)) for pair in pairs for letter, cell in pair.lone)),
        notes=list(dict.fromkeys(note for pair in pairs for note in pair.notes())),
    )


def _measured(results: Results) -> set[tuple[str, str, float]]:
    """Of a campaign: its name, the ids of its runs, and when each began; together only a copy has the same."""
    name = results.plan.campaign if results.plan else ""
    return {(name, run.run, run.started_at) for run in results.runs if name and run.started_at is not None}


def _choose(
    first: Sequence[str], second: Sequence[str], baseline: str | None, candidate: str | None
) -> tuple[str, str]:
    """Of A and of B: those that are named, else the only one that both have."""
    for name, variants, option in ((baseline, first, "--baseline"), (candidate, second, "--candidate")):
        if name is not None and name not in variants:
            raise UsageError(
                f"{option}: no variant '{name}'{nearest(name, variants)}", then=f"there are {', '.join(variants)}"
            )
    common = [label for label in first if label in second]
    if baseline is not None and candidate is not None:
        return baseline, candidate
    named = baseline or candidate
    if named is not None and named in common:
        return named, named
    if named is None and len(common) == 1:
        return common[0], common[0]
    what = f"both have {', '.join(common)}" if common else "no variant is in both"
    raise UsageError(
        f"{what}: A has {', '.join(first)}; B has {', '.join(second)}",
        then="say which: --baseline VARIANT-OF-A --candidate VARIANT-OF-B (one is enough if both have it)",
    )


class _Sides:
    """One variant of each side, and which of their cells match."""

    def __init__(self, first: Results, second: Results, baseline: str, candidate: str) -> None:
        self.both = (first, second)
        self.variants = (baseline, candidate)
        self.labels = (f"A {first.name} {baseline}", f"B {second.name} {candidate}")
        self.matched, self.lone = _match(*(_cells(*side) for side in zip(self.both, self.variants, strict=True)))

    def runs(self) -> Iterator[CellRun]:
        """The runs of every question that both have, each with the label of its side."""
        questions = {first.question for first, _ in self.matched}
        for side, label in enumerate(self.labels):
            matched = {id(pair[side]): pair[side] for pair in self.matched}.values()
            lone = [cell for letter, cell in self.lone if letter == "AB"[side] and cell.question in questions]
            for cell in (*matched, *lone):
                yield from (dataclasses.replace(run, key=_key(cell), variant=label, origin=label) for run in cell.runs)

    def comparisons(self) -> Iterator[ComparisonInput]:
        """One per matched cell; those that are refused stay in the family."""
        for first, second in self.matched:
            runs = [
                dataclasses.replace(run, variant=label, origin=label)
                for label, cell in zip(self.labels, (first, second), strict=True)
                for run in pooled(cell.runs)
            ]
            notes = ["protocol"] if first.protocol != second.protocol else []
            notes += ["layout-unknown"] if first.layout.unknown(second.layout) else []
            yield ComparisonInput(
                dict(_key(first)), *self.labels, runs, 0, refused=first.refusal(second), notes=tuple(notes)
            )

    def _images(self) -> set[str]:
        """The ids of the images that were planned, as far as they are known."""
        pairs = zip(self.both, self.variants, strict=True)
        planned = (results.plan.variant(label) for results, label in pairs if results.plan)
        return {variant.image.id for variant in planned if variant and variant.image}

    def notes(self) -> Iterator[str]:
        """Facts that aren't recorded, cells that aren't compared, and how to see what else differs."""
        for letter, results, variant in zip("AB", self.both, self.variants, strict=True):
            every = {run.run for run in results.runs if run.variant == variant}
            if bad := {run.run for run in results.runs if run.variant == variant and run.status != "ok"}:
                yield f"{letter}: {len(bad)} of {counted(len(every), 'run')} of {variant} aren't ok, or only in part"
        if self.variants[0] == self.variants[1] and len(self._images()) == 2:
            yield f"{self.variants[0]} is another image on each side"
        refused = sum(bool(first.refusal(second)) for first, second in self.matched)
        if refused:
            yield (
                f"{refused} of {len(self.matched)} cells are refused: a difference in layout or device is no effect of "
                "UCX; plan both sides alike (interleaved clusters share a node's memory, so with as many variants)"
            )
        fair = [(first, second) for first, second in self.matched if not first.refusal(second)]
        if unknown := sorted({word for first, second in fair for word in first.layout.unknown(second.layout)}):
            yield (
                f"layout-unknown: {', '.join(unknown)} not recorded on both sides, so it is unknown whether they are "
                "alike"
            )
        protocols = {(first.protocol, second.protocol) for first, second in self.matched}
        for before, after in sorted(protocols, key=str):
            if before != after:
                yield f"protocol: {before or 'not recorded'} against {after or 'not recorded'}"
        yield from (results.caution for results in self.both if results.caution)
        if all(results.plan for results in self.both):
            diff = command_line(["gpubench", "diff", *(str(results.place) for results in self.both)])
            yield f"what else differs between the sides: {diff}"


def _key(cell: SideCell) -> Key:
    layout = {"workers_per_node": cell.layout.processes, "threads_per_worker": cell.layout.threads}
    counts = ((name, count) for name, count in layout.items() if count is not None)
    return (*cell.question, ("workers", cell.layout.workers), *counts)


def _cells(results: Results, variant: str) -> list[SideCell]:
    """The cells of a variant; runs of unknown size are in none."""
    cells: dict[SideCell, SideCell] = {}
    for run in results.runs:
        if run.variant == variant and run.workers is not None:
            cell = _cell(results, run)
            cells.setdefault(cell, cell).runs.append(run)
    return list(cells)


def _cell(results: Results, run: CellRun) -> SideCell:
    key = dict(run.key)
    processes, threads = key.get("workers_per_node"), key.get("threads_per_worker")
    memory = None
    if results.plan is not None and processes is not None:
        memory = processes * results.plan.memory_limit((key["nodes"], processes)) or None
    question = tuple(part for part in workload_of(run.key) if part[0] in _QUESTION)
    assert run.workers is not None
    layout = SideLayout(run.workers, processes, threads, memory)
    return SideCell(question, run.workers * (threads or 1), layout, key.get("protocol"), key.get("device"))


def _match(
    first: Sequence[SideCell], second: Sequence[SideCell]
) -> tuple[list[tuple[SideCell, SideCell]], list[tuple[str, SideCell]]]:
    """Cells of the same question and size, and those that only one side has (``A`` or ``B``)."""
    pairs: list[tuple[SideCell, SideCell]] = []
    met: set[int] = set()
    for cell in first:
        others = [other for other in second if (other.question, other.units) == (cell.question, cell.units)]
        alike = [other for other in others if not cell.refusal(other)]
        for other in alike or others:
            met |= {id(cell), id(other)}
            pairs.append((cell, other))
    pairs.sort(key=lambda pair: (str(pair[0].question), pair[0].units))
    lone = [(side, cell) for side, cells in (("A", first), ("B", second)) for cell in cells if id(cell) not in met]
    return pairs, lone
