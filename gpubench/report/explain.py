"""What differs between two variants or two runs, in words for a terminal and as JSON."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.merge.explain import Explained, FieldDifference
from gpubench.merge.run_noise import NOISE
from gpubench.stats.separation import PairedDifference

SCHEMA = "gpubench/explain/1"
WIDTH = 80
MOST_PLANNED = 25
"""Planned differences that a terminal shows: two stacks may differ in a hundred packages."""
WHY = {
    "known": "set by the binding where no variant sets it",
    "allowed": "allowed to change",
    "": "asked for by nobody",
}


def explain_lines(found: Explained, sides: Sequence[str], about: Sequence[str]) -> Iterator[str]:
    """For people, at most 80 columns wide.

    Args:
        found: the differences.
        sides: short names of the two, for the columns.
        about: lines that say what is compared.
    """
    for line in about:
        yield from _wrapped(line, "", "  ")
    yield ""
    yield from _section("Planned differences", found.planned(), MOST_PLANNED)
    yield from _section("Differences that the plan didn't ask for", found.others(), None)
    if found.drifting:
        yield from _wrapped(f"Changed from block to block, never within one: {', '.join(found.drifting)}.", "", "  ")
        yield ""
    yield from _noise(found.noise, sides, found.blocks)


def explain_json(found: Explained, kind: str, sides: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The same, complete."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "sides": list(sides),
        "blocks": found.blocks,
        "differences": [dataclasses.asdict(one) for one in found.differences],
        "noise": {name: {"what": NOISE[name], **dataclasses.asdict(one)} for name, one in found.noise.items()},
        "changed_between_blocks_only": list(found.drifting),
    }


def _section(title: str, rows: Sequence[FieldDifference], most: int | None) -> Iterator[str]:
    yield f"{title}:" if rows else f"{title}: none."
    for one in rows[:most]:
        notes = [] if one.why == "planned" else [WHY[one.why]]
        if one.score is not None:
            notes.append(f"in {one.differ} of {one.blocks} blocks, separation {one.score:.2f}")
        note = f"  ({'; '.join(notes)})" if notes else ""
        yield from _wrapped(f"{one.field}: {one.before} → {one.after}{note}", "  ", "      ")
    if most is not None and len(rows) > most:
        yield f"  and {len(rows) - most} more: --json"
    yield ""


def _noise(noise: Mapping[str, PairedDifference], sides: Sequence[str], blocks: int) -> Iterator[str]:
    if not noise:
        yield "Noise: not recorded."
        return
    single = blocks == 1
    yield "Noise:" if single else f"Noise (medians over {blocks} blocks; t of the differences within blocks):"
    names = [one if len(one) <= 12 else f"{one[:11]}…" for one in sides]
    head = ["", *names, "differ by", *([] if single else ["paired t"])]
    ranked = sorted(noise.items(), key=lambda item: -abs(item[1].size or 0.0))
    rows = [[NOISE[name], *_numbers(one, single=single)] for name, one in (noise.items() if single else ranked)]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(word.rjust(width) for word, width in zip(row[1:], widths[1:], strict=True))]
        yield f"  {'  '.join(cells)}".rstrip()
    if not single:
        yield from _wrapped(
            "A number with a large t went with the variant: the times may have followed it. "
            f"{len(rows)} numbers are looked at, so that one |t| of 2 to 3 is nothing rare.",
            "",
            "",
        )


def _numbers(one: PairedDifference, *, single: bool) -> list[str]:
    t = "–" if one.t is None else f"{one.t:.1f}"
    return [f"{one.before:.2f}", f"{one.after:.2f}", f"{one.difference:+.2f}", *([] if single else [t])]


def _wrapped(line: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
