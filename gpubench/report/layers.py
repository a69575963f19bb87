"""In which layer a difference arises: in UCX, in its binding, or in Dask. Pure.

``link`` moves bytes by UCX alone, or through the binding without Dask (``send_recv``); ``message`` moves them through
the binding inside of the workers, everything else by Dask. A layer is the cause where it is slower and each layer below
it is ``equivalent``; a layer that is undecided or was not measured is still a possible cause, and is named.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.model.cell_names import cell_names, short_size
from gpubench.report import labels
from gpubench.stats.verdict import Verdict

LAYERS = ("UCX", "the binding", "Dask or the tasks")
"""The lowest first."""
WORDS = {"regression": "Slower", "improvement": "Faster"}
_WITHOUT_MESSAGES = ("copy",)
_WITHOUT_DASK = ("polars", "parsl")
_Cell = tuple[str, Verdict]
"""A verdict with the short name of its cell."""
_PLACE = ("nodes", "workers_per_node", "threads_per_worker", "protocol", "device")


def layers(verdicts: Sequence[Verdict]) -> tuple[list[str], list[dict[str, Any]]]:
    """Sentences on each cluster that measured ``link``, and the same as plain data.

    Args:
        verdicts: of one baseline and one candidate.
    """
    layered = [verdict for verdict in verdicts if _layer(verdict) is not None]
    named = list(zip(cell_names([verdict.key for verdict in layered]), layered, strict=True))
    lines, data = [], []
    for place in dict.fromkeys(map(_place, layered)):
        of_place = [(name, verdict) for name, verdict in named if _place(verdict) == place]
        by_layer = {layer: [cell for cell in of_place if _layer(cell[1]) == layer] for layer in LAYERS}
        if any(verdict.key["workload"] == "link" for _, verdict in of_place):
            causes = [*_causes(by_layer), *_sizes([verdict for _, verdict in of_place])]
            lines += causes
            plain = {
                layer: [{"cell": name, "verdict": cell.verdict, "effect": cell.effect} for name, cell in cells]
                for layer, cells in by_layer.items()
            }
            data.append({**dict(zip(_PLACE, place, strict=True)), "layers": plain, "causes": causes})
    return lines, data


def _place(verdict: Verdict) -> tuple[object, ...]:
    return tuple(verdict.key.get(name) for name in _PLACE)


def _params(verdict: Verdict) -> dict[str, Any]:
    return dict(json.loads(str(verdict.key.get("params", "{}"))))


def _layer(verdict: Verdict) -> str | None:
    workload = verdict.key["workload"]
    if workload in _WITHOUT_MESSAGES or verdict.key.get("backend") in _WITHOUT_DASK:
        return None
    if workload == "link":
        return LAYERS[_params(verdict).get("test") == "send_recv"]
    return LAYERS[1 if workload == "message" else 2]


def _causes(by_layer: dict[str, list[_Cell]]) -> Iterator[str]:
    has_cause = False
    for word, what in WORDS.items():
        lowest = next((name for name in LAYERS if any(cell.verdict == word for _, cell in by_layer[name])), None)
        if lowest is None:
            continue
        has_cause = True
        cells = [f"{name} {labels.effect(cell)}" for name, cell in by_layer[lowest] if cell.verdict == word]
        below = [_of_lower(name, by_layer[name]) for name in LAYERS[: LAYERS.index(lowest)]]
        yield f"{'; '.join([f'{what} in {lowest}: {labels.listed(cells)}', *below])}."
    if not has_cause:
        undecided = [name for cells in by_layer.values() for name, cell in cells if cell.verdict != "equivalent"]
        yield f"No layer is decided to be slower or faster; undecided: {labels.listed(undecided) or 'none'}."


def _of_lower(layer: str, cells: Sequence[_Cell]) -> str:
    if not cells:
        return f"{layer} was not measured alone, and may be the cause"
    others = [f"{name} is {cell.verdict}" for name, cell in cells if cell.verdict != "equivalent"]
    if not others:
        return f"not in {layer}, which is equivalent in {labels.listed(name for name, _ in cells)}"
    return f"{layer} may be the cause: {labels.listed(others)}"


def _sizes(verdicts: Sequence[Verdict]) -> list[str]:
    sizes = {
        name: {
            size
            for verdict in verdicts
            if verdict.key["workload"] == name and isinstance(size := _params(verdict).get("size"), int)
        }
        for name in ("link", "message")
    }
    if not all(sizes.values()) or sizes["link"] & sizes["message"]:
        return []
    sent = [
        f"{name} sent {labels.listed(map(short_size, sorted(message_sizes)))}" for name, message_sizes in sizes.items()
    ]
    return [f"{', '.join(sent)}: UCX can send messages of other sizes in other ways."]
