"""``python -m benchmarks.starts.front STACK WORDS...``: ``gpubench WORDS...`` with no other stack than ``STACK``.

Without it the first row of ``docker/compatibility.toml`` that runs all versions is taken, and others never are.
"""

from __future__ import annotations

import sys

from gpubench.cli.entry_point import main
from gpubench.images import compatibility

table = compatibility._table()
only = table.model_copy(update={"stack": [row for row in table.stack if row.name == sys.argv[1]]})
compatibility._table = lambda: only  # type: ignore[assignment]
sys.argv[1:] = sys.argv[2:]
main()
