"""Where the specs of a block stand, below its job."""

from gpubench.model.plan import PlannedBlock, PlannedRun


def spec_path(block: PlannedBlock, run: PlannedRun) -> str:
    return f"specs/{block.block:03d}-{run.order}-{run.run}.json"


def turns_path(block: PlannedBlock) -> str:
    return f"specs/{block.block:03d}-turns.json"
