"""Many commands of the manual draw the charts of one small campaign."""

import tests.drawn_once  # noqa: F401
