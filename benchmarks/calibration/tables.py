"""The tables of the proof, printed as they are filled."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from benchmarks.calibration import store_path, whole_path
from benchmarks.calibration.alarms import count_alarms
from benchmarks.calibration.noise import MODELS, Noise, Shape
from benchmarks.calibration.powers import die, find


def alarms(options: argparse.Namespace) -> None:
    """False alarms and coverage of fixed plans."""
    print(
        f"A/A, fixed plans, {options.variants} variants: campaigns with any Holm rejection in % (95 % upper bound) | "
        "coverage | alarms at the margin"
    )

    def shape(cells: int, blocks: int) -> Shape:
        return Shape(options.campaigns, cells, blocks, variants=options.variants)

    worst: list[tuple[float, float, str]] = []
    for model in options.models:
        for cells in options.cells:
            results = [
                (blocks, count_alarms(options.seed, MODELS[model], shape(cells, blocks))) for blocks in options.blocks
            ]
            figures = [
                f"{_pc(a.rate)} ({_pc(a.upper)}) | {_pc(a.covered)} | {_pc(a.at_margin / a.campaigns)}"
                for _, a in results
            ]
            _row(f"{model}, {cells} cells", figures, options.blocks)
            worst += [(a.rate, a.upper, f"{model}, {cells} cells, {blocks} blocks") for blocks, a in results]
    rate, upper, where = max(worst)
    over = sum(upper > 0.065 for _, upper, _ in worst)
    print(f"highest of {len(worst)}: {_pc(rate)} ({_pc(upper)}) at {where}; {over} with an upper bound above 6.5 %")


def power(options: argparse.Namespace) -> None:
    """Chances of finding +3 % in the first cell, and of calling it equivalent."""
    print(
        "first cell +3 %, job sd 2 %: called regression in % | called equivalent at truth 0, 1 %, 3 % (the margin: ≤ 5)"
    )
    for restart in (0.004, 0.008, 0.015, 0.02):
        for cells in options.cells:
            figures = []
            for blocks in (5, 8, 12, 14):
                noise, shape = Noise(job=0.02, restart=restart), Shape(options.campaigns, cells, blocks)
                slower = find(options.seed, noise, shape, 0.03)
                same, little = (find(options.seed + 1, noise, shape, truth) for truth in (0.0, 0.01))
                equivalent = "/".join(_pc(found.equivalent) for found in (same, little, slower))
                figures.append(f"{_pc(slower.regression)} | {equivalent}")
            _row(f"restart {100 * restart:g} %, {cells} cells", figures, (5, 8, 12, 14))


def margin(options: argparse.Namespace) -> None:
    """Wrong ``equivalent`` at the margin under every model."""
    print("every cell at +3 %: called equivalent in % (goal ≤ 5, upper bound ≤ 6.5)")
    for model in options.models:
        shapes = [Shape(4 * options.campaigns, 1, blocks) for blocks in options.blocks]
        found = [find(options.seed, MODELS[model], shape, 0.03) for shape in shapes]
        _row(model, [_pc(one.equivalent) for one in found], options.blocks)


def stragglers(options: argparse.Namespace) -> None:
    """A candidate with stragglers that the baseline hasn't."""
    print("stragglers in the candidate only, restart 0.4 %, one cell: mean effect | regression % | equivalent %")
    for share, factor in ((0.05, 2.0), (0.1, 2.0), (0.02, 4.0)):
        for reps in (6, 30):
            noise = Noise(restart=0.004, factor=factor)
            shapes = [Shape(options.campaigns, 1, blocks, reps) for blocks in (5, 8, 12)]
            found = [find(options.seed, noise, shape, tail=share) for shape in shapes]
            figures = [f"{100 * one.effect:+.1f} % | {_pc(one.regression)} | {_pc(one.equivalent)}" for one in found]
            _row(f"{100 * share:g} % x{factor:g}, {reps} reps", figures, (5, 8, 12))


def dying(options: argparse.Namespace) -> None:
    """A candidate that dies in 30 % of blocks."""
    print("candidate dies in 30 % of blocks, restart 0.4 %, one cell: broken % | equivalent %")
    for exactly, words in ((True, "exactly 30 %, rounded up"), (False, "each block by chance")):
        shapes = [Shape(options.campaigns, 1, blocks) for blocks in (5, 8, 12)]
        found = [die(options.seed, Noise(restart=0.004), shape, 0.3, exactly) for shape in shapes]
        figures = [
            f"{_pc(one.broken)} | {_pc(one.equivalent)} (no block died: {_pc(0.7**n * (not exactly))})"
            for one, n in zip(found, (5, 8, 12), strict=True)
        ]
        _row(words, figures, (5, 8, 12))


def same_code(options: argparse.Namespace) -> None:
    """Sample tables through ``judge`` against the arrays."""
    campaigns = min(50, options.campaigns)
    print(
        f"verdicts that differ between sample table and arrays, {campaigns} campaigns of 6 cells and "
        f"{options.variants} variants each (should be 0)"
    )
    for model in options.models:
        shapes = [Shape(campaigns, 6, blocks, variants=options.variants) for blocks in options.blocks]
        _row(
            model,
            [str(whole_path.disagreements(options.seed, MODELS[model], shape)) for shape in shapes],
            options.blocks,
        )


def same_store(options: argparse.Namespace) -> None:
    """Campaigns on disk through accounting, merge and ``judge`` against the arrays."""
    shape = Shape(min(50, options.campaigns), cells=3, blocks=5, reps=4, variants=options.variants)
    print(
        f"verdicts that differ between plan, run directories and merge on the one side and arrays on the other, "
        f"{shape.campaigns} campaigns of {shape.cells} cells and {shape.variants} variants each, "
        f"{shape.reps} repetitions (should be 0)"
    )
    for model in options.models:
        different = store_path.disagreements(options.seed, MODELS[model], shape)
        _row(model, [f"{different} of {shape.campaigns * shape.cells * (shape.variants - 1)}"], [shape.blocks])


TABLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "same-code": same_code,
    "store-path": same_store,
    "alarms": alarms,
    "power": power,
    "margin": margin,
    "stragglers": stragglers,
    "dying": dying,
}


def _row(name: str, figures: Sequence[str], columns: Sequence[object], unit: str = "n") -> None:
    cells = "  ".join(f"{unit} {column}: {figure};" for column, figure in zip(columns, figures, strict=True))
    print(f"  {name:26} {cells}", flush=True)


def _pc(share: float) -> str:
    return f"{100 * share:.1f}"
