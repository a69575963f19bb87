"""``python -m benchmarks.bisection``: how often a search names a wrong change, and its cost, beside ``git bisect``."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.bisection.simulation import NOISY, QUIET, SHAPES, Truth, plain_bisection, search
from gpubench.stats.bisection import SearchAnswer, SearchSettings

SCATTERS = {"quiet": QUIET, "noisy": NOISY}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each shape, effect and scatter."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisection", description=__doc__)
    parser.add_argument("--searches", type=int, default=1000)
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--effects", type=int, nargs="+", default=[2, 3, 5], help="in margins")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    settings = SearchSettings()
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"{options.points} points, {options.searches} searches a row, seed {options.seed}, {load}")
    print("| shape | effect, margins | scatter | right | wrong | not confirmed | no answer | runs | git bisect right |")
    print("|---|---|---|---|---|---|---|---|---|")
    for shape in options.shapes:
        for effect in options.effects if shape != "no change" else [0]:
            for name, scatter in SCATTERS.items():
                words, runs, plain = Counter[str](), [], 0
                for number in range(options.searches):
                    rng = np.random.default_rng([options.seed, number, effect, len(shape), len(name)])
                    truth = SHAPES[shape](options.points, effect * settings.margin.log, rng)
                    answer, count = search(truth, scatter, settings, rng)
                    words[outcome(answer, truth)] += 1
                    runs.append(count)
                    plain += truth.is_right(*plain_bisection(truth, scatter, count, rng))
                shares = [words["right"], words["wrong"], words["not confirmed"]]
                shares.append(options.searches - sum(shares))
                cells = [f"{100 * share / options.searches:.1f} %" for share in shares]
                ends = f"{np.median(runs):.0f} | {100 * plain / options.searches:.0f} %"
                print(f"| {shape} | {effect} | {name} | {' | '.join(cells)} | {ends} |", flush=True)


def outcome(answer: SearchAnswer, truth: Truth) -> str:
    """``right`` where changes are named and all of them are, ``wrong`` where one isn't, else the search's own word."""
    if answer.word != "named":
        return answer.word
    return "right" if all(truth.is_right(change.low, change.high) for change in answer.shown) else "wrong"


if __name__ == "__main__":
    main()
