import pytest

from gpubench.node.rank import RANK_VARIABLES, RankError, find_rank


@pytest.mark.parametrize("name", RANK_VARIABLES)
def test_every_launcher_says_the_rank_in_its_own_variable(name: str) -> None:
    assert find_rank(None, {name: "3"}, nodes=4) == 3
    assert find_rank(None, {name: "0"}, nodes=4) == 0


@pytest.mark.parametrize(
    ("given", "environ"),
    [
        (1, dict.fromkeys(RANK_VARIABLES, "2")),
        (None, {"SLURM_NODEID": "2", "GPUBENCH_RANK": "1"}),
        (None, {"PMIX_RANK": "5", "SLURM_NODEID": "1"}),
    ],
)
def test_the_option_beats_our_launcher_that_beats_slurms_node_that_beats_a_process_on_it(
    given: int | None, environ: dict[str, str]
) -> None:
    assert find_rank(given, environ, nodes=4) == 1


@pytest.mark.parametrize("name", RANK_VARIABLES)
@pytest.mark.parametrize("value", ["", "one", "1.0", "0x1"])
def test_what_is_no_number_is_named(name: str, value: str) -> None:
    with pytest.raises(RankError, match=f"^{name}='{value}' is no rank$"):
        find_rank(None, {name: value}, nodes=4)


@pytest.mark.parametrize(
    ("given", "environ", "message"),
    [
        (4, {}, "--rank 4 is not within the 4 nodes of the run"),
        (-1, {}, "--rank -1 is not within the 4 nodes of the run"),
        (None, {"SLURM_NODEID": "4"}, "SLURM_NODEID 4 is not within the 4 nodes of the run"),
        (None, {"PMIX_RANK": "-1"}, "PMIX_RANK -1 is not within the 4 nodes of the run"),
    ],
)
def test_a_rank_outside_of_the_job_is_refused(given: int | None, environ: dict[str, str], message: str) -> None:
    with pytest.raises(RankError, match=f"^{message}$"):
        find_rank(given, environ, nodes=4)


def test_one_node_needs_no_rank_and_several_do() -> None:
    assert find_rank(None, {"HOME": "/"}, nodes=1) == 0
    with pytest.raises(RankError, match=r"^a run on 2 nodes needs --rank, or one of GPUBENCH_RANK, SLURM_NODEID, "):
        find_rank(None, {"HOME": "/"}, nodes=2)
