"""What a campaign can be asked can be asked of an import too, or one line says why not."""

from pathlib import Path

from gpubench.results.importers.directory import Given, import_files
from gpubench.results.importers.formats import FORMATS
from tests.cli.archive import draco_archive
from tests.conftest import Run


def test_scaling_and_report_read_an_import(gpubench: Run, tmp_path: Path) -> None:
    """The history of Draco; ``docs/gallery.md`` holds what ``compare`` and ``trend`` say of it."""
    draco = tmp_path / "draco"
    import_files("draco-csv", FORMATS["draco-csv"], [draco_archive()], draco, Given())
    said = gpubench("report", draco, "--only", "scaling").stdout
    assert "merge dask, 1.12.1 (weak: the work grows with the workers)" in said
    assert "  128      5.155 s   1.85" in said
    done = gpubench("report", draco, "--svg", "drawn", code=0)
    assert {path.name.partition("-")[0] for path in (tmp_path / "drawn").iterdir()} == {"effects.svg", "over"}
    page = (draco / "report.html").read_text()
    assert "draco: 653 of 788 rows" in page
    assert "<h1>Of 36 comparisons with 1.12.1: 3 slower: 1.15.0 in merge dask 128 workers in all +3.1" in page
    assert "merge dask 128 workers in all | 1.15.0 vs 1.12.1 | 5.146 s → 5.304 s | +3.1 % [" in done.stdout
    assert page.count('<div class="chart" id="chart-over-time-') == 2
    assert "135 × a reference that was typed in by hand" in page
    names = ("http://www.w3.org/", "https://github.com/openucx")  # of a namespace, which nothing fetches, and of links
    main = page.partition("<main>")[2].partition("</main>")[0]
    assert "http" not in main.replace(names[0], "").replace(names[1], "")


def test_cells_that_are_not_compared_are_named_and_sizes_stand_in_the_order_of_numbers(
    gpubench: Run, tmp_path: Path
) -> None:
    rows = [
        f"{seconds},{version},2026-11-0{day},{size}"
        for size in (128, 16, 1, 256)
        for version, seconds in (("1.9.0", 2.0), ("1.12.0", 2.1))
        for day in range(1, 8)
        if (size, version) != (256, "1.12.0")
    ]
    (tmp_path / "mine.csv").write_text("\n".join(["wall_s,variant,date,n", *rows, ""]))
    columns = "wall_s=wall_s,variant=variant,date=date,params.n=n"
    gpubench("results", "import", "table", "mine.csv", "--columns", columns, "--out", "mine")
    before = sorted((tmp_path / "mine").iterdir())
    done = gpubench("compare", "mine", "--baseline", "1.9.0")
    assert sorted((tmp_path / "mine").iterdir()) == before, "of an import, no verdicts are kept"
    sizes = [line.split("|")[0].strip() for line in done.stdout.splitlines() if " vs " in line and "|" in line]
    assert sizes == ["mine n=1", "mine n=16", "mine n=128"]
    assert "note: 1 cell without 1.9.0, or with nothing beside it, is not compared: mine n=256\n" in done.stdout
