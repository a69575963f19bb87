"""A typo in a profile or a suite names file, path and the nearest key."""

from pathlib import Path

import pytest

from gpubench import resources
from gpubench.errors import UsageError
from gpubench.model.base import nearest
from gpubench.model.site import Site
from gpubench.model.suite import Suite
from gpubench.resources.profiles import load_site

LOCAL = (resources.root() / "sites" / "local.toml").read_text(encoding="utf-8")
QUICK = (resources.root() / "suites" / "quick.toml").read_text(encoding="utf-8")


def refusal(kind: type[Site] | type[Suite], text: str) -> str:
    with pytest.raises(UsageError) as caught:
        kind.load(text, "sites/mine.toml")
    message = str(caught.value)
    assert message.startswith("sites/mine.toml")
    assert "\n" not in message
    return message


OF_LAYOUT = "arrangement, client, memory, one_machine, rmm_pool, scheduler, threads, waiting, workers"
ENTRY = '[[workload]]\nname = "tasks'


@pytest.mark.parametrize(
    ("kind", "old", "new", "message"),
    [
        (Site, "scheduler =", "schedular =", "'schedular' (did you mean 'scheduler'?)"),  # and not: that one is missing
        (Site, "workers =", "wrokers =", "'layout.wrokers' (did you mean 'workers'?)"),
        (Site, "run =", "runs =", "'estimates.runs' (did you mean 'run'?)"),
        (Site, "[layout]", "[layuot]", "'layuot' (did you mean 'layout'?)"),
        (Site, "threads =", "zzz =", f"'layout.zzz' (there is: {OF_LAYOUT})"),
        (Suite, "reps =", "rep =", "'rep' (did you mean 'reps'?)"),
        (Suite, "reps =", "repetitions =", "'repetitions' (did you mean 'reps'?)"),
        (Suite, ENTRY, ENTRY.replace("name", "naem"), "'workload.2.naem' (did you mean 'name'?)"),
        (Suite, "[workload.params]", "[workload.parms]", "'workload.0.parms' (did you mean 'params'?)"),
    ],
)
def test_an_unknown_key_names_path_and_nearest_key(
    kind: type[Site] | type[Suite], old: str, new: str, message: str
) -> None:
    text = LOCAL if kind is Site else QUICK
    assert text.count(old) >= 1
    assert refusal(kind, text.replace(old, new, 1)).endswith(f"unknown key {message}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('interface = "lo"\n', "", "key 'interface' is missing"),
        ("workers = 2\n", "", "key 'layout.workers' is missing"),
        ("workers = 2", "workers = 0", "'layout.workers' = 0: Input should be greater than or equal to 1"),
        ('device = "cpu"', 'device = "tpu"', "'device' = 'tpu': Input should be 'auto', 'cpu' or 'gpu'"),
        ("nodes = [1]", "nodes = []", "'defaults.nodes' = []"),
        ("nodes = [1]", "nodes = [0]", "'defaults.nodes.0' = 0: Input should be greater than 0"),
        ('margin = "3%"', 'margin = "3"', "'defaults.margin' = '3': '3' is not a percentage; write it like 3%"),
        ('budget = "5m"', "budget = 5", "'defaults.budget' = 5: a quantity needs its unit, as a string"),
        ('name = "local"', 'name = "local', "is not TOML"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_key(old: str, new: str, message: str) -> None:
    assert LOCAL.count(old) >= 1
    assert message in refusal(Site, LOCAL.replace(old, new, 1))


@pytest.mark.parametrize(
    ("word", "words", "hint"),
    [("mrege", ["merge", "tasks"], " (did you mean 'merge'?)"), ("q", ["b", "a"], " (there is: a, b)"), ("q", [], "")],
)
def test_the_nearest_word_or_the_whole_choice(word: str, words: list[str], hint: str) -> None:
    assert nearest(word, words) == hint


def shipped(folder: str) -> list[Path]:
    return sorted((resources.root() / folder).glob("*.toml"))


@pytest.mark.parametrize("path", shipped("sites"), ids=lambda path: path.stem)
def test_every_shipped_site_loads_and_is_called_like_its_file(path: Path) -> None:
    site = load_site(path.stem)
    assert site.name == path.stem
    assert (resources.root() / "suites" / f"{site.defaults.suite}.toml").is_file()


@pytest.mark.parametrize("path", shipped("suites"), ids=lambda path: path.stem)
def test_every_shipped_suite_resolves_to_complete_parameters(path: Path) -> None:
    from gpubench.node.workloads.catalogue import CATALOGUE

    suite = Suite.load(path.read_text(encoding="utf-8"), path.name)
    assert suite.name == path.stem
    for workload in suite.resolve(path.name, reps=None, timeout_s=60.0):
        assert set(workload.params) == set(CATALOGUE[workload.name].params)
        assert workload.reps >= 1


def test_capabilities_that_the_user_of_the_pods_would_lose_are_refused() -> None:
    """Measured in NVIDIA/nvidia-container-toolkit#2037: with uid 1000 CapEff is 0, and 64 MiB can't be locked."""
    words = LOCAL + '\n[kubernetes]\ncapabilities = ["IPC_LOCK"]\n'
    assert "capabilities: user 1000 loses them; only root keeps them: run_as_user = 0" in refusal(Site, words)
    assert Site.load(words + "run_as_user = 0\n", "mine.toml").kubernetes.capabilities == ["IPC_LOCK"]
