"""Torn, foreign and edited files of campaigns and imports are found, but never repaired; nothing is written.

A run's files are checked against its record, the record against the plan, and the plan against the hashes in it.
"""

from gpubench.fsck.campaigns import check_campaign
from gpubench.fsck.findings import Checked, Finding
from gpubench.fsck.imports import check_import

__all__ = ["Checked", "Finding", "check_campaign", "check_import"]
