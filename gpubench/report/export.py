"""The page's charts as files of their own, in the page's light colours."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import vl_convert

from gpubench.errors import DataError
from gpubench.model.text import all_visible
from gpubench.report.sections import Chart

Format = Literal["svg", "png"]

_STYLE = "report/style.css.j2"
_WIDTH = 760
_SHARPNESS = 2.0
_PADDING = {"left": 36, "right": 12, "top": 12, "bottom": 12}  # room for letters that are wider where it is looked at
_FONT = "sans-serif"  # nobody knows which fonts stand where the file is looked at


def images(charts: Iterable[Chart], templates: Mapping[str, str], form: Format) -> Iterator[tuple[str, bytes]]:
    """Every chart of a page: a file name that says what it shows, and the file.

    Raises:
        DataError: a chart that the renderer refuses.
    """
    colours = light_colours(templates[_STYLE])
    taken: set[str] = set()
    for chart in charts:
        yield f"{_free(chart.name, taken)}.{form}", _render(chart.name, standalone(chart.spec, colours), form)


def light_colours(style: str) -> dict[str, str]:
    """The style sheet's colours by name, of the light scheme, which stands first."""
    first = style.partition("}")[0]
    return dict(re.findall(r"--([a-z0-9]+):\s*(#[0-9a-f]+);", first))


def standalone(spec: dict[str, Any], colours: dict[str, str]) -> dict[str, Any]:
    """The spec with real colours, a width, a title and paper behind it: there is no page around it."""
    text = re.sub(r"var\(--([a-z0-9]+)\)", lambda found: colours[found[1]], json.dumps(all_visible(spec)))
    plain: dict[str, Any] = json.loads(text)
    plain["config"] |= {"font": _FONT, "background": colours["paper"]}
    if plain.get("width") == "container":
        plain["width"] = _WIDTH
    title = {"text": plain["description"], "anchor": "start", "fontSize": 14, "offset": 12, "color": colours["ink"]}
    return plain | {"title": title, "padding": _PADDING}


def _render(name: str, spec: dict[str, Any], form: Format) -> bytes:
    # No address may be fetched: the specs hold their data.
    try:
        if form == "svg":
            return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])).encode()
        return bytes(vl_convert.vegalite_to_png(spec, scale=_SHARPNESS, allowed_base_urls=[]))
    except ValueError as error:
        raise DataError(f"chart '{name}' can't be drawn: {str(error).splitlines()[0]}") from None


def _free(name: str, taken: set[str]) -> str:
    """``samples-message-10-MB``; numbered where two names differ only in what a file name can't hold."""
    plain = re.sub(r"[^A-Za-z0-9._=]+", "-", name).strip("-.")
    found, number = plain, 2
    while found.lower() in taken:
        found, number = f"{plain}-{number}", number + 1
    taken.add(found.lower())
    return found
