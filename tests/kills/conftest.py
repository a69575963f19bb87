"""What every kill campaign does with a point that it has tried."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kills.campaign import Seen
from tests.point_counts import POINTS, Count

Note = Callable[[Seen], Seen]


@pytest.fixture
def note(record_property: Count) -> Note:
    """Print a point and count it, if it struck."""

    def noted(seen: Seen) -> Seen:
        print(seen)
        record_property(POINTS, int(bool(seen.struck)))
        return seen

    return noted
