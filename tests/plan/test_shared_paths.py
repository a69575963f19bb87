import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import PlanRefusedError
from gpubench.plan.shared_paths import Resolved, lies_below, require_shared

HERE = Resolved("outputs/x", "/scratch/me/outputs/x")
parts = st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), max_size=4)


def real(*paths: str) -> list[Resolved]:
    return [Resolved(path, path) for path in paths]


@pytest.mark.parametrize(
    "shared", [["/scratch"], ["/scratch/"], ["/home", "/scratch/me"], ["/scratch/me/outputs/x"], ["/"], []]
)
def test_what_lies_below_a_shared_file_system_passes(shared: list[str]) -> None:
    require_shared("the campaign", HERE, real(*shared))


def test_what_lies_elsewhere_is_refused_with_all_that_was_compared() -> None:
    with pytest.raises(PlanRefusedError) as caught:
        require_shared("the campaign", HERE, real("/scratch2", "/scratch/m", "/scratch/me/outputs/x/y"))
    assert str(caught.value).startswith(
        "the campaign is outputs/x (really /scratch/me/outputs/x), which lies below none of paths.shared: "
        "/scratch2; /scratch/m; /scratch/me/outputs/x/y"
    )


def test_a_shared_path_with_an_unset_variable_holds_nothing_and_says_so() -> None:
    with pytest.raises(PlanRefusedError, match=r"\$SCRATCH \(a variable in it isn't set here\)"):
        require_shared("the campaign", HERE, [Resolved("$SCRATCH", "")])


@given(parts, parts)
def test_a_path_lies_below_each_of_its_beginnings_and_no_other_folder(above: list[str], more: list[str]) -> None:
    folder, path = "/" + "/".join(above), "/" + "/".join([*above, *more])
    assert lies_below(path, folder)
    if above:
        assert not lies_below(path, folder + "x")
