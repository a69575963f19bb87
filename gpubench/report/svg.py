"""Charts drawn: as SVG inside of a page, whose style sheet gives their colours, and as files of their own.

The renderer is part of gpubench's installation, and fetches nothing.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from gpubench.errors import DataError
from gpubench.model.text import all_visible
from gpubench.report.sections import Chart, Spec

_STYLE = "report/style.css.j2"
_PADDING = {"left": 36, "right": 12, "top": 12, "bottom": 12}  # letters may be wider where the file is looked at


def svg(chart: Chart, *, narrow: bool = False) -> str:
    """The chart for inside of a page, or for that on a phone.

    Raises:
        DataError: a chart that the renderer refuses.
    """
    spec = chart.draw_narrow() if narrow and chart.draw_narrow else chart.spec
    return _draw(chart.name, all_visible(spec))


def images(charts: Iterable[Chart], templates: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Every chart of a page in the page's light colours: a file name that says what it shows, and the file.

    Raises:
        DataError: a chart that the renderer refuses.
    """
    colours = light_colours(templates[_STYLE])
    taken: set[str] = set()
    for chart in charts:
        yield f"{_free(chart.name, taken)}.svg", _draw(chart.name, standalone(chart.spec, colours)).encode()


def light_colours(style: str) -> dict[str, str]:
    """The style sheet's colours by name, of the light scheme, which stands first."""
    return dict(re.findall(r"--([a-z0-9]+):\s*(#[0-9a-f]+);", style.partition("}")[0]))


def standalone(spec: Spec, colours: Mapping[str, str]) -> Spec:
    """The spec with real colours, a title and paper behind it: there is no page around it."""
    text = re.sub(r"var\(--([a-z0-9]+)\)", lambda name: colours[name[1]], json.dumps(all_visible(spec)))
    plain: Spec = json.loads(text)
    plain["config"] |= {"background": colours["paper"]}
    title = {"text": plain["description"], "anchor": "start", "fontSize": 14, "offset": 12, "color": colours["ink"]}
    return plain | {"title": title, "padding": _PADDING}


def _draw(name: str, spec: Spec) -> str:
    import vl_convert  # half a second, which a table need not wait for

    try:
        return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    except ValueError as error:
        raise DataError(f"chart '{name}' can't be drawn: {str(error).splitlines()[0]}") from None


def _free(name: str, taken: set[str]) -> str:
    """``samples-message-10-MB``; numbered where two names differ only in what a file name can't hold."""
    plain = re.sub(r"[^A-Za-z0-9._=]+", "-", name).strip("-.")
    free, number = plain, 2
    while free.lower() in taken:
        free, number = f"{plain}-{number}", number + 1
    taken.add(free.lower())
    return free
