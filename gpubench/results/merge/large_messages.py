"""Whether UCX moves large messages in one way or in another, which tells much of what they cost. Pure."""

from collections.abc import Iterable, Mapping

from gpubench.results.merge.provenance import ABSENT, NOT_PROVED, ProvenanceFacts

FIELD = "transport.carriers"


def another_way(sides: Mapping[str, Iterable[ProvenanceFacts]]) -> str:
    """A line where no run of one of two sides moved them as a run of the other; ``sides`` are the facts of their runs.

    ``UCX moves large messages in another way: by cma (zero-copy read from remote) in a, by tcp (…) in b``. Empty where
    they don't differ, or where it isn't proved of a side.
    """
    first, second = ({run.text(FIELD) for run in runs} - {ABSENT} for runs in sides.values())
    if not first or not second or first & second or NOT_PROVED in first | second:
        return ""
    ways = (" or ".join(sorted(texts)).replace("; ", " and ") for texts in (first, second))
    told = [f"by {way} in {label}" for label, way in zip(sides, ways, strict=True)]
    return f"UCX moves large messages in another way: {', '.join(told)}"
