"""What differs between two variants, two runs or two campaigns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.merge.explain import Explained, FieldDifference
from gpubench.merge.run_noise import NOISE
from gpubench.report.sections import NUMBER, Column, Section, SectionPart, TextTable
from gpubench.stats.separation import PairedDifference

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
        found: the differences.
        kind: ``variants``, ``runs`` or ``campaigns``.
        sides: which the two are, for programs.
        names: short names of the two, for the columns.
        about: lines that say what is compared.
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
    if one.score is not None:
        notes.append(f"in {one.differ} of {one.blocks} blocks, separation {one.score:.2f}")
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
        table=TextTable(["", *(Column(name, NUMBER) for name in numbers)], rows, numbers=True),
    )
    if not single:
        said = (
            "A number with a large t went with the variant: the times may have followed it. "
            f"{len(rows)} numbers are looked at, so so one |t| of 2 to 3 is not unusual."
        )
        yield SectionPart(lines=[said])


def _numbers(one: PairedDifference, *, single: bool) -> list[str]:
    t = "–" if one.t is None else f"{one.t:.1f}"
    return [f"{one.before:.2f}", f"{one.after:.2f}", f"{one.difference:+.2f}", *([] if single else [t])]
