"""Tables, bars and live lines on a terminal."""

from collections.abc import Iterable

import rich.console
import rich.segment

from gpubench.model.text import visible


class Terminal(rich.console.Console):
    """Rich's console for standard output, with the text of what it draws escaped."""

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[rich.segment.Segment]:
        """As rich does it; called for every part of what is drawn."""
        for text, style, control in super().render(renderable, options):
            shown = text if control else "\n".join(map(visible, text.split("\n")))
            yield rich.segment.Segment(shown, style, control)
