"""``verdicts.json``: the verdicts for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from gpubench.stats.settings import Settings
from gpubench.stats.verdict import Verdict

VERDICTS = "gpubench/verdicts/1"


def verdicts_json(campaign: str, verdicts: Sequence[Verdict], settings: Settings) -> bytes:
    """Every verdict with all its numbers (effects are ratios minus one), and the settings that made them."""
    document = {
        "schema": VERDICTS,
        "campaign": campaign,
        "settings": dataclasses.asdict(settings),
        "verdicts": [dataclasses.asdict(one) | {"key": dict(one.key)} for one in verdicts],
    }
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
