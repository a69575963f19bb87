"""Searches whose runs are written instead of run."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpubench.campaign import lifecycle
from gpubench.errors import InterruptedByUserError
from gpubench.images import folders, variables
from gpubench.model.image import Image
from gpubench.model.plan import PlannedBlock, PlannedRun
from gpubench.model.variant import ImageSpec
from gpubench.node.spec.records import UCX_CONFIGURATIONS
from gpubench.store.campaign import Campaign
from tests.store.campaign_builder import Writer

Env = Mapping[str, str]
ANSWERS: dict[object, str] = {}
ask_configuration, read_sound = variables.ask_configuration, folders.read_sound


def ask_once(image: Image, *options: str, env: Env | None = None) -> str:
    """What the image's real ``ucx_info`` says; each question is put once in a test process, since it takes 0.4 s."""
    key = (image.id, options, frozenset((env or {}).items()))
    if key not in ANSWERS:
        ANSWERS[key] = ask_configuration(image, *options, env=env)
    return ANSWERS[key]


@functools.cache
def _looked_at(path: Path, _changed: int) -> folders.Folder:
    return read_sound(path)


def look_once(path: Path) -> folders.Folder:
    """An image's folder; a test process looks at its 10,000 files once, a search would do it ten times."""
    return _looked_at(path, path.stat().st_ctime_ns) if path.exists() else read_sound(path)


class Runs:
    """Writes runs where ``lifecycle`` would have them run.

    Args:
        factor: how many times longer a run takes, by its variant's settings and packages, ``version`` and ``label``.
        fails: whether a run with these settings fails.
        stop_after: so many blocks are written, then the search is interrupted, once.
        overrides: of the record of a run with these settings.
        silent: the version whose ``ucx_info`` gives no answer.
    """

    def __init__(
        self,
        factor: Callable[[Env], float],
        fails: Callable[[Env], bool] = lambda _env: False,
        stop_after: int = 10**6,
        overrides: Callable[[Env], Mapping[str, Any]] = lambda _env: {},
        silent: str = "",
    ) -> None:
        self.silent = silent
        self.factor, self.fails, self.left, self.overrides = factor, fails, stop_after, overrides
        self.steps: list[list[str]] = []
        self.blocks: list[int] = []

    def __call__(self, campaign: Campaign, blocks: Mapping[str, Sequence[int]], *_more: Any, **_options: Any) -> None:
        env = {
            variant.label: {
                **variant.env,
                **ImageSpec.parse(variant.ucx).packages,
                "version": variant.ucx.partition(",")[0],
                "label": variant.label,
            }
            for variant in campaign.plan.variants
        }
        self.steps.append(list(env))
        self.blocks.append(sum(map(len, blocks.values())))
        seconds = {item.params_id: 0.2 for item in campaign.plan.workloads}
        images = {variant.label: variant.image for variant in campaign.plan.variants}

        def logs(run: PlannedRun, block: PlannedBlock) -> Mapping[str, str]:
            image = images[run.variant]
            if block.block > 1 or image is None or env[run.variant]["version"] == self.silent:
                return {}
            # As a run does it, twice: what UCX derives from the clock differs between calls, and is no default.
            return {
                f"rank0/{name}": variables.ask_configuration(image, "-c", "-a", "-f", env={"CALL": name})
                for name in UCX_CONFIGURATIONS
            }

        writer = Writer(campaign, lambda label, _workload: self.factor(env[label]), seconds, logs=logs)
        for job, block, run in campaign.rows():
            if block.block not in blocks.get(job.job, ()) or any(campaign.runs_dir.glob(f"{run.run}-*")):
                continue
            if run is block.runs[0]:
                self.left -= 1
            if self.left < 0:
                self.left = 10**6
                raise InterruptedByUserError("interrupted by SIGINT")
            failed = self.fails(env[run.variant])
            reason, more = "crash" if failed else "", self.overrides(env[run.variant])
            writer.write(job, block, run, status="failed" if failed else "ok", reason=reason, **more)


def write_runs(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> Runs:
    """From now on, runs of searches are written instead of run."""
    made = Runs(*arguments, **options)
    monkeypatch.setattr(lifecycle, "run_blocks", made)
    monkeypatch.setattr(variables, "ask_configuration", ask_once)
    monkeypatch.setattr(folders, "read_sound", look_once)
    return made
