"""Two campaigns or imports side by side: the same suite on Slurm and on Kubernetes."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from campaign_builder import Writer, begin, make_plan, variant

from tests.conftest import Run

SUITE = (("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 3, 0.41), ("tasks", {"count": 500}, 3, 0.2))


def campaign(
    directory: Path,
    *,
    slower: float = 1.0,
    variants: Sequence[str] = ("1.17.0",),
    blocks: int = 6,
    memory: int = 2**31,
    suite: Sequence[tuple[str, dict[str, object], int, float]] = SUITE,
    **question: object,
) -> Path:
    """One and two nodes; ``slower`` and ``memory`` are those of two; ``question``: fields of the plan."""
    plan = make_plan(
        tuple(variant(one) for one in variants), blocks=blocks, nodes=(1, 2), suite=suite, campaign=directory.name
    )
    jobs = [job.model_copy(update={"memory_limit": memory if job.nodes == 2 else 2**31}) for job in plan.jobs]
    writer = Writer(begin(directory, plan.model_copy(update={"jobs": jobs, **question})))
    for job, block, run in writer.campaign.rows():
        writer.effect = lambda _, workload, nodes=job.nodes: slower if nodes == 2 and workload.name == "merge" else 1.0
        writer.write(job, block, run)
    return directory


def test_every_size_of_every_workload_gets_a_verdict_that_says_what_it_cannot_take_out(
    gpubench: Run, tmp_path: Path
) -> None:
    slurm, kubernetes = campaign(tmp_path / "slurm"), campaign(tmp_path / "kubernetes", slower=1.2)
    written = gpubench("report", slurm, kubernetes, "--html", "sides.html")
    assert (written.returncode, written.stdout.splitlines()[-1]) == (0, "page: sides.html"), written.stderr
    found = json.loads(gpubench("compare", slurm, kubernetes, "--json").stdout)
    verdicts = {(one["workload"], one["workers"]): one for one in found["cells"]}
    assert {place: one["verdict"] for place, one in verdicts.items()} == {
        ("merge", 2): "equivalent",
        ("merge", 4): "regression",
        ("tasks", 2): "equivalent",
        ("tasks", 4): "equivalent",
    }
    assert verdicts["merge", 4]["effect"] == pytest.approx(0.2, abs=0.03)
    assert verdicts["merge", 4]["blocks"] == 6
    assert all("unpaired" in one["flags"] for one in verdicts.values())
    assert "note: unpaired: no block is shared" in gpubench("compare", slurm, kubernetes).stdout
    done = gpubench("report", slurm, kubernetes, "--only", "scaling", "--json")
    curves = {(one["workload"], one["variant"]): one for one in json.loads(done.stdout)["curves"]}
    merge = curves["merge", "B kubernetes 1.17.0"]
    assert (merge["rule"], [size["nodes"] for size in merge["sizes"]]) == ("weak", [1, 2])
    assert merge["sizes"][1]["efficiency"]["value"] == pytest.approx(1 / 1.2, rel=0.03)
    page = (tmp_path / "sides.html").read_text()
    assert "unpaired: no block is shared" in page
    charts = dict(re.findall(r'id="chart-([^"]+)".*?(<svg.*?</svg>)', page, re.S))
    assert [name.partition("-")[0] for name in charts] == ["forest", "scaling"]


def test_compare_of_two_directories_ends_with_the_verdicts_exit_code(gpubench: Run, tmp_path: Path) -> None:
    one, same = campaign(tmp_path / "one", suite=SUITE[:1]), campaign(tmp_path / "same", suite=SUITE[:1])
    slow, few = (
        campaign(tmp_path / name, suite=SUITE[:1], slower=slower, blocks=blocks)
        for name, slower, blocks in (("slow", 1.3, 6), ("few", 1.0, 2))
    )
    done = [gpubench("compare", one, other) for other in (same, slow, few)]
    assert [each.returncode for each in done] == [0, 20, 21]
    assert "a verdict needs at least 3 on each side" in done[2].stdout
    twice = gpubench("compare", one, one)
    assert (twice.returncode, "is named twice" in twice.stderr) == (2, True)
    copied = gpubench("compare", one, shutil.copytree(one, tmp_path / "copy"))
    assert (copied.returncode, "hold the same runs; one is a copy of the other" in copied.stderr) == (2, True)


def test_runs_that_are_not_ok_are_counted_beside_the_verdicts(gpubench: Run, tmp_path: Path) -> None:
    one, other = (campaign(tmp_path / name, suite=SUITE[:1]) for name in ("one", "other"))
    assert "aren't ok" not in gpubench("compare", one, other).stdout
    for directory in sorted((other / "runs").iterdir())[:5]:
        (directory / "run.json").unlink()
    note = "note: B: 5 of 12 runs of 1.17.0 aren't ok, or only in part"
    assert note in gpubench("compare", one, other).stdout


def test_one_label_that_is_another_image_on_each_side_is_said(gpubench: Run, tmp_path: Path) -> None:
    one, same = (campaign(tmp_path / name, suite=SUITE[:1]) for name in ("one", "same"))
    rebuilt = tmp_path / "rebuilt"
    plan = make_plan((variant("1.17.0", "1.17.0,dask==2025.7.0"),), blocks=6, suite=SUITE[:1], campaign="rebuilt")
    writer = Writer(begin(rebuilt, plan))
    for row in writer.campaign.rows():
        writer.write(*row)
    note = "note: 1.17.0 is another image on each side"
    assert [note in gpubench("compare", one, other).stdout for other in (same, rebuilt)] == [False, True]


def test_unlike_layouts_are_refused_with_both_of_them(gpubench: Run, tmp_path: Path) -> None:
    one, other = campaign(tmp_path / "one"), campaign(tmp_path / "other", memory=2**33)
    done = gpubench("compare", one, other)
    assert done.returncode == 21
    assert "layout: 2 x 1 x 4.0 GiB against 2 x 1 x 16.0 GiB" in done.stdout
    assert "2 of 4 cells are refused" in done.stdout


def test_which_variants_are_meant_is_asked_where_it_is_not_clear(gpubench: Run, tmp_path: Path) -> None:
    one, other = (
        campaign(tmp_path / name, variants=("1.17.0", "1.19.0"), suite=SUITE[:1]) for name in ("one", "other")
    )
    for words, said in (
        ((), "both have 1.17.0, 1.19.0"),
        (("--only", "runs"), "two targets have no runs; name one of"),
    ):
        asked = gpubench("report", one, other, *words)
        assert (asked.returncode, said in asked.stderr) == (2, True)
    unlike = gpubench("compare", one, other, "--baseline", "1.17.0", "--candidate", "1.19.0", "--json")
    plain = json.loads(unlike.stdout)
    assert plain["campaign"] == "B other 1.19.0 against A one 1.17.0"
    # Three repetitions in six blocks of one variant on each side.
    assert [cell["samples"] for cell in plain["cells"]] == [36, 36]


def test_compare_judges_every_variant_that_both_have_in_one_family(gpubench: Run, tmp_path: Path) -> None:
    one = campaign(tmp_path / "one", variants=("1.17.0", "1.19.0"), suite=SUITE[:1])
    other = campaign(tmp_path / "other", variants=("1.22.0", "1.19.0", "1.17.0"), suite=SUITE[:1])
    together = json.loads(gpubench("compare", one, other, "--json").stdout)
    pairs = [(cell["baseline"], cell["candidate"]) for cell in together["cells"]]
    assert list(dict.fromkeys(pairs)) == [
        ("A one 1.17.0", "B other 1.17.0"),
        ("A one 1.19.0", "B other 1.19.0"),
    ]
    alone = [
        json.loads(gpubench("compare", one, other, option, label, "--json").stdout)["cells"]
        for option, label in (("--baseline", "1.17.0"), ("--candidate", "1.19.0"))
    ]
    assert [{cell["candidate"] for cell in cells} for cells in alone] == [{"B other 1.17.0"}, {"B other 1.19.0"}]
    both = [*alone[0], *alone[1]]
    assert [cell["effect"] for cell in together["cells"]] == [cell["effect"] for cell in both]
    assert [cell["p"] for cell in together["cells"]] == [cell["p"] for cell in both]
    least = min(range(len(both)), key=lambda at: both[at]["p"])
    assert together["cells"][least]["p_holm"] == pytest.approx(min(1.0, len(both) * both[least]["p"]))


DRACO = "date,num_workers,backend,ucx_version,wallclock,data_processed,rows_per_chunk,frac_match,nreps"


def test_imports_are_compared_by_their_dates(gpubench: Run, tmp_path: Path) -> None:
    for name, seconds in (("first", 0.5), ("second", 0.6)):
        rows = [
            f"2022-07-{day:02},8,dask,ucx-1.12.1,{seconds + 0.001 * (day % 3)},1e10,4e7,0.6,30" for day in range(1, 9)
        ]
        (tmp_path / f"{name}-merge.csv").write_text("\n".join([DRACO, *rows]))
        assert gpubench("results", "import", "draco-csv", f"{name}-merge.csv", "--out", name).returncode == 0
    done = gpubench("compare", "first", "second", "--json")
    (cell,) = json.loads(done.stdout)["cells"]
    assert (done.returncode, cell["verdict"], cell["blocks"]) == (20, "regression", 8)
    assert cell["flags"] == ["unpaired", "layout-unknown"]


def test_the_planned_question_is_judged_and_of_two_different_ones_one_must_be_named(
    gpubench: Run, tmp_path: Path
) -> None:
    a, b = (campaign(tmp_path / name, slower=slower, margin=0.3) for name, slower in (("a", 1.0), ("b", 1.2)))
    done = gpubench("compare", a, b, "--json")
    found = json.loads(done.stdout)
    assert found["settings"]["margin"] == 0.3
    assert {one["verdict"] for one in found["cells"]} == {"equivalent"}  # 20 % lie within the planned 30
    narrow = campaign(tmp_path / "narrow", margin=0.01)
    refused = gpubench("compare", a, narrow)
    assert refused.returncode == 2
    assert "one side was planned with a margin of 1 %, the other with 30 %; say which counts: --margin 1%" in (
        refused.stderr
    )
    assert gpubench("compare", a, narrow, "--margin", "30%").returncode == 0


def test_a_campaign_stands_beside_the_import_of_its_own_table(gpubench: Run, tmp_path: Path) -> None:
    """Seen: "no cell in common", because a table holds workers per node and nodes, and not their product."""
    directory, table, imported = campaign(tmp_path / "c"), tmp_path / "c.csv", tmp_path / "imported"
    assert gpubench("results", "export", "csv", directory, table).returncode == 0
    assert gpubench("results", "import", "table", table, "--out", imported).returncode == 0
    found = json.loads(gpubench("compare", directory, imported, "--json").stdout)
    assert {(one["workload"], one["workers"]) for one in found["cells"]} == {
        (name, workers) for name in ("merge", "tasks") for workers in (2, 4)
    }
