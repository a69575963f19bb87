"""``verdicts.json``: the verdicts for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict

VERDICTS = "gpubench/verdicts/1"


def verdicts_json(
    campaign: str, verdicts: Sequence[Verdict], settings: VerdictSettings, arrangement: str = ""
) -> bytes:
    """Every verdict with all its numbers (effects are ratios minus one), and the settings that made them.

    The parts of a cell's key stand beside its figures, as columns of one flat row; so does how blocks ran their
    variants, where that is known.
    """
    document = {
        "schema": VERDICTS,
        "campaign": campaign,
        "settings": dataclasses.asdict(settings),
        "cells": [_row(one, arrangement) for one in verdicts],
    }
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _row(verdict: Verdict, arrangement: str) -> dict[str, object]:
    figures = dataclasses.asdict(verdict)
    return {**dict(figures.pop("key")), **figures, **({"arrangement": arrangement} if arrangement else {})}
