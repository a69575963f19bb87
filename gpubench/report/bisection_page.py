"""The answer of a search, for a terminal, in Markdown and as a page: the same sentences and sections."""

import abc
import dataclasses
import datetime as dt
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from gpubench import __version__
from gpubench.campaign.bisection import Search, typed_options
from gpubench.campaign.bisection_differences import DifferenceSpace
from gpubench.campaign.bisection_points import PointList
from gpubench.model.text import counted
from gpubench.render.shell import command_line
from gpubench.report.campaign_page import moment
from gpubench.report.page import Page
from gpubench.report.sections import RichText, Section, SectionPart, TextSpan, inline, text_lines
from gpubench.stats.bisection import SearchAnswer, Step
from gpubench.stats.setting_search import SettingAnswer
from gpubench.store.campaign import SEARCH_FILE, Campaign

Space = TypeVar("Space", PointList, DifferenceSpace)
Answer = TypeVar("Answer", SearchAnswer, SettingAnswer)


@dataclasses.dataclass(frozen=True)
class Outcome(abc.ABC, Generic[Space, Answer]):
    """What a search that has ended has found."""

    search: Search
    space: Space
    steps: Sequence[Step]
    answer: Answer

    @property
    def word(self) -> str:
        """``named``, or why nothing is."""
        return self.answer.word

    @functools.cached_property
    def blocks(self) -> list[Mapping[int, float]]:
        """Of all steps."""
        return [block for step in self.steps for block in step.blocks]

    @functools.cached_property
    def seen(self) -> list[int]:
        """The points that were measured."""
        return sorted({point for step in self.steps for point in step.points})

    @abc.abstractmethod
    def sentences(self) -> list[str]:
        """The answer, what it rests on, and what it doesn't say."""

    def notes(self) -> list[str]:
        """What to know beside it."""
        return []

    @abc.abstractmethod
    def measured(self) -> list[Section]:
        """The picture, and all that was measured."""

    @abc.abstractmethod
    def left_out(self) -> list[str]:
        """What was skipped, and what was not searched."""

    def cost(self) -> str:
        """``4 steps, 50 runs; margin ±10 %``."""
        margin = self.search.settings.margin.percent
        return f"{counted(len(self.steps), 'step')}, {counted(self.runs, 'run')}; margin ±{margin}"

    @property
    def runs(self) -> int:
        """How many were measured."""
        return sum(len(step.points) * len(step.blocks) for step in self.steps)

    @abc.abstractmethod
    def command(self) -> str:
        """That measures the answer again; empty where there is none."""

    @abc.abstractmethod
    def plain(self) -> dict[str, Any]:
        """As JSON: effects are ratios minus one."""


AnyOutcome = Outcome[PointList, SearchAnswer] | Outcome[DifferenceSpace, SettingAnswer]


def bench_command(search: Search, variants: Sequence[str]) -> str:
    """A campaign of these variants, with the options of the search."""
    command = ["gpubench", "bench", *typed_options(search.options)]
    return command_line([*command, "--workloads", search.workload, "--variants", " ".join(variants)])


def lines(outcome: AnyOutcome) -> Iterator[str]:
    """For a terminal: the answer first, the command that repeats it last."""
    yield from outcome.sentences()
    yield from (f"note: {note}" for note in outcome.notes())
    for section in (*outcome.measured(), *_left_out(outcome)):
        yield ""
        yield from text_lines(section)
    yield outcome.cost()
    if command := outcome.command():
        yield f"To measure this again: {command}"


def search_page(outcome: AnyOutcome) -> Page:
    """The page; its links are relative to the directory of the search."""
    search, (sentence, *others) = outcome.search, outcome.sentences()
    plan = Campaign.open(search.step_directory(0)).plan
    when = moment(dt.datetime.fromisoformat(plan.created_at))
    return Page(
        title=f"What made {search.workload} {'faster' if outcome.answer.effect.mean < 0 else 'slower'}",
        over=f"gpubench bisect · {search.workload} of suite {plan.suite} on {plan.site.name} · {when}",
        headline=[sentence],
        opening="\n\n".join([f"**{inline(sentence)}**", *map(inline, others)]),
        about=others,
        notes=outcome.notes(),
        sections=[*outcome.measured(), *_left_out(outcome), _again(outcome)],
        made=f"Made by gpubench {__version__}.",
        why_no_chart="nothing that was measured has a figure",
    )


def _left_out(outcome: AnyOutcome) -> list[Section]:
    lines = outcome.left_out()
    parts = [SectionPart(lines=lines)]
    return [Section(parts, title="Skipped, and not searched", anchor="left-out")] if lines else []


def _again(outcome: AnyOutcome) -> Section:
    """What it cost, where its files are, and how to repeat the answer."""
    files: list[str | TextSpan] = ["Files: ", TextSpan(SEARCH_FILE, link=SEARCH_FILE)]
    if paths := sorted(outcome.search.directory.glob("step-*")):
        page = TextSpan("gpubench report STEP", "code")
        files += [f", and a campaign per step, {paths[0].name} to {paths[-1].name}; ", page, " writes the page of one"]
    command = outcome.command()
    again: list[RichText] = [["To measure this again: ", TextSpan(command, "code")]] if command else []
    return Section(
        [
            SectionPart(lines=[outcome.cost()], text=[[*files, "."]]),
            SectionPart(lines=again),
        ],
        title="What it took, and how to repeat it" if command else "What it took",
        anchor="again",
    )
