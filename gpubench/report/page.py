"""The one page: a file that holds everything it needs, and asks no network for anything.

Its charts are pictures (SVG). Without scripts, tables can't be sorted, and a link to a folded section doesn't open it.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jinja2
import markupsafe

from gpubench.model.text import visible
from gpubench.report.next_steps import NextStep
from gpubench.report.sections import Chart, Medium, RichText, Section, TextSpan, inline, markdown_text, plain, spans
from gpubench.report.svg import svg


@dataclasses.dataclass(frozen=True)
class Page:
    """Anything that has results, as one page.

    Args:
        title: of the window.
        over: a small line above the answer.
        headline: the answer, a sentence each.
        sections: what the page shows, and Markdown.
        notes: important facts, shown before anything else.
        steps: what to do next, on the first screen.
        about: quiet lines below the answer, on the page only.
        made: the version that made the page, and when.
        opening: how Markdown begins; default: the headline.
        why_no_chart: said where charts are wanted as files and there is none.
    """

    title: str
    over: str
    headline: Sequence[str]
    sections: Sequence[Section]
    made: str
    notes: Sequence[RichText] = ()
    steps: Sequence[NextStep] = ()
    about: Sequence[RichText] = ()
    opening: str = ""
    why_no_chart: str = "it has no sample"

    def charts(self) -> Iterator[Chart]:
        """In the order of the page."""
        for section in self.sections:
            for part in section.parts:
                yield from part.all_charts()


def html(page: Page, templates: Mapping[str, str]) -> bytes:
    """The page; its links to raw files are relative, so it stands beside them."""
    context = {
        "page": page,
        "sections": [section for section in page.sections if Medium.PAGE in section.medium],
        "PAGE": Medium.PAGE,
    }
    return _environment(tuple(templates.items())).get_template("report/page.html.j2").render(context).encode()


@functools.lru_cache(maxsize=2)
def _environment(templates: tuple[tuple[str, str], ...]) -> jinja2.Environment:
    """Kept, because an environment keeps its compiled templates."""
    made = jinja2.Environment(
        loader=jinja2.DictLoader(dict(templates)),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"markup": marked_up, "paragraph": _paragraph, "heading": _heading, "sort": _sort}
    made.filters["picture"] = lambda chart, narrow=False: markupsafe.Markup(svg(chart, narrow=narrow))  # noqa: S704 - Vega escapes
    return made


def markdown(page: Page) -> str:
    """The same answer for a pull request: sentence and first section; the rest, and what the page folds, is folded."""
    blocks = [
        page.opening or f"**{inline(' '.join(page.headline))}**",
        *(f"> {inline(plain(note))}" for note in page.notes),
    ]
    shown = [section for section in page.sections if Medium.MARKDOWN in section.medium]
    folded: list[str] = []
    if shown:
        first, *others = shown
        blocks.append(
            markdown_text(dataclasses.replace(first, parts=[part for part in first.parts if not part.fold])).strip()
        )
        rest = dataclasses.replace(first, parts=[part for part in first.parts if part.fold], notes=())
        folded = [text for section in (rest, *others) if (text := markdown_text(section).strip())]
    if folded:
        blocks += ["<details><summary>How sure this is, and what was run</summary>", *folded, "</details>"]
    return "\n\n".join(filter(None, blocks)) + "\n"


def marked_up(text: RichText) -> markupsafe.Markup:
    """Text with its links and styles; what comes from files is escaped."""
    return markupsafe.Markup("").join(map(_span, spans(text)))


def _span(span: TextSpan) -> markupsafe.Markup:
    text = markupsafe.escape(visible(span.text))
    given = {"href": span.link, "class": span.style, "title": span.whole}
    held = [markupsafe.Markup(' {}="{}"').format(name, visible(value)) for name, value in given.items() if value]
    if not held:
        return text
    tag = "a" if span.link else "span"
    return markupsafe.Markup("<{}{}>{}</{}>").format(tag, markupsafe.Markup("").join(held), text, tag)


def _paragraph(text: RichText) -> markupsafe.Markup:
    """With the style of its span, if it has only one: a note, for example."""
    first, *rest = spans(text)
    style = markupsafe.Markup(' class="{}"').format(first.style) if first.style and not rest else ""
    inside = markupsafe.escape(visible(first.text)) if style else marked_up(text)
    return markupsafe.Markup("<p{}>{}</p>").format(style, inside)


def _heading(text: RichText) -> markupsafe.Markup:
    """Headings of ours begin with a capital letter, names don't change."""
    return marked_up(text[:1].upper() + text[1:] if isinstance(text, str) and len(text) > 1 else text)


def _sort(text: RichText) -> str:
    first = spans(text)[:1]
    return "" if not first or first[0].sort is None else str(first[0].sort)


def _shown(value: Any) -> Any:
    """The text between ``{{`` and ``}}``; markup is ours."""
    return visible(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value
