"""``python -m benchmarks.bisection.settings``: how often a search among settings names a wrong one, and its cost."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.bisection.simulation import NOISY, QUIET, SettingTruth, search_settings
from gpubench.stats.bisection import SearchSettings
from gpubench.stats.setting_search import SettingAnswer

COUNT = 8
SCATTERS = {"quiet": QUIET, "noisy": NOISY}


def one_setting(effect: float, rng: np.random.Generator) -> SettingTruth:
    """One of eight has the whole effect."""
    return SettingTruth(effect * (np.arange(COUNT) == rng.integers(COUNT)))


def two_settings(effect: float, rng: np.random.Generator) -> SettingTruth:
    """Two of eight: two fifths and three fifths of the effect."""
    shares = np.zeros(COUNT)
    shares[rng.choice(COUNT, 2, replace=False)] = (0.4, 0.6)
    return SettingTruth(effect * shares)


def with_code(effect: float, rng: np.random.Generator) -> SettingTruth:
    """One of eight has two thirds of the effect, the code of the version the rest; another one crashes."""
    cause, crash = rng.choice(COUNT, 2, replace=False)
    return SettingTruth(2 / 3 * effect * (np.arange(COUNT) == cause), effect / 3, frozenset({int(crash)}))


def code_alone(effect: float, _rng: np.random.Generator) -> SettingTruth:
    """No setting has an effect."""
    return SettingTruth(np.zeros(COUNT), effect)


def slope(effect: float, _rng: np.random.Generator) -> SettingTruth:
    """Each has an eighth of the effect."""
    return SettingTruth(np.full(COUNT, effect / COUNT))


SHAPES: dict[str, Callable[[float, np.random.Generator], SettingTruth]] = {
    "one setting": one_setting,
    "two settings": two_settings,
    "setting and code": with_code,
    "code alone": code_alone,
    "all a little": slope,
}


def outcome(answer: SettingAnswer, truth: SettingTruth, settings: SearchSettings) -> str:
    """``wrong`` where a setting is named that changes the figure by no more than the margin, else the answer's word."""
    if answer.word != "named":
        return answer.word
    matters = all(truth.settings[at] > settings.margin.log for at in answer.chosen)
    complete = sum(truth.settings[list(answer.chosen)]) >= 0.7 * sum(truth.settings)
    return "wrong" if not matters else "right" if complete else "a part"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each shape, effect and scatter."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisection.settings", description=__doc__)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--effects", type=float, nargs="+", default=[2, 3, 5], help="in margins")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    settings = SearchSettings()
    print(f"{COUNT} settings, {options.searches} searches a row, seed {options.seed}, load {os.getloadavg()[0]:.1f}")
    print("| shape | effect, margins | scatter | right | a part | wrong | not confirmed | no answer | runs |")
    print("|---|---|---|---|---|---|---|---|---|")
    for shape in options.shapes:
        for effect in options.effects:
            for name, scatter in SCATTERS.items():
                words, runs = Counter[str](), []
                for number in range(options.searches):
                    rng = np.random.default_rng([options.seed, number, int(10 * effect), len(shape), len(name)])
                    truth = SHAPES[shape](effect * settings.margin.log, rng)
                    answer, count = search_settings(truth, scatter, settings, rng)
                    words[outcome(answer, truth, settings)] += 1
                    runs.append(count)
                shares = [words[word] for word in ("right", "a part", "wrong", "not confirmed")]
                shares.append(options.searches - sum(shares))
                cells = " | ".join(f"{100 * share / options.searches:.1f} %" for share in shares)
                print(f"| {shape} | {effect:g} | {name} | {cells} | {np.median(runs):.0f} |", flush=True)


if __name__ == "__main__":
    main()
