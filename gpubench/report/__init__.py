"""What people read: sections, and the pages, Markdown and terminal tables that are made of them.

``page`` is imported from its own module: it brings the renderer of charts along, which a command that prints a table
needn't wait for.
"""

from gpubench.report.inputs import ReportInputs
from gpubench.report.verdicts import verdict_lines, verdicts_json, wide_table

__all__ = ["ReportInputs", "verdict_lines", "verdicts_json", "wide_table"]
