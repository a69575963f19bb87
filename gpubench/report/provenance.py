"""What ran where: what the processes proved of themselves, by variant; the nodes; and every run."""

import statistics
from collections.abc import Iterable, Mapping

from gpubench.model.quantities import format_bytes
from gpubench.node.spec.records import PROVENANCE_FILE
from gpubench.report import condense
from gpubench.report.facts import facts_table
from gpubench.report.sections import ColumnStyle, Heading, Medium, RichText, Section, SectionPart, TextSpan, TextTable
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.results.merge.evidence import NOISE, Evidence
from gpubench.results.merge.provenance import UCX_VARIABLES, ProvenanceFacts, said

_PROVED = {
    "processes that reported, in each run": "processes",
    "UCX loaded, as read in every process": "ucx.loaded",
    "libucp": "ucx.path",
    "transports that UCX had": "transport.observed",
    "of these, chosen by UCX for large messages": "transport.carriers",
    "lanes": "transport.lanes",
    "Python": "python",
    "Dask": "versions.dask",
    "distributed": "versions.distributed",
    "node half": "node_half",
}
_LOADS = {"load": "load, mean", "busy": "busy %, mean", "steal": "stolen %, mean"}


def provenance_section(inputs: JudgedCampaign) -> Section:
    nodes, every = hosts(inputs), runs(inputs)
    return Section(
        [
            SectionPart(
                heading="As read from the processes",
                table=facts_table(inputs.plan, by_variant(inputs), "Facts read from processes, by variant"),
            ),
            SectionPart(
                heading="Nodes",
                text=[] if nodes.rows else ["No run recorded its nodes."],
                table=nodes if nodes.rows else None,
            ),
            SectionPart(fold="Every run: library, transport, and how busy the machine was", table=every),
        ],
        title="What ran",
        anchor="provenance",
        brief="libraries, transports and settings of every process; nodes",
        medium=Medium.PAGE,
    )


def by_variant(inputs: JudgedCampaign) -> dict[str, list[str]]:
    """What each variant's runs used, as read from their processes, not as planned; of noise the median over runs."""
    every = [inputs.evidence_of(variant.label) for variant in inputs.plan.variants]
    proved = {title: [said(field, (run.facts for run in runs)) for runs in every] for title, field in _PROVED.items()}
    images = [variant.image for variant in inputs.plan.variants]
    settings = [sorted({ucx_in_force(run.facts) for run in runs} - {""}) for runs in every]
    noise = {
        f"{what}, median over runs": [_median(run.noise.get(name) for run in runs) for runs in every]
        for name, what in NOISE.items()
    }
    return {
        **proved,
        "UCX_* in force": [" or ".join(texts) or "not recorded" for texts in settings],
        "image": [f"{image.kind} {image.id[:16]}" if image else "unresolved" for image in images],
        **noise,
    }


def ucx_in_force(facts: ProvenanceFacts) -> str:
    """``UCX_TLS=tcp UCX_…`` of every process of a run; empty where that isn't known."""
    fields = sorted(field for field in facts.values if field.startswith(UCX_VARIABLES))
    return " ".join(f"{field.partition('.')[2]}={facts.text(field)}" for field in fields)


def _median(numbers: Iterable[float | None]) -> str:
    recorded = [number for number in numbers if number is not None]
    return f"{statistics.median(recorded):.2f}" if recorded else "not recorded"


def hosts(inputs: JudgedCampaign) -> TextTable:
    """Every node that took part, once."""
    seen: dict[str, list[Evidence]] = {}
    for run in inputs.evidence.values():
        for host in run.by_host:
            seen.setdefault(host, []).append(run)
    rows = [
        [host, *_node(runs[0].facts, host), *_loads(run.by_host[host] for run in runs)]
        for host, runs in sorted(seen.items())
    ]
    return TextTable(
        ["host", "processors", *_numbers("cores", "memory"), "kernel", *_numbers(*_LOADS.values())],
        rows,
        "Nodes that took part",
    )


def _numbers(*names: str) -> list[Heading]:
    return [Heading(name, ColumnStyle.NUMBER) for name in names]


def _node(facts: ProvenanceFacts, host: str) -> list[str]:
    cpu, gpus, memory = (facts.on(host, field) for field in ("cpu_model", "gpu_model", "memory"))
    processors = f"{cpu or 'not recorded'}" + (
        f"; {gpus}, driver {facts.on(host, 'gpu_driver') or '?'}" if gpus else ""
    )
    size = format_bytes(int(memory)) if memory.isdecimal() else "?"
    return [processors, facts.on(host, "cores") or "?", size, facts.on(host, "kernel") or "?"]


def _loads(measured: Iterable[Mapping[str, float]]) -> list[str]:
    every = list(measured)
    means = ([loads[name] for loads in every if name in loads] for name in _LOADS)
    return [f"{statistics.fmean(values):.2f}" if values else "?" for values in means]


def runs(inputs: JudgedCampaign) -> TextTable:
    """UCX, transport, load and steal of every finished run of the blocks that the page shows."""
    blocks, rows = condense.shown_blocks(inputs), list[list[RichText]]()
    for outcome in inputs.outcomes:
        if not (outcome.directory and outcome.record and outcome.block.block in blocks):
            continue
        of_run = inputs.evidence[outcome.run.run]
        rows.append(
            [
                str(outcome.block.block),
                outcome.run.variant,
                *(said(field, [of_run.facts]) for field in ("ucx.loaded", "transport.observed")),
                *_loads([of_run.noise]),
                TextSpan("provenance", link=f"runs/{outcome.directory.name}/{PROVENANCE_FILE}"),
            ]
        )
    columns: list[Heading | str] = [
        *_numbers("block"),
        "variant",
        "UCX loaded",
        "transport",
        *_numbers(*_LOADS.values()),
    ]
    caption = "UCX, transport, load and steal of every finished run"
    return TextTable([*columns, Heading("file", "unsorted")], rows, caption, "sortable")
