"""What a plan says before anything runs: what it can find, what more would take, and that it can decide nothing."""

import json
from pathlib import Path

import pytest

from gpubench.campaign.plan_lines import plan_lines
from gpubench.model.plan import Plan, PowerPrediction
from gpubench.model.quantities import format_seconds
from gpubench.plan.additions import plan_more
from gpubench.store.campaign import Campaign
from tests.cli.campaigns import write_suite
from tests.conftest import Run
from tests.plan.requests_by_hand import plan, workload

WORKLOADS = [workload("message", size=1024), workload("message", size=10_000_000), workload("tasks")]


def foreseen(made: Plan, *needs: tuple[int | None, int | None], pooled: bool = False) -> list[str]:
    """The lines of the plan, each of whose workloads needs so many blocks for the margin and for 'equivalent'."""
    cells = [
        PowerPrediction(
            workload=item.name,
            params_id=item.params_id,
            nodes=1,
            workers_per_node=2,
            sigma=0.02 * (1 if pooled else number),
            sigma_upper=0.03,
            detectable=0.061 * number,
            detectable_upper=0.077 * number,
            blocks_for_margin=margin,
            blocks_for_equivalence=same,
        )
        for number, (item, (margin, same)) in enumerate(zip(made.workloads, needs, strict=True), start=1)
    ]
    return list(plan_lines(Campaign(Path("c"), made.model_copy(update={"foreseen": cells}))))


@pytest.fixture
def made() -> Plan:
    return plan("base=1 b=2", blocks=8, workloads=WORKLOADS)


def test_each_workload_has_a_line_with_what_is_found_and_what_more_would_take(made: Plan) -> None:
    lines = foreseen(made, (25, 8), (None, 9), (8, 3))
    block = made.time.block_s
    assert lines[-4:] == [
        "  what 8 blocks can find, with 90 % power and the noise of an earlier campaign like this:",
        "    message 1 KiB: differences of 6.1 % or more (up to 7.7 %, since that noise is uncertain); "
        f"3 % would take 25 blocks (about {int(25 * block // 60)}m{int(25 * block % 60):02d}s)",
        "    message 10 MB: differences of 12 % or more (up to 15 %, since that noise is uncertain); "
        f"3 % would take over 200 blocks; 'equivalent' would take 9 blocks (about {int(9 * block // 60)}m"
        f"{int(9 * block % 60):02d}s)",
        "    tasks: differences of 18 % or more (up to 23 %, since that noise is uncertain)",
    ]
    assert lines[0].startswith("plan of ")


def test_where_the_noise_of_workloads_cannot_be_told_apart_one_line_is_for_all(made: Plan) -> None:
    lines = foreseen(made, (8, 3), (8, 3), (8, 3), pooled=True)
    assert [line for line in lines if "differences of" in line] == [
        "    each workload, whose noise can't be told apart: differences of 6.1 % or more "
        "(up to 7.7 %, since that noise is uncertain)"
    ]


def test_a_plan_that_is_not_likely_to_decide_anything_at_its_margin_says_so_first(made: Plan) -> None:
    lines = foreseen(made, (25, 9), (None, None), (9, None))
    assert lines[0] == (
        "caution: with this noise, no workload is likely to be decided at the margin of 3 %; "
        "90 % power is for differences of 6.1 % or more"
    )
    assert lines[1].startswith("plan of ")


def test_noise_that_nobody_has_measured_is_said_to_be_assumed(made: Plan) -> None:
    lines = list(plan_lines(Campaign(Path("c"), made)))
    assert lines[-1].startswith(
        "  the noise here is not known (no earlier campaign with these sizes and repetitions); on a usual"
    )
    assert not any("noise" in line for line in plan_lines(Campaign(Path("c"), plan("base=1 b=2", blocks=2))))


def test_a_variant_without_an_image_says_so_behind_its_packages_and_settings() -> None:
    lines = plan_lines(Campaign(Path("c"), plan("base=1 b=2,dask==2025.5.1,UCX_TLS=tcp", blocks=2, images={})))
    assert "  b: UCX 2 dask==2025.5.1 UCX_TLS=tcp, not built" in list(lines)


@pytest.mark.parametrize("protocol", ["tcp", "ucx"])
def test_over_ucx_the_plan_says_where_its_processes_listen_and_who_gets_in(protocol: str) -> None:
    lines = list(plan_lines(Campaign(Path("c"), plan("base=1 b=2", blocks=2, protocol=protocol))))
    where = "every interface of their nodes; a connection without the job's secret is refused"
    said = f"  scheduler, workers and clients listen on {where}"
    assert (said in lines) == (protocol == "ucx")


def test_a_budget_is_filled_with_blocks_and_a_first_pass_is_foretold(gpubench: Run, tmp_path: Path) -> None:
    """Without ``--blocks``, the profile's number of blocks (8) is no limit to a budget that the user gives."""
    asked = ("plan", "--suite", str(write_suite(tmp_path)), "--variants", "a=1.22.0 b=1.22.0", "--budget", "20m")
    done = gpubench(*asked, "--json", code=0)
    made = json.loads(done.stdout)
    block_s = made["time"]["block_s"]
    blocks = sum(len(job["blocks"]) for job in made["jobs"])
    assert blocks == min(40, 1200 // block_s // 2 * 2) > 8
    (tmp_path / "passed.toml").write_text(f"first_pass = true\n{write_suite(tmp_path).read_text()}")
    done = gpubench("plan", "--suite", "passed.toml", "--variants", "a=1.22.0 b=1.22.0", "--budget", "20m")
    assert "bench begins with a first pass" in done.stdout
    assert "bench begins with a first pass" not in gpubench(*asked).stdout


def test_a_site_is_planned_also_where_a_variable_in_the_path_of_its_outputs_is_not_set(gpubench: Run) -> None:
    words = ["plan", "--suite", "verify", "--variants", "a=1.22.0 b=1.22.0"]
    assert "4 runs" in gpubench(*words, "--blocks", "2", "--set", "paths.outputs=$NOT_SET/x").stdout


def test_a_plan_says_what_is_wrong_with_the_profile_s_images(gpubench: Run) -> None:
    site = ("runtime=apptainer", "interface=ib0", "scheduler=slurm", "launcher=srun", "env.UCX_TLS=all")
    done = gpubench("plan", "--suite", "quick", "--protocol", "ucx", *(f"--set={setting}" for setting in site))
    assert "\n  caution: interface ib0 is InfiniBand or RoCE, and image.fabric is empty" in done.stdout, done.stderr


def test_blocks_that_were_added_are_in_the_runs_the_time_and_the_node_hours(made: Plan) -> None:
    more = plan_more(made, 4, made.created_at)
    lines = list(plan_lines(Campaign(Path("c"), made, (more,))))
    runs, time = 12 * 2, format_seconds(12 * 2 * made.time.run_s)
    assert any(line.startswith(f"  12 blocks x 2 variants = {runs} runs of ") for line in lines)
    assert any(line.startswith(f"  about {time}: ") for line in lines)
    assert any(f", {runs} runs, about {time} = " in line for line in lines)
