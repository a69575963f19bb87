"""What people read: one self-contained page per campaign, the same in Markdown, and verdicts on a terminal.

``page.html`` is imported from its own module: it brings Altair along, which a command that prints a table needn't wait
for.
"""

from gpubench.report.inputs import ReportInputs
from gpubench.report.verdicts import verdict_lines, verdict_table, verdicts_json

__all__ = ["ReportInputs", "verdict_lines", "verdict_table", "verdicts_json"]
