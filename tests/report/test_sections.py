"""One section says the same in lines, in Markdown and on a page."""

import re

import reports

from gpubench.report.differences import diff_section
from gpubench.report.page import Page, html, markdown
from gpubench.report.sections import (
    ColumnStyle,
    Heading,
    Medium,
    Section,
    SectionPart,
    TextSpan,
    TextTable,
    markdown_text,
    text_lines,
)
from gpubench.results.merge.explain import Explained
from gpubench.stats.paired_difference import PairedDifference


def table(**given: object) -> TextTable:
    on_page, printed = Heading("why", medium=Medium.PAGE), Heading("shown", medium=Medium.PRINTED)
    columns = ["link", Heading("rate", ColumnStyle.NUMBER), on_page, printed]
    rows = [
        ["n0 to n1", TextSpan("1 GB/s", link="runs/a"), "slow <cable>", "yes"],
        ["n1 to n0", TextSpan("2 GB/s", sort=2e9), "", "no"],
    ]
    return TextTable(columns, rows, "rates", **given)  # type: ignore[arg-type]


def body(*parts: SectionPart, brief: str | None = None) -> str:
    section = Section(parts, title="Links", anchor="links", brief=brief)
    page = html(Page("t", "over", ["Answer."], [section], "Made."), reports.TEMPLATES).decode()
    return page.partition("<main>")[2].partition("</main>")[0]


def test_a_column_is_shown_where_it_says_and_a_cell_says_the_same_everywhere() -> None:
    section = Section([SectionPart("title", table=table())])
    lines, text, page = list(text_lines(section)), markdown_text(section), body(*section.parts)
    assert lines[2].split() == ["n0", "to", "n1", "1", "GB/s", "yes"]
    assert "| n0 to n1 | 1 GB/s | yes |" in text
    assert '<th scope="row">n0 to n1</th><td class="number"><a href="runs/a">1 GB/s</a></td>' in page
    assert "slow &lt;cable&gt;" in page
    assert 'data-sort="2000000000.0"' in page
    assert not any("slow" in line for line in (*lines, text))
    assert ">shown<" not in page
    assert "<h3>title</h3>" in page


def test_a_part_is_shown_where_it_says_also_inside_of_another() -> None:
    inner = [
        SectionPart(lines=["printed"], medium=Medium.PRINTED),
        SectionPart(lines=["on the page"], medium=Medium.PAGE, fold="more"),
    ]
    section = Section([SectionPart("outer", parts=[*inner, SectionPart(lines=["markdown"], medium=Medium.MARKDOWN)])])
    assert list(text_lines(section)) == ["outer", "printed"]
    assert [word in markdown_text(section) for word in ("printed", "on the page", "markdown")] == [True, False, True]
    page = body(*section.parts)
    assert re.search(r"<details>\s*<summary>more</summary>\s*<ul>\s*<li>on the page</li>", page)
    assert "printed" not in page


def test_the_last_cell_of_a_short_row_spans_what_is_left_and_a_section_folds_where_it_has_a_brief() -> None:
    shared = TextTable(["value", "a", "b"], [["host", [TextSpan("all:", "quiet"), " n0"]]])
    page = body(SectionPart(table=shared), brief="1 slow")
    assert '<td colspan="2"><span class="quiet">all:</span> n0</td>' in page
    assert re.search(r'<section class="part" id="links">\s*<details>\s*<summary><h2>Links</h2>.*1 slow', page)
    assert re.search(r'<section id="links">\s*<h2>Links</h2>', body())


def test_a_page_in_markdown_is_its_answer_its_notes_and_the_sections_that_are_for_it() -> None:
    sections = [Section([SectionPart(lines=["kept"])]), Section([SectionPart(lines=["left out"])], medium=Medium.PAGE)]
    text = markdown(Page("t", "over", ["Slower.", "As fast."], sections, "Made.", notes=["A *note*"]))
    assert text == "**Slower. As fast.**\n\n> A \\*note\\*\n\n- kept\n"


def test_a_difference_that_reads_0_has_no_minus() -> None:
    noise = {"busy": PairedDifference(6, 99.804, 99.801, -0.003, -0.01, -0.02, 0.98)}
    text = "\n".join(text_lines(diff_section(Explained([], noise, 6), [], ("a", "b"), [])))
    assert "+0.00" in text
    assert "-0.0" not in text
