import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import reports
from campaign_builder import QUICK, begin, finish, make_plan, variant

from gpubench.model.cell_names import cell_names
from gpubench.report import condense, differences, labels, provenance, svg
from gpubench.report.campaign_page import campaign_page
from gpubench.report.charts.effects import forest
from gpubench.report.charts.samples import samples
from gpubench.report.sections import Chart, Spec, plain
from gpubench.report.verdicts import verdict_table
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.stats.margin import Margin
from gpubench.store.accounting import Accounting

SYMBOL = b'<path transform="translate('


class Anchors(HTMLParser):
    """Links, ids and the tags that could fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.fetching: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [given["href"] or ""] if tag == "a" else []
        self.ids += [given["id"] or ""] if "id" in given else []
        if "src" in given or tag in ("link", "iframe", "img", "object"):
            self.fetching.append(tag)


def parsed(page: bytes) -> Anchors:
    anchors = Anchors()
    anchors.feed(page.decode())
    return anchors


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> JudgedCampaign:
    return reports.collect(reports.empty(tmp_path_factory.mktemp("c") / "empty"))


@pytest.mark.parametrize("name", ["story", "troubled", "empty"])
def test_one_file_that_fetches_nothing_and_whose_links_resolve(request: pytest.FixtureRequest, name: str) -> None:
    inputs: JudgedCampaign = request.getfixturevalue(name)
    page = reports.page_html(inputs)
    anchors = parsed(page)
    assert anchors.fetching == []
    assert len(page) < 1_000_000
    assert len(anchors.ids) == len(set(anchors.ids))
    ours = {"results.parquet", "verdicts.json", "report.md"}  # written beside the page by the front end
    for link in anchors.links:
        if link.startswith("#"):
            assert link[1:] in anchors.ids
        else:
            assert link in ours or (inputs.results.place / link).is_file(), link


def test_the_headline_says_what_was_found_and_how_sure(story: JudgedCampaign) -> None:
    text = reports.page_html(story).decode()
    heading = re.sub(r"<[^>]+>", "", re.search(r"<h1>(.*?)</h1>", text, re.S)[1])  # type: ignore[index]
    slower = "1.19.0 is slower than 1.17.0 in 1 of 5 comparisons: message 10 MB +48.3 %."
    same = "1.19.0-proto1 is as fast as 1.17.0 in all 5"
    assert heading.strip().replace("\xa0", " ") == f"{slower} {same}, to within ±3 %."
    for said in ("at most 5 % of cases, over all 10 comparisons", "the 90 % interval lies within"):
        assert said in text
    assert "every interface of their nodes; a connection without " in text
    assert "A against A" not in text


def test_every_planned_run_stands_there_with_its_reason(troubled: JudgedCampaign) -> None:
    text = reports.page_html(troubled).decode()
    for reason in (
        "worker 1 on laptop was killed by signal 9",
        "known issue openucx/ucx#9999",
        "job n1-1 ended before this run started",
        "started, but left no record",
        "merge failed: wrong answer: 119 998 rows",
        "2 workers on 2 cores: over-subscribed (16 runs)",
    ):
        assert reason in text
    assert text.count('class="place"') == 21
    assert "(failed, not used)" in text


def test_the_page_and_markdown_say_which_stragglers_cannot_be_excluded(
    story: JudgedCampaign, empty: JudgedCampaign
) -> None:
    limits = {f"{100 * one.straggler_limit:.2g}" for one in story.verdicts if one.straggler_limit is not None}
    said = (
        f"Stragglers rarer than {min(limits, key=float)} to {max(limits, key=float)} % of samples can’t be excluded; "
    )
    assert said + "where they matter, run 30 repetitions or more." in reports.page_html(story).decode()
    assert said in reports.summary(story)
    nothing = reports.page_html(empty).decode()
    assert "Stragglers rarer" not in nothing
    assert "No sample of this workload was taken." in nothing


@pytest.mark.parametrize("env", [{}, {"UCX_TLS": "tcp"}], ids=["no settings", "what the site sets anyway"])
def test_a_against_a_is_labelled(tmp_path: Path, env: dict[str, str]) -> None:
    variants = (variant("a", "1.22.0"), variant("b", "1.22.0", env))
    plan = make_plan(variants, blocks=6, suite=QUICK[:1])
    site = plan.site.model_copy(update={"env": {"UCX_TLS": "tcp"}})
    campaign = begin(tmp_path / "c", plan.model_copy(update={"site": site}))
    finish(campaign)
    inputs = reports.collect(campaign)
    text = reports.page_html(inputs).decode()
    assert "b is the same image with the same settings as a (A against A)" in text
    assert ("Manifests and settings are the same; within" in text) == (not env)
    assert "A against A" in reports.summary(inputs)


def test_what_the_binding_sets_by_itself_and_a_variant_sets_too_is_a_against_a(tmp_path: Path) -> None:
    """ucxx sets UCX_RNDV_THRESH=8192 wherever nobody names it."""
    campaign = begin(
        tmp_path / "c",
        make_plan((variant("a", "1.22.0"), variant("b", "1.22.0", {"UCX_RNDV_THRESH": "8192"})), blocks=6),
    )
    finish(campaign)
    inputs = reports.collect(campaign)
    told = "b is the same image with the same settings as a (A against A)"

    def with_threshold(of_b: str) -> str:
        changed = reports.recorded(inputs)
        for run in inputs.outcomes:
            value = of_b if run.run.variant == "b" else "8192"
            for process in changed[run.directory.name]["processes"] if run.directory else ():
                process["ucx"]["env"]["UCX_RNDV_THRESH"] = value
        return reports.page_html(reports.with_provenance(inputs, changed)).decode()

    assert told in with_threshold("8192")
    assert told not in with_threshold("1024")


@pytest.mark.parametrize("found", [None, {"processes": [], "nodes": [], "transport": {}, "speed": []}])
def test_a_run_that_left_no_provenance_is_shown_as_not_recorded(
    story: JudgedCampaign, found: dict[str, object] | None
) -> None:
    known = {} if found is None else dict.fromkeys(reports.recorded(story), found)
    thin = reports.with_provenance(dataclasses.replace(story, manifests={}), known)
    assert provenance.by_variant(thin)["libucp"] == ["not recorded"] * 3
    assert len(provenance.hosts(thin).rows) <= 1
    assert {plain(row[3]) for row in provenance.runs(thin).rows} == {"not recorded"}
    assert [*differences.differing(thin)] == ["settings.UCX_PROTO_ENABLE"]


def test_what_a_binding_sets_by_itself_is_a_difference(story: JudgedCampaign) -> None:
    changed = reports.recorded(story)
    for one in changed.values():
        for process in one["processes"]:
            if process["ucx"]["loaded"] == "1.17.0":
                process["ucx"]["env"]["UCX_PROTO_ENABLE"] = "n"
    bound = reports.with_provenance(story, changed, known={"1.17.0": {"UCX_PROTO_ENABLE": "n"}})
    facts = differences.differing(bound)
    assert facts["environment.UCX_PROTO_ENABLE"] == ["n", "unset", "n"]
    assert facts["settings.UCX_PROTO_ENABLE"] == ["absent", "absent", "n"]
    assert "environment.UCX_TLS" not in facts
    said = "besides what was asked for, one setting differs: the binding sets UCX_PROTO_ENABLE=n for 1.17.0"
    assert differences.unplanned(bound.plan, bound.changes) == [said]
    page = reports.page_html(bound).decode()
    assert f'<p class="note">{said}</p>' in page.partition("</header>")[0]
    assert said.replace("_", "\\_") in reports.summary(bound)


def test_two_settings_of_transports_that_change_nothing_are_a_note(story: JudgedCampaign) -> None:
    last = story.plan.variants[-1]
    variants = [*story.plan.variants[:-1], last.model_copy(update={"env": {**last.env, "UCX_TLS": "tcp,shm"}})]
    other = reports.with_plan(story, story.plan.model_copy(update={"variants": variants}))
    notes = differences.cautions(other)
    assert [note.split(" differ in ")[0] for note in notes] == [
        f"{one.baseline} and {last.label}" for one in story.plan.comparisons if one.candidate == last.label
    ]
    (used,) = {", ".join(sorted(one.record.transport)) for one in story.outcomes if one.record and one.status == "ok"}
    assert notes[0].endswith(f" differ in UCX_TLS, but the runs of both used {used}: no other transport is compared")
    assert notes[0] in reports.page_html(other).decode()

    of_last = [one for one in story.outcomes if one.run.variant == last.label and one.record]
    moved = {id(one): dataclasses.replace(one.record, transport=["posix"]) for one in of_last if one.record}
    outcomes = [dataclasses.replace(one, record=moved.get(id(one), one.record)) for one in story.outcomes]
    assert differences.cautions(dataclasses.replace(other, accounting=Accounting(tuple(outcomes)))) == []


def test_how_ucx_moves_large_messages_is_told_where_it_went_with_a_slower_variant(story: JudgedCampaign) -> None:
    """A version that is slower because it chooses another way says so itself; one that isn't slower needs no reason."""
    slower = next(one for one in story.verdicts if one.verdict == "regression")
    ways = {slower.baseline: "cma (zero-copy read from remote)", slower.candidate: "tcp (fragmented copy-in copy-out)"}
    label_of = {outcome.directory.name: outcome.run.variant for outcome in story.outcomes if outcome.directory}

    def moving(ways: dict[str, str], *odd: str) -> JudgedCampaign:
        changed = reports.recorded(story)
        for run, one in changed.items():
            way = ways.get(label_of[run], "")
            one["transport"] = {"observed": ["cma", "tcp"], "carriers": [*odd, *([way] if way else [])]}
            odd = ()
        return reports.with_provenance(story, changed)

    line = (
        f"UCX moves large messages in another way: by cma (zero-copy read from remote) in {slower.baseline}, "
        f"by tcp (fragmented copy-in copy-out) in {slower.candidate}"
    )
    assert line in differences.cautions(moving(ways))
    equal = dict.fromkeys(ways, "cma (zero-copy read from remote)")
    for others in (equal, {slower.candidate: ways[slower.candidate]}):
        assert not [text for text in differences.cautions(moving(others)) if "large messages" in text]
    odd = differences.cautions(moving(equal, "tcp (eager copy-in copy-out)"))
    assert not [text for text in odd if "large messages" in text], "one run of one side is no difference of versions"
    calm = dataclasses.replace(
        moving(ways), verdicts=[dataclasses.replace(one, verdict="equivalent") for one in story.verdicts]
    )
    assert line not in differences.cautions(calm)


def test_many_fields_of_one_kind_are_one_note_that_says_the_first(story: JudgedCampaign) -> None:
    changed = reports.recorded(story)
    for one in changed.values():
        if one["processes"][0]["ucx"]["loaded"] == "1.17.0":
            one["nodes"][0]["network"] = {f"ib{number}": {"mtu": "4092"} for number in range(20)}
        else:
            one["nodes"][0]["network"] = {}
    other = reports.with_provenance(story, changed)
    (note,) = differences.unplanned(other.plan, other.changes)
    assert note.startswith("unplanned difference: 20 fields of network, the first: network.ib0.mtu is 4092 in 1.17.0, ")
    assert note.endswith("(not asked for, so it blocks the comparison)")


def test_processes_that_disagree_are_both_named(story: JudgedCampaign) -> None:
    changed = reports.recorded(story)
    first = next(one for one in changed.values() if one["processes"][0]["ucx"]["loaded"] == "1.17.0")
    first["processes"][0]["ucx"]["loaded"] = "1.18.1"
    told = provenance.by_variant(reports.with_provenance(story, changed))
    assert told["UCX loaded, as read in every process"][0] == "1.17.0 or 1.17.0, 1.18.1"


def test_noise_is_shown_by_variant_as_diff_shows_it(story: JudgedCampaign) -> None:
    changed = reports.recorded(story)
    for one in changed.values():
        slow = one["processes"][0]["ucx"]["loaded"] == "1.17.0"
        one["speed"] = [{"name": "w0", "wall_s": [1.0]}, {"name": "w1", "wall_s": [2.5 if slow else 1.0]}]
    told = provenance.by_variant(reports.with_provenance(story, changed))
    assert told["slowest worker over median, worst probe, median over runs"] == ["2.50", "1.00", "1.00"]


def test_every_sample_is_drawn_up_to_a_number_and_every_second_block_above_it(story: JudgedCampaign) -> None:
    per_run = condense.MOST_SAMPLES // len(story.results.runs)

    def with_samples(count: int) -> JudgedCampaign:
        wall_s = tuple(0.0123456789 * (1 + 0.001 * number) for number in range(count))
        runs = [dataclasses.replace(one, wall_s=wall_s) for one in story.results.runs]
        return dataclasses.replace(story, results=dataclasses.replace(story.results, runs=runs))

    page = reports.page_html(with_samples(per_run))
    assert 1_500_000 < len(page) < 5_000_000
    assert page.count(SYMBOL) > per_run * len(story.results.runs)
    assert b"too many to show" not in page
    many = with_samples(per_run + 1)
    assert b"too many to show" in reports.page_html(many)
    first = next(one for one in campaign_page(many).charts() if one.name.startswith("samples"))
    blocks = sorted({one.block.block for one in story.outcomes})
    assert {bar["block"] for bar in first.spec["layer"][2]["data"]["values"]} == {*blocks[::2]}


def test_a_straggler_makes_the_axis_logarithmic(story: JudgedCampaign) -> None:
    cells = [one for one in story.results.runs if dict(one.key)["workload"] == "tasks"]
    variants = [one.label for one in story.plan.variants]
    assert '"log"' not in json.dumps(samples(cells, variants, "tasks"))
    cells[3] = dataclasses.replace(cells[3], wall_s=(*cells[3].wall_s[:-1], 9.0))
    assert '"log"' in json.dumps(samples(cells, variants, "tasks"))


def drawn(spec: Spec) -> str:
    return svg.svg(Chart("", "", lambda: spec))


def marks(spec: Spec) -> int:
    return drawn(spec).encode().count(SYMBOL)


def across(forest: Spec) -> Spec:
    x: Spec = forest["spec"]["layer"][0]["encoding"]["x"]
    return x


def test_one_hopeless_interval_does_not_hide_the_others(story: JudgedCampaign) -> None:
    wide = [dataclasses.replace(story.verdicts[0], low_equivalence=-0.99, high_equivalence=80.0), *story.verdicts[1:]]
    spec = forest(wide, [f"row {number}" for number in range(10)], Margin(0.03))
    (low, high) = across(spec)["scale"]["domain"]
    assert (low, high) == pytest.approx((-99.0, 193.0), abs=1)
    usual = forest(story.verdicts, [f"row {number}" for number in range(10)], Margin(0.03))
    assert marks(spec) == marks(usual) + 1, "the end that is cut has a mark"


def test_effects_stand_together_by_variant_on_an_axis_that_shows_the_margin(story: JudgedCampaign) -> None:
    names = cell_names([one.key for one in story.verdicts])
    spec = forest(story.verdicts, names, Margin(0.03))
    assert [row["pair"] for row in spec["data"]["values"]] == [labels.pair(one) for one in story.verdicts]
    assert spec["facet"]["row"]["sort"] == ["1.19.0 vs 1.17.0", "1.19.0-proto1 vs 1.17.0"]
    assert [row["first"] for row in spec["data"]["values"]].count(True) == 2
    x = across(spec)
    assert (x["scale"]["type"], x["scale"]["constant"]) == ("symlog", 3)
    assert x["axis"]["values"] == [0, 3, 10, 20, 50, -2.9]
    # Times are compared as ratios: what is faster by 2.95 % lies beyond a margin of 3 %.
    band = spec["spec"]["layer"][0]["encoding"]
    assert (band["x"]["datum"], band["x2"]["datum"]) == pytest.approx((100 / 1.03 - 100, 3))
    svg = drawn(spec)
    heads = [svg.index(f">{pair}<") for pair in spec["facet"]["row"]["sort"]]
    assert heads == sorted(heads)
    assert svg.count(">merge<") == 2


def test_an_effect_without_an_interval_does_not_press_the_others_flat_and_stands_at_the_edge(
    story: JudgedCampaign,
) -> None:
    shown = [one for one in story.verdicts if one.effect is not None]
    names = [f"row {number}" for number in range(len(shown))]
    none = dict.fromkeys(("low", "high", "low_equivalence", "high_equivalence"))
    alone = [dataclasses.replace(shown[0], effect=14.3, **none), *shown[1:]]
    spec = forest(alone, names, Margin(0.03))
    assert across(spec)["scale"]["domain"][1] < 200
    assert drawn(spec).count("+1430.0 %") == 1
    usual = forest(shown, names, Margin(0.03))
    assert marks(spec) == marks(usual), "an arrow instead of the point"
    assert not any(row["text"] in drawn(usual) for row in usual["data"]["values"])


def test_verdicts_against_another_baseline_name_it_everywhere(story: JudgedCampaign) -> None:
    def heading(judged: JudgedCampaign) -> str:
        found = re.search(r"Variant <span[^>]*>(.*?)</span>", reports.page_html(judged).decode())
        assert found
        return found[1]

    verdicts = [
        dataclasses.replace(one, baseline="1.19.0-proto1") for one in story.verdicts if one.candidate == "1.19.0"
    ]
    other = dataclasses.replace(story, verdicts=verdicts)
    both = dataclasses.replace(story, verdicts=[*verdicts, *story.verdicts])
    assert [heading(judged) for judged in (story, other, both)] == ["vs 1.17.0", "vs 1.19.0-proto1", "vs baseline"]
    candidates = [plain(row[2]) for row in verdict_table(both.verdicts).rows]
    assert (candidates[0], candidates[-1]) == ("1.19.0 vs 1.19.0-proto1", "1.19.0-proto1 vs 1.17.0")
