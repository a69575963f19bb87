"""What was measured of the gate on this site, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.stats.proportions import rate
from gpubench.store.calibrations import Calibration

ABSENT = "False alarms: not calibrated on this site (gpubench calibrate measures how often the gate raises one here)"


def calibration_sentence(calibrations: Mapping[str, Calibration]) -> str:
    """How often the gate raised a false alarm, and found a known effect, each with where and when that was measured."""
    plain = calibrations.get("")
    alarms = ABSENT
    if plain is not None:
        alarms = (
            f"False alarms: {_rate(plain.alarms, plain.campaigns)} of a version against itself raised one, "
            f"{plain.equivalent} {'was' if plain.equivalent == 1 else 'were'} equivalent ({_circumstances(plain)})"
        )
    slowed = [calibrations[slow] for slow in sorted(calibrations) if slow]
    return "; ".join([alarms, *map(slowed_words, slowed)]) + "."


def slowed_words(one: Calibration) -> str:
    """How often a slowed candidate was found."""
    return (
        f"a candidate slowed by {one.slow.replace('%', ' %')} was found in {_rate(one.regressions, one.campaigns)} "
        f"({_circumstances(one)})"
    )


def _circumstances(one: Calibration) -> str:
    hosts = f"on {' and '.join(one.hosts)}" if 0 < len(one.hosts) <= 2 else ""
    load = "" if one.load is None else f"mean load {one.load:.1f}"
    words = [
        f"suite {one.suite}",
        f"{one.blocks} block{'s'[: one.blocks != 1]}",
        hosts,
        load,
        one.measured_at[:10],
        f"gpubench {one.gpubench}",
    ]
    return ", ".join(word for word in words if word)


def _rate(count: int, total: int) -> str:
    found = rate(count, total)
    return (
        f"{count} of {total} campaign{'' if total == 1 else 's'} ({100 * found.value:.3g} %, 95 % interval "
        f"{100 * found.low:.2g} to {100 * found.high:.3g} %)"
    )
