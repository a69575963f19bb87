"""What differs between two variants, two runs or two campaigns.

In which layer a difference arises: in UCX, in its binding, or in Dask. Pure.

``link`` moves bytes by UCX alone, or through the binding without Dask (``send_recv``); ``message`` moves them through
the binding inside of the workers, everything else by Dask. A layer is the cause where it is slower and each layer below
it is ``equivalent``; a layer that is undecided or was not measured is still a possible cause, and is named.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.merge.explain import NOISE, Explained, FieldDifference
from gpubench.report import labels
from gpubench.report.sections import ColumnStyle, Heading, Section, SectionPart, TextTable
from gpubench.stats.paired_difference import PairedDifference
from gpubench.stats.verdict import Verdict

SCHEMA = "gpubench/explain/1"
WIDTH = 80
MOST_PLANNED = 25
"""Planned differences that a terminal shows: two stacks may differ in a hundred packages."""
WHY = {
    "known": "set by the binding where no variant sets it",
    "allowed": "allowed to change",
    "": "not asked for",
}


def differences_section(
    found: Explained, kind: str, sides: Sequence[Mapping[str, Any]], names: Sequence[str], about: Sequence[str]
) -> Section:
    """At most 80 columns wide.

    Args:
        kind: ``variants``, ``runs`` or ``campaigns``.
        sides: which the two are, for programs.
    """
    planned = found.planned()
    more = [f"and {len(planned) - MOST_PLANNED} more: --json"] if len(planned) > MOST_PLANNED else []
    others = "Differences that the plan didn't ask for"
    parts = [
        SectionPart(lines=about),
        SectionPart(
            f"Planned differences{':' if planned else ': none.'}", [*map(_words, planned[:MOST_PLANNED]), *more]
        ),
        SectionPart(f"{others}{':' if found.others() else ': none.'}", [*map(_words, found.others())]),
    ]
    if found.drifting:
        parts.append(
            SectionPart(lines=[f"Changed from block to block, never within one: {', '.join(found.drifting)}."])
        )
    data = {
        "schema": SCHEMA,
        "kind": kind,
        "sides": list(sides),
        "blocks": found.blocks,
        "differences": [dataclasses.asdict(one) for one in found.differences],
        "noise": {name: {"what": NOISE[name], **dataclasses.asdict(one)} for name, one in found.noise.items()},
        "changed_between_blocks_only": list(found.drifting),
    }
    return Section([*parts, *_noise(found.noise, names, found.blocks)], data, width=WIDTH)


def _words(one: FieldDifference) -> str:
    notes = [] if one.why == "planned" else [WHY[one.why]]
    if one.blocks > 1:
        notes.append(f"in {one.differ} of {one.blocks} blocks")
    return f"{one.field}: {one.before} → {one.after}" + (f"  ({'; '.join(notes)})" if notes else "")


def _noise(noise: Mapping[str, PairedDifference], sides: Sequence[str], blocks: int) -> Iterator[SectionPart]:
    if not noise:
        yield SectionPart("Noise: not recorded.")
        return
    single = blocks == 1
    names = [one if len(one) <= 12 else f"{one[:11]}…" for one in sides]
    ranked = sorted(noise.items(), key=lambda item: -abs(item[1].size or 0.0))
    numbers = [*names, "differ by", *([] if single else ["paired t"])]
    rows = [[NOISE[name], *_numbers(one, single=single)] for name, one in (noise.items() if single else ranked)]
    yield SectionPart(
        "Noise:" if single else f"Noise (medians over {blocks} blocks; t of the differences within blocks):",
        table=TextTable(["", *(Heading(name, ColumnStyle.NUMBER) for name in numbers)], rows, numbers=True),
    )
    if not single:
        said = (
            "A number with a large t went with the variant: the times may have followed it. "
            f"Of {len(rows)} numbers, one may have |t| of 2 to 3 by chance."
        )
        yield SectionPart(lines=[said])


def _numbers(one: PairedDifference, *, single: bool) -> list[str]:
    t = "–" if one.t is None else f"{one.t:.1f}"
    return [f"{one.before:.2f}", f"{one.after:.2f}", f"{one.difference:+.2f}", *([] if single else [t])]


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
    known = [one for one in verdicts if _layer(one) is not None]
    names = dict(zip(map(id, known), labels.cell_names([one.key for one in known]), strict=True))
    lines, data = [], []
    for place in dict.fromkeys(map(_place, known)):
        here = [one for one in known if _place(one) == place]
        by_layer = {layer: [one for one in here if _layer(one) == layer] for layer in LAYERS}
        if any(one.key["workload"] == "link" for one in here):
            said = [*_causes(by_layer, names), *_sizes(here)]
            lines += said
            cells = {
                layer: [
                    {"cell": names[id(one)], "verdict": one.verdict, "effect": one.effect} for one in by_layer[layer]
                ]
                for layer in LAYERS
            }
            data.append({**dict(zip(_PLACE, place, strict=True)), "layers": cells, "causes": said})
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
    found = False
    for verdict, word in WORDS.items():
        lowest = next((name for name in LAYERS if any(one.verdict == verdict for one in by_layer[name])), None)
        if lowest is None:
            continue
        found = True
        cells = [f"{names[id(one)]} {labels.effect(one)}" for one in by_layer[lowest] if one.verdict == verdict]
        below = [_of_lower(name, by_layer[name], names) for name in LAYERS[: LAYERS.index(lowest)]]
        yield f"{'; '.join([f'{word} in {lowest}: {labels.listed(cells)}', *below])}."
    if not found:
        open_ones = [names[id(one)] for each in by_layer.values() for one in each if one.verdict != "equivalent"]
        yield f"No layer is decided to be slower or faster; undecided: {labels.listed(open_ones) or 'none'}."


def _of_lower(layer: str, verdicts: Sequence[Verdict], names: dict[int, str]) -> str:
    if not verdicts:
        return f"{layer} was not measured alone, and may be the cause"
    others = [one for one in verdicts if one.verdict != "equivalent"]
    if not others:
        return f"not in {layer}, which is equivalent in {labels.listed(names[id(one)] for one in verdicts)}"
    said = labels.listed(f"{names[id(one)]} is {one.verdict}" for one in others)
    return f"{layer} may be the cause: {said}"


def _sizes(verdicts: Sequence[Verdict]) -> list[str]:
    sizes = {
        name: {
            size
            for one in verdicts
            if one.key["workload"] == name and isinstance(size := _params(one).get("size"), int)
        }
        for name in ("link", "message")
    }
    if not all(sizes.values()) or sizes["link"] & sizes["message"]:
        return []
    said = [f"{name} sent {labels.listed(map(labels.size, sorted(each)))}" for name, each in sizes.items()]
    return [f"{', '.join(said)}: UCX can send messages of other sizes in other ways."]
