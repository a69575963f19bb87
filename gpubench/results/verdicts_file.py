"""``verdicts.json``: all verdicts of a campaign with the settings that made them."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict

VERDICTS = "gpubench/verdicts/1"


def verdicts_json(name: str, verdicts: Sequence[Verdict], settings: VerdictSettings, arrangement: str = "") -> bytes:
    """``verdicts.json``: all numbers of every verdict (effects are ratios minus one), and the settings that made them.

    The parts of a cell's key are columns beside its figures, in one flat row; so is how blocks ran their
    variants, where that is known.
    """
    document = plain_verdicts(name, verdicts, settings, arrangement)
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def plain_verdicts(
    name: str, verdicts: Sequence[Verdict], settings: VerdictSettings, arrangement: str
) -> dict[str, Any]:
    cells = []
    for verdict in verdicts:
        figures = dataclasses.asdict(verdict)
        cells.append({**figures.pop("key"), **figures, **({"arrangement": arrangement} if arrangement else {})})
    return {"schema": VERDICTS, "campaign": name, "settings": dataclasses.asdict(settings), "cells": cells}
