"""The answer in a sentence, from the verdicts that the page's table shows."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from gpubench.model.cell_names import cell_names
from gpubench.report import labels
from gpubench.report.sections import Section
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict

_MOST_SENTENCES = 2
"""Candidates that have a sentence each."""
_FOUND = (("broken", "broken"), ("regression", "slower"), ("improvement", "faster"))


@dataclasses.dataclass(frozen=True)
class VerdictAnswer:
    """Verdicts, and the notes on them; ``document`` is all of it as Markdown.

    ``runs`` says how a campaign's runs ended, ``compared`` what the names of a campaign's variants stand for.
    """

    verdicts: Sequence[Verdict]
    settings: VerdictSettings
    section: Section
    runs: str = ""
    document: Callable[[], str] | None = None
    compared: str = ""


def answer(verdicts: Sequence[Verdict], settings: VerdictSettings) -> list[str]:
    """One sentence per candidate, e.g. ``1.19.0 is slower than 1.17.0 in 1 of 5 comparisons: merge +12.3 %.``

    Of many candidates one sentence: ``Of 36 comparisons with 1.12.1: 3 slower: 1.14.0 in merge +2.8 %, …``.
    """
    short_names = cell_names([verdict.key for verdict in verdicts])
    names = dict(zip(map(id, verdicts), short_names, strict=True))
    margin = f"±{settings.margin.percent}"
    groups = by_candidate(verdicts)
    if len(groups) > _MOST_SENTENCES:
        return [_of_all(verdicts, names, margin)]
    return [_sentence(rows, names, margin) for rows in groups] or ["No comparison was planned."]


def _of_all(verdicts: Sequence[Verdict], names: Mapping[int, str], margin: str) -> str:
    counts = {word: sum(verdict.verdict == word for verdict in verdicts) for word in labels.MARKS}
    against = labels.listed(labels.baselines(verdicts))
    parts = []
    for word, what in _FOUND:
        rows = [verdict for verdict in verdicts if verdict.verdict == word]
        rows.sort(key=lambda verdict: -abs(verdict.effect or 0.0))
        if rows:
            cells = labels.listed(f"{verdict.candidate} in {_named(verdict, names)}" for verdict in rows)
            parts.append(f"{len(rows)} {what}: {cells}")
    rest = f"{counts['equivalent']} equivalent to within {margin}, {counts['inconclusive']} inconclusive"
    return f"Of {len(verdicts)} comparisons with {against}: {'; '.join([*parts, rest])}."


def by_candidate(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """The verdicts of each (baseline, candidate), in the order in which they first appear."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.baseline, verdict.candidate), []).append(verdict)
    return list(groups.values())


def _sentence(rows: Sequence[Verdict], names: Mapping[int, str], margin: str) -> str:
    """The proven differences with their size, else the likely ones; and how many of the rest are undecided."""
    candidate, baseline, total = rows[0].candidate, rows[0].baseline, len(rows)
    by_verdict = {word: [verdict for verdict in rows if verdict.verdict == word] for word in labels.MARKS}
    of = f"of {total} comparison{'' if total == 1 else 's'}"
    parts: list[str] = []
    named: list[str] = []
    for word, what in (("broken", "breaks"), ("regression", "is slower"), ("improvement", "is faster")):
        if by_verdict[word]:
            than = f" than {baseline}" if word != "broken" and f"than {baseline}" not in " ".join(parts) else ""
            parts.append(f"{what}{than} in {len(by_verdict[word])}")
            largest = sorted(by_verdict[word], key=lambda verdict: -abs(verdict.effect or 0.0))
            named.append(labels.listed(_named(verdict, names) for verdict in largest))
    unknown = len(by_verdict["inconclusive"])
    if parts:
        rest = f"; {unknown} inconclusive" if unknown else ""
        return f"{candidate} {' and '.join(parts)} {of}: {'; '.join(named)}{rest}."
    if not unknown:
        where = f" in all {total}" if total > 1 else ""
        return f"{candidate} is as fast as {baseline}{where}, to within {margin}."
    likely = labels.listed(_named(verdict, names) for verdict in rows if verdict.leaning)
    equivalent = f"; {total - unknown} equivalent to within {margin}" if unknown < total else ""
    leaning = f"; likely, but not proven: {likely}" if likely else ""
    return f"{candidate} against {baseline}: undecided in {unknown} {of}{equivalent}{leaning}."


def _named(verdict: Verdict, names: Mapping[int, str]) -> str:
    return (
        names[id(verdict)]
        if verdict.effect is None or verdict.verdict == "broken"
        else f"{names[id(verdict)]} {labels.effect(verdict)}"
    )
