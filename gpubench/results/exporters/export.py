"""``gpubench results export``: a campaign's results as other tools want them."""

import io
import logging
from pathlib import Path

import polars as pl

from gpubench.files import write_atomically, writing
from gpubench.model.cell_names import cell_names, workload_key
from gpubench.model.plan import Plan
from gpubench.model.secrets import without_login
from gpubench.model.text import FORMULA, counted
from gpubench.results.exporters import tracked
from gpubench.results.exporters.tracked import EXPERIMENT, Tracker
from gpubench.results.importers.directory import ImportedResults
from gpubench.results.judging import judge_campaign
from gpubench.results.merge.table import merge_directory, parquet
from gpubench.results.targets import chosen_campaign, opened
from gpubench.store.campaign import Campaign, require_place

_log = logging.getLogger(__name__)

DATABASE = Path("outputs") / "mlflow.db"


def export_table(directory: Path, path: Path, *, as_parquet: bool) -> None:
    """Every sample of a campaign or an import as one file."""
    kept = opened(directory)
    if isinstance(kept, ImportedResults):
        table = kept.table
    else:  # of a table of samples, the variant of the first row is the baseline
        baseline, merged = kept.plan.baseline, merge_directory(kept.runs_dir)
        for error in merged.errors:
            _log.warning(str(error))
        table = merged.frame.sort(pl.col("variant") != baseline, maintain_order=True)
    write_atomically(path, parquet(table) if as_parquet else _csv(table))
    _log.info(f"{table.height} samples in {path}")


def export_mlflow(directory: Path | None, outputs: Path | None, uri: str | None) -> None:
    """Export to a tracker; raises MissingToolError if MLflow or the tracker isn't available."""
    campaign = chosen_campaign(directory, outputs, with_results=True)
    local = uri is None
    if local:
        require_place(DATABASE.parent)
        with writing(DATABASE.parent):
            DATABASE.parent.mkdir(parents=True, exist_ok=True)
    where = uri or f"sqlite:///{DATABASE}"
    tracker = Tracker(where, DATABASE.with_name("mlflow-artifacts") if local else None)
    judged = judge_campaign(campaign)
    plan, outcomes = judged.plan, judged.outcomes
    names = cell_names([dict(verdict.key) for verdict in judged.verdicts])
    parent = tracked.campaign(plan, judged.verdicts, names, outcomes, _artifacts(campaign))
    runs = tracked.runs(plan, outcomes, judged.results.runs, _workload_names(plan))
    written, kept = tracker.export(parent, runs)
    new = counted(written, "run")
    _log.info(f"{new} written to experiment {EXPERIMENT} of {without_login(where)}, {kept} existed already")
    if local:
        _log.info(f"to see them: mlflow ui --backend-store-uri {where}")


def _workload_names(plan: Plan) -> dict[str, str]:
    names = cell_names([workload_key(workload) for workload in plan.workloads])
    return {workload.params_id: name for workload, name in zip(plan.workloads, names, strict=True)}


def _artifacts(campaign: Campaign) -> list[tuple[Path, str]]:
    """Those of report, plan, verdicts, manifests and scripts that exist."""
    top = [campaign.report, campaign.summary, campaign.verdicts, campaign.directory / "plan.json"]
    found = [(path, "") for path in top]
    found += [(path, "manifests") for path in sorted((campaign.directory / "manifests").glob("*.json"))]
    found += [(campaign.job_dir(job.job) / "job.sh", f"jobs/{job.job}") for job in campaign.jobs]
    return [(path, folder) for path, folder in found if path.is_file()]


def _csv(frame: pl.DataFrame) -> bytes:
    text = io.BytesIO()
    frame.with_columns(pl.col(pl.String).str.replace(FORMULA, "'${1}")).write_csv(text)
    return text.getvalue()
