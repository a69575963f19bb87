"""The one page: a file that holds everything it needs, and asks no network for anything.

Its charts are pictures (SVG) that need no script. Where scripts run, an embedded library redraws them as interactive
charts.

Tiles: one for each workload, with both sides in seconds, the change, and its place beside the margin.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import platformdirs
import vl_convert

from gpubench.errors import MissingToolError
from gpubench.files import write_atomically
from gpubench.model.text import all_visible, visible
from gpubench.report import labels
from gpubench.report.inputs import JudgedCampaign
from gpubench.report.next_steps import NextStep
from gpubench.report.sections import (
    Chart,
    Medium,
    RichText,
    Section,
    Spec,
    TextSpan,
    inline,
    markdown_text,
    plain,
    spans,
)
from gpubench.report.verdicts import anchor as anchor_of
from gpubench.stats.verdict import Verdict

LARGEST_SPEC, ALL_PICTURES, LARGEST_PICTURE = 120_000, 250_000, 200_000
"""Bytes of specs whose charts are drawn beforehand (of one chart, and of a page), and of the longest picture in a page.
A picture takes five times as much as a spec of samples, and 1.3 times as much as one of figures over dates: half
a year of weekly figures of six versions at five sizes is 83 kB."""

_WIDTH = 720
"""Pixels of a picture whose chart would fill its page."""


@dataclasses.dataclass(frozen=True)
class Page:
    """Anything that has results, as one page.

    Args:
        title: of the window.
        over: a small line above the answer.
        headline: the answer, a sentence each.
        sections: what the page shows, and Markdown.
        notes: important facts, shown before anything else.
        tiles, steps: of the first screen; ``key`` explains the tiles.
        about: quiet lines below the answer, on the page only.
        made: the version that made the page, and when.
        opening: how Markdown begins; default: the headline.
        why_no_chart: said where charts are wanted as files and there is none.
        plots: charts in plain characters, by columns of the terminal.
    """

    title: str
    over: str
    headline: Sequence[str]
    sections: Sequence[Section]
    made: str
    notes: Sequence[RichText] = ()
    tiles: "Sequence[Tile]" = ()
    key: str = ""
    steps: Sequence[NextStep] = ()
    about: Sequence[RichText] = ()
    opening: str = ""
    why_no_chart: str = "it has no sample"
    plots: Callable[[int], Sequence[Iterable[str]]] = lambda _width: ()

    def charts(self) -> Iterator[Chart]:
        """In the order of the page."""
        for section in self.sections:
            for part in section.parts:
                yield from part.all_charts()


def html(page: Page, templates: Mapping[str, str]) -> bytes:
    """The page; its links to raw files are relative, so it stands beside them."""
    specs = {chart.anchor: chart.spec for chart in sorted(page.charts(), key=lambda chart: chart.late)}
    context = {
        "page": page,
        "sections": [section for section in page.sections if Medium.PAGE in section.medium],
        "PAGE": Medium.PAGE,
        "pictures": pictures(specs),
        "all_specs": script_safe(specs),
        "bundle": bundle() if specs else "",
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
    made.filters |= {"words": marked_up, "paragraph": _paragraph, "heading": _heading, "sort": _sort}
    return made


def markdown(page: Page) -> str:
    """The same answer for a pull request."""
    blocks = [
        page.opening or f"**{inline(' '.join(page.headline))}**",
        *(f"> {inline(plain(note))}" for note in page.notes),
    ]
    texts = [markdown_text(section).strip() for section in page.sections if Medium.MARKDOWN in section.medium]
    return "\n\n".join([*blocks, *filter(None, texts)]) + "\n"


def marked_up(words: RichText) -> markupsafe.Markup:
    """Text with its links and styles; what comes from files is escaped."""
    return markupsafe.Markup("").join(map(_span, spans(words)))


def _span(one: TextSpan) -> markupsafe.Markup:
    text = markupsafe.escape(visible(one.text))
    given = {"href": one.link, "class": one.style, "title": one.whole, "aria-label": one.spoken}
    held = [markupsafe.Markup(' {}="{}"').format(name, visible(value)) for name, value in given.items() if value]
    if not held:
        return text
    tag = "a" if one.link else "span"
    return markupsafe.Markup("<{}{}>{}</{}>").format(tag, markupsafe.Markup("").join(held), text, tag)


def _paragraph(words: RichText) -> markupsafe.Markup:
    """With the style of its span, if it has only one: a note, for example."""
    first, *rest = spans(words)
    style = markupsafe.Markup(' class="{}"').format(first.style) if first.style and not rest else ""
    inside = markupsafe.escape(visible(first.text)) if style else marked_up(words)
    return markupsafe.Markup("<p{}>{}</p>").format(style, inside)


def _heading(words: RichText) -> markupsafe.Markup:
    """Headings of ours begin with a capital letter, names don't change."""
    return marked_up(words[:1].upper() + words[1:] if isinstance(words, str) and len(words) > 1 else words)


def _sort(words: RichText) -> str:
    first = spans(words)[:1]
    return "" if not first or first[0].sort is None else str(first[0].sort)


def pictures(specs: Mapping[str, Spec]) -> dict[str, markupsafe.Markup]:
    """The charts that are drawn beforehand, by anchor: the first ones that fit into ``ALL_PICTURES``."""
    found: dict[str, markupsafe.Markup] = {}
    left = ALL_PICTURES
    for anchor, spec in specs.items():
        size = len(json.dumps(spec["datasets"]))
        if size <= min(left, LARGEST_SPEC):
            left -= size
            with contextlib.suppress(ValueError):  # a page without one of its pictures is a page; it says so there
                drawn = picture(anchor, spec)
                if len(drawn) <= LARGEST_PICTURE:
                    found[anchor] = drawn
    return found


def picture(anchor: str, spec: Spec) -> markupsafe.Markup:
    """A chart as SVG for inside of a page, whose style sheet gives its colours and fonts."""
    still = all_visible(spec)
    still = {**still, "config": {**still["config"], "aria": False}}
    if still.get("width") == "container":
        still["width"] = _WIDTH
    # No address may be fetched: the specs hold their data.
    text = str(vl_convert.vegalite_to_svg(still, allowed_base_urls=[]))
    return markupsafe.Markup(_slim(text, anchor, markupsafe.escape(still["description"])))  # noqa: S704 - Vega escapes


_MARK = re.compile(r'<path transform="translate\(([-0-9.e]+),([-0-9.e]+)\)" (d="[^"]+"[^>]*)/>')
_CLIP = re.compile(r"\bclip[0-9]+\b")
_LENGTHS = re.compile(r' (?:transform|d|x|y|x2|y2|width|height)="[^"]*"')
_NEEDLESS = re.compile(r' (?:(?:font-family|aria-[a-z]+|role|class|pointer-events)="[^"]*"|opacity="1")')


def _slim(svg: str, anchor: str, title: str) -> str:
    """A third of it: marks that look alike are one shape that is used many times, and lengths are tenths of pixels."""
    shapes: dict[str, str] = {}
    clips: dict[str, int] = {}

    def used(found: re.Match[str]) -> str:
        name = shapes.setdefault(found[3], f"{anchor}-m{len(shapes)}")
        return f'<use href="#{name}" x="{found[1]}" y="{found[2]}"/>'

    def tag(found: re.Match[str]) -> str:
        text = _LENGTHS.sub(lambda length: re.sub(r"(\.\d)\d+", r"\1", length[0]), _NEEDLESS.sub("", found[0]))
        # Vega numbers its clipping paths over all charts of a process.
        return _CLIP.sub(lambda clip: f"{anchor}-c{clips.setdefault(clip[0], len(clips))}", text)

    opening, _, rest = svg.partition(">")
    body = _MARK.sub(used, rest)
    defined = "".join(f'<path id="{name}" {look}/>' for look, name in shapes.items())
    size = "".join(re.findall(r' (?:width|viewBox)="[^"]*"', opening))
    return f'<svg role="img" aria-label="{title}"{size}>' + re.sub("<[^>]+>", tag, f"<defs>{defined}</defs>{body}")


def script_safe(specs: Mapping[str, Any]) -> markupsafe.Markup:
    """The specs as JSON for inside of a script element."""
    # Inside <script> only "<" could end the element early; JSON lets it be written as an escape.
    text = json.dumps(all_visible(specs), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return markupsafe.Markup(text.replace("<", "\\u003c"))  # noqa: S704 - escaped in this very line


def _shown(value: Any) -> Any:
    """The text between ``{{`` and ``}}``; markup is ours."""
    return visible(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value


@functools.cache
def bundle() -> markupsafe.Markup:
    """The library that draws, once for a page. Putting it together takes seconds, so the user's cache keeps it."""
    path = Path(platformdirs.user_cache_dir("gpubench")) / f"vega-{metadata.version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        head, _, code = path.read_bytes().decode().partition("\n")
        if head == _head(code):
            return markupsafe.Markup(code)  # noqa: S704 - the code of our own dependency, not data
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    with contextlib.suppress(MissingToolError):  # without a cache it takes seconds each time, and no more
        write_atomically(path, f"{_head(code)}\n{code}".encode())
    return markupsafe.Markup(code)  # noqa: S704 - see above


def _head(code: str) -> str:
    return f"// SHA-256 of what follows: {hashlib.sha256(code.encode()).hexdigest()}"


MOST = 12
"""Comparisons that have room on a first screen; the table has the others."""
_FARTHEST = 4.0
_ORDER = ("broken", "regression", "improvement", "inconclusive", "equivalent")


@dataclasses.dataclass(frozen=True)
class Tile:
    """A workload with a line per comparison."""

    name: str
    anchor: str
    lines: "list[TileLine]"


@dataclasses.dataclass(frozen=True)
class TileLine:
    """One comparison. ``candidate`` is empty where a page has one only; ``picture`` is SVG."""

    candidate: str
    verdict: str
    word: str
    mark: str
    before: str
    after: str
    effect: str
    interval: str
    picture: markupsafe.Markup


def tiles(inputs: JudgedCampaign, names: Sequence[str]) -> tuple[list[Tile], int]:
    """One tile per workload and size, in the order of the plan; and how many are left out.

    If there are more than ``MOST`` comparisons, the most important ones are kept: broken or different ones first.
    """
    pairs = {labels.pair(one) for one in inputs.verdicts}
    named = labels.pair if len(labels.baselines(inputs.verdicts)) > 1 else lambda one: str(one.candidate)
    margin, bound = inputs.settings.margin, _bound(inputs.verdicts, inputs.settings.margin)
    found: dict[str, Tile] = {}
    weights: dict[str, tuple[int, float]] = {}
    for one, pair, name in zip(inputs.verdicts, inputs.seconds, names, strict=True):
        anchor, (before, after) = anchor_of(one), map(labels.seconds, pair) if pair else ("", "")
        line = TileLine(
            candidate=named(one) if len(pairs) > 1 else "",
            verdict=one.verdict,
            word=one.leaning.partition(",")[0] or one.verdict,
            mark=labels.MARKS.get(one.verdict, ""),
            before=before,
            after=after,
            effect=labels.effect(one),
            interval=labels.interval(one),
            picture=dot_and_interval(one, margin, bound),
        )
        found.setdefault(anchor, Tile(name, anchor, [])).lines.append(line)
        weight = (_ORDER.index(one.verdict) - bool(one.leaning), -abs(one.effect or 0.0))
        weights[anchor] = min(weights.get(anchor, weight), weight)
    kept = sorted(weights, key=lambda anchor: weights[anchor])[: MOST // max(len(pairs), 1) or 1]
    return [tile for anchor, tile in found.items() if anchor in kept], len(found) - len(kept)


def dot_and_interval(one: Verdict, margin: float, bound: float) -> markupsafe.Markup:
    """Dot and interval over the band of the margin, slower to the right; from ``-bound`` to ``bound``."""

    def at(ratio: float) -> float:
        """Percent of the width: almost even within the margin, logarithmic beyond."""
        part = math.log1p(min(abs(ratio), bound) / margin) / math.log1p(bound / margin)
        return round(50 + math.copysign(48 * part, ratio), 1)

    low, high = one.shown
    marks = f'<rect class="margin" x="{at(-margin)}%" width="{at(margin) - at(-margin):.1f}%" height="100%"/>'
    marks += '<line class="zero" x1="50%" x2="50%" y2="100%"/>'
    if low is not None and high is not None:
        marks += f'<line class="interval" x1="{at(low)}%" x2="{at(high)}%" y1="50%" y2="50%"/>'
    if one.effect is not None:
        marks += f'<circle cx="{at(one.effect)}%" cy="50%" r="5"/>'
    return markupsafe.Markup(  # noqa: S704 - numbers only
        f'<svg class="dot {one.verdict}" aria-hidden="true" width="100%" height="24">{marks}</svg>'
    )


def _bound(verdicts: Sequence[Verdict], margin: float) -> float:
    """Room for all effects, and for their intervals if these don't compress the others."""
    effects = [abs(one.effect) for one in verdicts if one.effect is not None]
    ends = [abs(end) for one in verdicts for end in one.shown if end is not None]
    return min(max([2 * margin, *effects, *ends]), _FARTHEST * max([margin, *effects]))
