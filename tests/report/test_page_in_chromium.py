"""The report in a real headless Chromium, opened from ``file://``."""

import re
from collections.abc import Iterator
from pathlib import Path

import browser
import pytest
import reports

from gpubench.report.page import Page, html
from gpubench.report.sections import Section, SectionPart, TextSpan

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def page() -> Iterator[browser.Page]:
    with browser.chromium() as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    campaign = reports.troubled(tmp_path_factory.mktemp("c") / "a campaign")
    campaign.report.write_bytes(reports.page_html(reports.collect(campaign)))
    return campaign.report


def test_it_renders_without_a_word_on_the_console_and_without_the_network(page: browser.Page, report: Path) -> None:
    page.requests.clear()
    page.open(report.as_uri())
    assert page.console == []
    assert page.errors == []
    assert page.requests == [report.as_uri()]


@pytest.mark.long
def test_text_is_readable_in_both_schemes(page: browser.Page, report: Path) -> None:
    contrast = """(() => {
      const light = (text) => {
        const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
          .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = light(getComputedStyle(document.body).backgroundColor);
      const texts = document.querySelectorAll('p, td, th, a, .verdict, .status, .flag, summary');
      return Math.min(...[...texts].map((one) => {
        const ink = light(getComputedStyle(one).color);
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      }));
    })()"""
    for dark in (False, True):
        page.open(report.as_uri(), dark=dark)
        assert page.evaluate(contrast) >= 4.5  # WCAG 2, AA


def test_the_table_sorts_by_number_and_by_keyboard(page: browser.Page, report: Path) -> None:
    page.open(report.as_uri())
    effects = (
        "[...document.querySelectorAll('#verdict-table tbody tr')].map((row) => Number(row.cells[4].dataset.sort))"
    )
    heading = "document.querySelector('#verdict-table thead th:nth-child(5)')"
    page.evaluate(f"{heading}.querySelector('button').click()")
    rising = page.evaluate(effects)
    assert rising == sorted(rising)
    assert page.evaluate(f"{heading}.ariaSort") == "ascending"
    page.evaluate(f"{heading}.querySelector('button').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    assert page.evaluate(effects) == sorted(rising, reverse=True)
    assert page.evaluate(f"{heading}.ariaSort") == "descending"


def test_a_telephone_shows_it_without_sideways_scrolling(page: browser.Page, report: Path) -> None:
    page.open(report.as_uri(), width=375, height=800, mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    assert page.evaluate("document.querySelector('#verdict-table td').getBoundingClientRect().right") <= 375
    # That of the effects is drawn anew: all of it is in sight, and its letters have their size.
    assert 300 < page.evaluate("document.querySelector('.narrow').scrollWidth") <= 375
    assert page.evaluate("document.querySelector('.narrow svg').getBoundingClientRect().width") == page.evaluate(
        "Number(document.querySelector('.narrow svg').getAttribute('width'))"
    )
    assert page.evaluate("document.querySelector('#chart-forest').clientHeight") == 0
    # Other pictures are moved inside of their box.
    box = "document.querySelectorAll('.chart')[2]"
    assert page.evaluate(f"{box}.scrollWidth") > 600
    assert page.evaluate(f"getComputedStyle({box}).overflowX") == "auto"


def test_a_telephone_breaks_the_words_of_settings_and_commands(page: browser.Page, tmp_path: Path) -> None:
    word = f"UCX_TLS={','.join(['self'] * 30)}"
    section = Section(
        [SectionPart(lines=[["again: ", TextSpan(f"gpubench bench --variants {word}", "code")]])], title="t"
    )
    path = tmp_path / "page.html"
    path.write_bytes(html(Page("t", "over", [f"With {word} it is slower."], [section], "Made."), reports.TEMPLATES))
    page.open(path.as_uri(), width=375, height=800, mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 375


@pytest.mark.long
def test_tables_keep_their_meaning_for_screen_readers(page: browser.Page, report: Path) -> None:
    page.open(report.as_uri(), width=375, height=800, mobile=True)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if "role" in node]
    assert roles.count("table") >= 5
    assert roles.count("rowheader") >= 10
    names = [node.get("name", {}).get("value", "") for node in nodes]
    assert "Effects with their intervals" in names


def pages_of(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.long
def test_it_prints_on_six_pages_with_its_charts_and_without_what_is_folded(page: browser.Page, tmp_path: Path) -> None:
    campaign = reports.story(tmp_path / "c")
    campaign.report.write_bytes(reports.page_html(reports.collect(campaign)))
    page.open(campaign.report.as_uri(), dark=True)
    assert 2 <= pages_of(page.pdf()) <= 6
    page.call("Emulation.setEmulatedMedia", media="print")
    height = "(id) => document.getElementById(id).getBoundingClientRect().height"
    assert page.evaluate(f"({height})('chart-forest')") > 100
    assert page.evaluate("[...document.querySelectorAll('.chart:not(.narrow)')].every((one) => one.clientHeight > 50)")
    assert page.evaluate(f"({height})('runs')") < 30
    assert page.evaluate(f"({height})('differs')") > 100
    page.call("Emulation.setEmulatedMedia", media="")


def test_the_first_screen_answers_and_says_what_to_do(page: browser.Page, report: Path) -> None:
    page.open(report.as_uri(), width=1400, height=900)
    for part in ("h1", ".next", "#chart-forest"):
        assert page.evaluate(f"document.querySelector('{part}').getBoundingClientRect().bottom") < 900


@pytest.mark.long
def test_what_is_folded_opens_by_its_link(page: browser.Page, tmp_path: Path) -> None:
    campaign = reports.scaled(tmp_path / "c", blocks=2)
    campaign.report.write_bytes(reports.page_html(reports.collect(campaign)))
    page.open(campaign.report.as_uri())
    is_visible = "document.querySelector('#certainty li').checkVisibility()"
    assert not page.evaluate(is_visible)
    page.evaluate(
        "new Promise((done) => { addEventListener('hashchange', () => setTimeout(done, 0)); "
        "location.hash = 'certainty' }).then(() => 1)"
    )
    assert page.evaluate("document.querySelector('details#certainty').open")
    assert page.evaluate(is_visible)
