"""What was measured of the gate on this site, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.stats.proportions import rate
from gpubench.store.calibrations import Calibration

ABSENT = "False alarms: not calibrated on this site (gpubench calibrate measures how often the gate raises one here)."


def calibration_sentence(calibrations: Mapping[str, Calibration]) -> str:
    """How often the gate raised a false alarm, and found a known effect; ``ABSENT`` where nothing was measured."""
    parts = []
    if plain := calibrations.get(""):
        parts.append(
            f"False alarms: {_rate(plain.alarms, plain.campaigns)} of a version against itself raised one, "
            f"{plain.equivalent} {'was' if plain.equivalent == 1 else 'were'} equivalent"
        )
    slowed = [calibrations[slow] for slow in sorted(calibrations) if slow]
    parts += [
        f"a candidate slowed by {one.slow.replace('%', ' %')} was found in {_rate(one.regressions, one.campaigns)}"
        for one in slowed
    ]
    if not parts:
        return ABSENT
    text = "; ".join(parts)
    last = max(calibrations.values(), key=lambda one: one.measured_at)
    hosts = f" on {' and '.join(last.hosts)}" if 0 < len(last.hosts) <= 2 else ""
    load = "" if last.load is None else f" at a mean load of {last.load:.1f}"
    return (
        f"{text[0].upper()}{text[1:]}; measured with suite {last.suite}, {last.blocks} blocks,{hosts}{load}, "
        f"{last.measured_at[:10]}, gpubench {last.gpubench}."
    )


def _rate(count: int, total: int) -> str:
    found = rate(count, total)
    return (
        f"{count} of {total} campaigns ({100 * found.value:.3g} %, 95 % interval {100 * found.low:.2g} to "
        f"{100 * found.high:.3g} %)"
    )
