"""``gpubench results export``: a campaign's results as other tools want them."""

import io
import itertools
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
from gpubench.results.merge.family import cells
from gpubench.results.merge.table import COLUMNS, parquet, sample_table
from gpubench.results.targets import chosen_campaign, opened
from gpubench.schedulers import kubernetes
from gpubench.store.campaign import Campaign, require_place
from gpubench.store.states import account_now

_log = logging.getLogger(__name__)

DATABASE = Path("outputs") / "mlflow.db"


def export_table(directory: Path, path: Path, *, as_parquet: bool) -> None:
    """Every sample of a campaign or an import as one file."""
    kept = opened(directory)
    table = kept.table if isinstance(kept, ImportedResults) else _with_failures(kept)
    write_atomically(path, parquet(table) if as_parquet else _csv(table))
    _log.info(f"{len(table['wall_s'].drop_nulls())} samples in {path}")


def _with_failures(campaign: Campaign) -> pl.DataFrame:
    """Every sample, and a row without a time for each workload that failed before its first one.

    Without that row, a reader of the table would not know of the failure. Of a table of samples, the variant of the
    first row is the baseline.
    """
    outcomes = {outcome.run.run: outcome for outcome in account_now(campaign).outcomes}
    samples = sample_table(outcomes.values())
    sampled = set(samples.select("run", "workload", "backend", "params").unique().iter_rows())
    rows = []
    for cell in cells(campaign.plan, outcomes.values(), samples):
        key, of_run = dict(cell.key), {"run": cell.run, "job": cell.job, "block": cell.block, "order": cell.order}
        if cell.status == "failed" and (cell.run, key["workload"], key["backend"], key["params"]) not in sampled:
            about = {"campaign": cell.origin, "site": campaign.plan.site.name, "variant": cell.variant}
            rows.append(key | of_run | about | {"run_status": outcomes[cell.run].status, "workload_status": "failed"})
    failed = pl.DataFrame([[row.get(name) for name in COLUMNS] for row in rows], schema=COLUMNS, orient="row")
    return pl.concat([samples, failed]).sort(pl.col("variant") != campaign.plan.baseline, maintain_order=True)


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
    parent = tracked.campaign(plan, judged.verdicts, names, outcomes, artifacts(campaign))
    runs = tracked.runs(plan, outcomes, judged.results.runs, _workload_names(plan))
    written, kept = tracker.export(parent, runs)
    new = counted(written, "run")
    _log.info(f"{new} written to experiment {EXPERIMENT} of {without_login(where)}, {kept} existed already")
    if local:
        _log.info(f"to see them: mlflow ui --backend-store-uri {where}")


def _workload_names(plan: Plan) -> dict[str, str]:
    names = cell_names([workload_key(workload) for workload in plan.workloads])
    return {workload.params_id: name for workload, name in zip(plan.workloads, names, strict=True)}


def artifacts(campaign: Campaign) -> list[tuple[Path, str]]:
    """Those of report, plan, verdicts, manifests and scripts that exist."""
    top = [campaign.report, campaign.summary, campaign.verdicts, campaign.directory / "plan.json"]
    files = [(path, "") for path in top]
    files += [(path, "manifests") for path in sorted((campaign.directory / "manifests").glob("*.json"))]
    scripts = itertools.product(campaign.jobs, ("job.sh", kubernetes.JOB_FILE))
    files += [(campaign.job_dir(job.job) / name, f"jobs/{job.job}") for job, name in scripts]
    return [(path, folder) for path, folder in files if path.is_file()]


def _csv(frame: pl.DataFrame) -> bytes:
    text = io.BytesIO()
    frame.with_columns(pl.col(pl.String).str.replace(FORMULA, "'${1}")).write_csv(text)
    return text.getvalue()
