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
_PLACE = ("nodes", "workers_per_node", "threads_per_worker", "protocol", "device")


def layers(verdicts: Sequence[Verdict]) -> tuple[list[str], list[dict[str, Any]]]:
    """Sentences on each cluster that measured ``link``, and the same as plain data.

    Args:
        verdicts: of one baseline and one candidate.
    """
    layered = [verdict for verdict in verdicts if _layer(verdict) is not None]
    names = dict(zip(map(id, layered), cell_names([verdict.key for verdict in layered]), strict=True))
    lines, data = [], []
    for place in dict.fromkeys(map(_place, layered)):
        of_place = [verdict for verdict in layered if _place(verdict) == place]
        by_layer = {layer: [verdict for verdict in of_place if _layer(verdict) == layer] for layer in LAYERS}
        if any(verdict.key["workload"] == "link" for verdict in of_place):
            causes = [*_causes(by_layer, names), *_sizes(of_place)]
            lines += causes
            cells = {
                layer: [
                    {"cell": names[id(verdict)], "verdict": verdict.verdict, "effect": verdict.effect}
                    for verdict in by_layer[layer]
                ]
                for layer in LAYERS
            }
            data.append({**dict(zip(_PLACE, place, strict=True)), "layers": cells, "causes": causes})
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


def _causes(by_layer: dict[str, list[Verdict]], names: dict[int, str]) -> Iterator[str]:
    has_cause = False
    for verdict, word in WORDS.items():
        lowest = next(
            (name for name in LAYERS if any(cell_verdict.verdict == verdict for cell_verdict in by_layer[name])), None
        )
        if lowest is None:
            continue
        has_cause = True
        cells = [
            f"{names[id(cell_verdict)]} {labels.effect(cell_verdict)}"
            for cell_verdict in by_layer[lowest]
            if cell_verdict.verdict == verdict
        ]
        below = [_of_lower(name, by_layer[name], names) for name in LAYERS[: LAYERS.index(lowest)]]
        yield f"{'; '.join([f'{word} in {lowest}: {labels.listed(cells)}', *below])}."
    if not has_cause:
        open_ones = [
            names[id(cell_verdict)]
            for layer_verdicts in by_layer.values()
            for cell_verdict in layer_verdicts
            if cell_verdict.verdict != "equivalent"
        ]
        yield f"No layer is decided to be slower or faster; undecided: {labels.listed(open_ones) or 'none'}."


def _of_lower(layer: str, verdicts: Sequence[Verdict], names: dict[int, str]) -> str:
    if not verdicts:
        return f"{layer} was not measured alone, and may be the cause"
    others = [verdict for verdict in verdicts if verdict.verdict != "equivalent"]
    if not others:
        return f"not in {layer}, which is equivalent in {labels.listed(names[id(verdict)] for verdict in verdicts)}"
    states = labels.listed(f"{names[id(verdict)]} is {verdict.verdict}" for verdict in others)
    return f"{layer} may be the cause: {states}"


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
