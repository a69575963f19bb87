"""Which scheduler, launcher and runtime go together, and what is said of the others."""

import itertools

import pytest

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.plan.adapter_combinations import check_combination
from tests.plan.requests_by_hand import site

TOGETHER = {
    ("kubernetes", "indexed-job"): "pod",
    ("local", "fork"): "apptainer conda docker enroot modules venv",
    ("lsf", "jsrun"): "apptainer conda modules venv",
    ("pbs", "ssh"): "apptainer conda modules venv",
    ("slurm", "srun"): "apptainer conda enroot modules pyxis venv",
    ("slurm", "ssh"): "apptainer conda modules venv",
}
RUNTIMES = sorted({runtime for words in TOGETHER.values() for runtime in words.split()})
SCHEDULERS, LAUNCHERS = (sorted({pair[at] for pair in TOGETHER}) for at in (0, 1))


@pytest.mark.parametrize(("scheduler", "launcher"), list(itertools.product(SCHEDULERS, LAUNCHERS)))
def test_what_goes_together_is_taken_and_everything_else_refused_with_what_does(scheduler: str, launcher: str) -> None:
    for runtime in RUNTIMES:
        asked = site(scheduler=scheduler, launcher=launcher, runtime=runtime)
        if runtime in TOGETHER.get((scheduler, launcher), "").split():
            check_combination(asked)
            continue
        own = sorted(
            f"{pair[1]} + {one}" for pair, ones in TOGETHER.items() if pair[0] == scheduler for one in ones.split()
        )
        with pytest.raises(PlanRefusedError) as refused:
            check_combination(asked)
        assert str(refused.value) == (
            f"site bench: scheduler, launcher and runtime {scheduler} + {launcher} + {runtime} don't go together; "
            f"with {scheduler}: {'; '.join(own)}"
        )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scheduler": "slurmm"}, "there is no scheduler 'slurmm' (did you mean 'slurm'?)"),
        ({"launcher": "mpirun"}, "there is no launcher 'mpirun'"),
        ({"runtime": "dockr"}, "there is no runtime 'dockr' (did you mean 'docker'?)"),
    ],
)
def test_a_word_that_is_no_adapter_is_named(changes: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_combination(site(**changes))
    assert said in str(refused.value)
