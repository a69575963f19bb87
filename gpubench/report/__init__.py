"""What people read: one self-contained page per campaign, the same in Markdown, and verdicts on a terminal."""

from gpubench.report.inputs import ReportInputs
from gpubench.report.markdown import markdown
from gpubench.report.page import html
from gpubench.report.record import verdicts_json
from gpubench.report.terminal import verdict_lines, verdict_table

__all__ = ["ReportInputs", "html", "markdown", "verdict_lines", "verdict_table", "verdicts_json"]
