"""The chart of the rates of all links between workers."""

from collections.abc import Mapping, Sequence

from gpubench.report.charts.style import category, data, dressed, layer
from gpubench.report.sections import Spec

_STEPS = 7
_LARGEST_PX, _CELL_PX = 560, 44
_LABELLED = 24
"""With more workers, only every n-th has its name at the edge."""
_CROSS = "M-0.5,-0.5L0.5,0.5M0.5,-0.5L-0.5,0.5"


def heat_map(
    names: Sequence[str], rates: Mapping[tuple[str, str], float], slow: Sequence[tuple[str, ...]], title: str
) -> Spec:
    """Median rates, rows send and columns receive, in steps of equal ratio; a cross marks a slow link.

    Args:
        names: of the workers, in order.
        rates: bytes per second by sender and receiver, of those that have one.
        slow: sender and receiver of each slow link.
        title: what the chart shows.
    """
    step = max(4, min(_CELL_PX, _LARGEST_PX // len(names)))
    axis = {"values": names[:: -(-len(names) // _LABELLED)], "domain": False, "ticks": False}
    axis |= {"labelPadding": 6, "labelLimit": 110, "labelOverlap": False}
    scale = {"domain": list(names)}
    place = {
        "x": category("to", sort=None, title="receiver", scale=scale, axis=axis),
        "y": category("from", sort=None, title="sender", scale=scale, axis=axis),
    }
    least, most = min(rates.values()), max(rates.values())
    ratio = max(most / least, 1.01) ** (1 / _STEPS)
    edges = [float(f"{least * ratio**number:.3g}") for number in range(1, _STEPS)]
    colours = {"type": "threshold", "domain": edges, "range": [f"var(--heat{number})" for number in range(_STEPS)]}
    legend = {"orient": "right", "title": "bytes per second", "format": ".3~s"}
    colour = {"field": "rate", "type": "quantitative", "scale": colours, "legend": legend}
    cells = [{"from": sender, "to": receiver, "rate": rate} for (sender, receiver), rate in rates.items()]
    crosses = data([{"from": sender, "to": receiver} for sender, receiver in slow])
    area, cross = step * step, {**place, "shape": {"value": _CROSS}}
    stroke = 0.5 if step < 12 else 1
    layers = [
        layer("rect", {**place, "color": colour}, stroke="var(--paper)", strokeWidth=stroke) | data(cells),
        layer("point", cross, size=area * 0.7, strokeWidth=5, stroke="var(--paper)", filled=False) | crosses,
        layer("point", cross, size=area * 0.5, strokeWidth=2.5, stroke="var(--regression)", filled=False) | crosses,
    ]
    side = step * len(names)
    return dressed({"width": side, "height": side, "layer": layers}, title)
