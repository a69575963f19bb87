"""Torn, foreign and edited files of campaigns and imports: looked for, never mended; nothing is written.

What a run leaves is told by its record, what the record says by the plan, what the plan says by the hashes in it.
"""

from gpubench.fsck.campaigns import check_campaign
from gpubench.fsck.findings import Checked, Finding
from gpubench.fsck.imports import check_import

__all__ = ["Checked", "Finding", "check_campaign", "check_import"]
