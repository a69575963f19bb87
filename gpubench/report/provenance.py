"""What ran where, as rows for the page; every key of a ``provenance.json`` may be missing."""

import dataclasses
import functools
import marshal
import os
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpubench.images.manifests import differences
from gpubench.model.plan import Plan, PlannedVariant
from gpubench.model.quantities import format_bytes
from gpubench.node.spec.records import PROVENANCE_FILE
from gpubench.report import condense
from gpubench.report.sections import ColumnStyle, Heading, Medium, RichText, Section, SectionPart, TextSpan, TextTable
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.results.judging import reading_campaign
from gpubench.results.merge.environment import AS_EQUALS, UNSET, Changes
from gpubench.results.merge.explain import entries, plain, series, slowest
from gpubench.store.accounting import RunResult
from gpubench.store.campaign import Campaign

Provenance = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Fact:
    """One row of a table with a column per variant; ``differs`` where the columns aren't all the same."""

    name: str
    values: list[str]

    @property
    def differs(self) -> bool:
        """Whether the variants differ in this."""
        return len(set(self.values)) > 1

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Each value with hashes and paths cut, and the whole value where something was cut."""
        short = [_HASH.sub(r"\1…", value) for value in self.values]
        cut = [_PATH.sub(r"…\1", value) for value in short]
        if len(set(cut)) < len(set(short)):  # the end of a path alone doesn't tell them apart
            common = os.path.commonprefix(short).rpartition("/")[0]  # noqa: RUF071 - cut at a slash
            cut = [f"…{value.removeprefix(common)}" if common else value for value in short]
        return [(short, value if short != value else "") for short, value in zip(cut, self.values, strict=True)]

    @property
    def row(self) -> list[RichText]:
        """Cells of a table; a value that all variants share is shown once."""
        cells: list[RichText] = [TextSpan(short, whole=whole) for short, whole in self.shown]
        if self.differs or len(cells) == 1:
            return [self.name, *cells]
        short, whole = self.shown[0]
        return [self.name, [TextSpan("all:", "quiet"), " ", TextSpan(short, whole=whole)]]


_HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{12,}\b")
_PATH = re.compile(r"(?:/[^/\s,]+){2,}((?:/[^/\s,]+){3})")

_OF_PROCESS = ("python", "node_half", "versions")
_OF_NODE = ("host", "cpu_model", "gpu_model", "gpu_driver", "cores", "memory", "kernel", "load")
_OF_RUN = ("transport", "registered_s", "speed")


def condensed(provenance: Provenance) -> Provenance:
    """The part that the page shows. Equal processes of thousands of runs are one object."""
    processes = [
        {name: process[name] for name in _OF_PROCESS if name in process}
        | {"ucx": {name: _at(process, "ucx", name) for name in ("loaded", "path", "env")}}
        for process in entries([provenance], "processes")
    ]
    nodes = [{name: node[name] for name in _OF_NODE if name in node} for node in _nodes([provenance])]
    kept = {name: provenance[name] for name in _OF_RUN if name in provenance}
    return kept | {"processes": [_process(marshal.dumps(process, AS_EQUALS)) for process in processes], "nodes": nodes}


@functools.lru_cache(maxsize=4096)
def _process(data: bytes) -> Provenance:
    process: Provenance = marshal.loads(data)  # noqa: S302 - our own bytes, of a moment ago
    return process


def with_evidence(campaign: Campaign, judged: JudgedCampaign) -> JudgedCampaign:
    """With what a page shows of provenance; raises DataError where the campaign's directory is gone."""
    with reading_campaign(campaign):
        return dataclasses.replace(
            judged,
            provenance={run.directory.name: condensed(run.provenance) for run in judged.outcomes if run.directory},
        )


def differences_section(inputs: JudgedCampaign) -> Section:
    """What differs between the variants, as the plan's images and the processes of the runs say it."""
    differ = differing(inputs)
    nothing = f"Nothing: manifests and settings are the same. Within every block, {_COMPARED} are the same, too."
    parts = [
        SectionPart(table=_facts(inputs, differ, "Values in which the variants differ")),
        SectionPart(text=[TextSpan(f"Nothing else differs: {_NOT_ELSE}.", "quiet")]),
    ]
    return Section(
        parts if differ else [SectionPart(text=[nothing])],
        title="What differs between the variants",
        anchor="differs",
        medium=Medium.PAGE,
    )


def provenance_section(inputs: JudgedCampaign) -> Section:
    """What ran, and where."""
    nodes, noise = hosts(inputs), runs(inputs)
    few = [TextSpan(f"{len(noise.rows)} runs, evenly spaced over all.", "quiet")] if condense.many_runs(inputs) else []
    return Section(
        [
            SectionPart(
                heading="As read from the processes",
                table=_facts(inputs, by_variant(inputs), "Facts read from scheduler, workers and clients, by variant"),
            ),
            SectionPart(
                heading="Nodes",
                text=[] if nodes.rows else ["No run recorded its nodes."],
                table=nodes if nodes.rows else None,
            ),
            SectionPart(fold="Every run: library, transport, and how busy the machine was", text=few, table=noise),
        ],
        title="What ran",
        anchor="provenance",
        brief="libraries, transports and settings of every process; nodes",
        medium=Medium.PAGE,
    )


def _facts(inputs: JudgedCampaign, rows: Sequence[Fact], caption: str) -> TextTable:
    variants = [Heading(TextSpan(variant.label), "text") for variant in inputs.plan.variants]
    return TextTable(["value", *variants], [row.row for row in rows], caption)


_COMPARED = "Python, library versions, environment variables in force, hosts, kernel, CPU, memory and network"
_NOT_ELSE = (
    "the rest of manifests and settings is the same, and so are, within every block, Python, library versions, "
    "environment variables in force, hosts, kernel, CPU, memory and network"
)


def by_variant(inputs: JudgedCampaign) -> list[Fact]:
    """What each variant's runs used, as read from their processes, not as planned."""
    provenances = {variant.label: _provenances(inputs, variant.label) for variant in inputs.plan.variants}
    variants = inputs.plan.variants
    processes = {label: _processes(of_variant) for label, of_variant in provenances.items()}
    nodes = {label: _nodes(of_variant) for label, of_variant in provenances.items()}

    def fact(name: str, values: Iterable[str]) -> Fact:
        return Fact(name, [value or "not recorded" for value in values])

    return [
        fact("processes that reported", (str(len(processes[v.label])) for v in variants)),
        fact(
            "UCX loaded, as read in every process",
            (_counted(processes[v.label], "ucx", "loaded") for v in variants),
        ),
        fact("libucp", (_counted(processes[v.label], "ucx", "path") for v in variants)),
        fact("transports that UCX had", (_listed(provenances[v.label], "transport", "observed") for v in variants)),
        fact("of these, chosen by UCX for large messages", (_carriers(provenances[v.label]) for v in variants)),
        fact("lanes", (_listed(provenances[v.label], "transport", "lanes") for v in variants)),
        fact("UCX_* in force", (_environment(processes[v.label]) for v in variants)),
        fact("image", (_image(v) for v in variants)),
        fact("Python", (_counted(processes[v.label], "python") for v in variants)),
        fact("Dask, distributed", (_versions(processes[v.label]) for v in variants)),
        fact("node half", (_counted(processes[v.label], "node_half", cut=12) for v in variants)),
        fact("slowest worker against the median of its run, most", (_slowest(provenances[v.label]) for v in variants)),
        fact(
            "first | half | all workers registered after, median", (_registered(provenances[v.label]) for v in variants)
        ),
        fact("load average, mean", (_load(nodes[v.label], "load1", "{:.2f}") for v in variants)),
        fact("CPU stolen by other machines, mean | most", (_steal(nodes[v.label]) for v in variants)),
    ]


def hosts(inputs: JudgedCampaign) -> TextTable:
    """Every node that took part, once."""
    nodes: dict[str, list[Provenance]] = {}
    for node in _nodes(inputs.provenance.values()):
        nodes.setdefault(str(node.get("host", "?")), []).append(node)
    rows = [
        (
            host,
            _processors(seen[0]),
            str(seen[0].get("cores", "?")),
            format_bytes(seen[0]["memory"]) if seen[0].get("memory") else "?",
            str(seen[0].get("kernel") or "?"),
            _load(seen, "load1", "{:.2f}") or "?",
            _load(seen, "busy", "{:.0f} %") or "?",
            _steal(seen) or "?",
        )
        for host, seen in sorted(nodes.items())
    ]
    return TextTable(_HOST_COLUMNS, rows, "Nodes that took part")


def _processors(node: Provenance) -> str:
    cpu, gpus = str(node.get("cpu_model") or "not recorded"), node.get("gpu_model")
    return f"{cpu}; {gpus}, driver {node.get('gpu_driver', '?')}" if gpus else cpu


_NOISE_COLUMNS = (Heading("load, mean", ColumnStyle.NUMBER), Heading("stolen, mean | most", ColumnStyle.NUMBER))
_HOST_COLUMNS = (
    *("host", Heading("processors"), Heading("cores", ColumnStyle.NUMBER), Heading("memory", ColumnStyle.NUMBER)),
    "kernel",
    *(_NOISE_COLUMNS[0], Heading("busy, mean", ColumnStyle.NUMBER), _NOISE_COLUMNS[1]),
)


def runs(inputs: JudgedCampaign) -> TextTable:
    """UCX, transport, load and steal of every run, or of as many as a page holds."""
    recorded = [
        (outcome, outcome.directory.name) for outcome in inputs.outcomes if outcome.directory and outcome.record
    ]
    rows: list[list[RichText]] = [
        [
            str(outcome.block.block),
            outcome.run.variant,
            *run_noise(inputs.provenance.get(name, {})).values(),
            TextSpan("provenance", link=f"runs/{name}/{PROVENANCE_FILE}"),
        ]
        for outcome, name in recorded[:: -(-len(recorded) // condense.MOST_RUNS) or 1]
    ]
    columns: list[Heading | str] = [
        Heading("block", ColumnStyle.NUMBER),
        "variant",
        "UCX loaded",
        "transport",
        *_NOISE_COLUMNS,
    ]
    columns.append(Heading("file", "unsorted"))
    return TextTable(columns, rows, "UCX, transport, load and steal of every finished run", "sortable")


def run_noise(provenance: Provenance) -> dict[str, str]:
    """UCX, transport, load and steal of one run."""
    processes, nodes = _processes([provenance]), _nodes([provenance])
    return {
        "ucx": _counted(processes, "ucx", "loaded") or "not recorded",
        "transport": _listed([provenance], "transport", "observed") or "not recorded",
        "load": _load(nodes, "load1", "{:.2f}") or "–",
        "steal": _steal(nodes) or "–",
    }


def differing(inputs: JudgedCampaign) -> list[Fact]:
    """Every value in which the variants differ: manifests, settings, and what differed within blocks while they ran."""
    variants = inputs.plan.variants
    manifests = [inputs.manifests.get(v.image.manifest, {}) if v.image else {} for v in variants]
    changes = [
        {path: (value, other) for path, value, other in differences(manifests[0], manifest)} for manifest in manifests
    ]
    before = {path: value for change in changes for path, (value, _) in change.items()}
    facts = [
        Fact(path, [plain(change[path][1] if path in change else before[path]) for change in changes])
        for path in sorted(before)
    ]
    names = sorted({name for v in variants for name in v.env})
    facts += [Fact(f"setting {name}", [v.env.get(name, "unset") for v in variants]) for name in names]
    return facts + [Fact(field, list(values)) for field, values in inputs.changes.values.items()]


def cautions(plan: Plan, changes: Changes, outcomes: Iterable[RunResult]) -> list[str]:
    """Notes beside the verdicts: unplanned differences, and settings of transports that changed none."""
    return [*unplanned(plan, changes), *_same_transports(plan, outcomes)]


def _same_transports(plan: Plan, outcomes: Iterable[RunResult]) -> Iterator[str]:
    """Comparisons of two settings of ``UCX_TLS`` whose runs used the same transports all the same."""
    seen: dict[str, set[tuple[str, ...]]] = {variant.label: set() for variant in plan.variants}
    for outcome in outcomes:
        if outcome.record and outcome.status == "ok" and outcome.record.transport:
            seen[outcome.run.variant].add(tuple(sorted(outcome.record.transport)))
    settings = {variant.label: {**plan.site.env, **variant.env}.get("UCX_TLS") for variant in plan.variants}
    for pair in plan.comparisons:
        (first, second), used = (pair.baseline, pair.candidate), seen[pair.baseline]
        if settings[first] != settings[second] and used and used == seen[second]:
            named = " or ".join(", ".join(transports) for transports in sorted(used))
            yield (
                f"{first} and {second} differ in UCX_TLS, but the runs of both used {named}: "
                "no other transport is compared"
            )


def unplanned(plan: Plan, changes: Changes) -> list[str]:
    """Lines about differences within blocks that neither the variants nor the images asked for.

    Where many fields of one kind differ (interfaces, variables) there is one line, which says the first of them.
    """
    by_kind: dict[tuple[str, str], list[str]] = {}
    for change in changes.by_field():
        if change.why == "known":
            by_kind.setdefault(("", change.why), []).append(_bound(plan, changes, change.field))
        elif change.why != "planned":
            pairs = zip(plan.variants, changes.values[change.field], strict=True)
            values = ", ".join(f"{value} in {variant.label}" for variant, value in pairs)
            by_kind.setdefault((change.field.split(".", 1)[0], change.why), []).append(f"{change.field} is {values}")
    lines = []
    for (kind, why), fields in by_kind.items():
        many = [f"{len(fields)} fields of {kind}, the first: {fields[0]}"]
        if why == "known":
            count = "one setting differs" if len(fields) == 1 else f"{len(fields)} settings differ"
            lines.append(f"besides what was asked for, {count}: the binding sets {'; '.join(fields)}")
            continue
        lines += [f"unplanned difference: {text} ({_WHY[why]})" for text in (many if len(fields) > _MANY else fields)]
    return lines


def _bound(plan: Plan, changes: Changes, field: str) -> str:
    """``UCX_PROTO_ENABLE=n for 1.17.0``, of a variable that the binding sets for some variants."""
    pairs = zip(plan.variants, changes.values[field], strict=True)
    return " and ".join(
        f"{field.partition('.')[2]}={value} for {variant.label}" for variant, value in pairs if value != UNSET
    )


_MANY = 6
_WHY = {
    "allowed": "allowed to change",
    "": "not asked for, so it blocks the comparison",
}


def _provenances(inputs: JudgedCampaign, label: str) -> list[Provenance]:
    names = [
        outcome.directory.name for outcome in inputs.outcomes if outcome.run.variant == label and outcome.directory
    ]
    return [inputs.provenance[name] for name in names if name in inputs.provenance]


def _processes(provenances: Iterable[Provenance]) -> list[Provenance]:
    return list(entries(provenances, "processes"))


def _nodes(provenances: Iterable[Provenance]) -> list[Provenance]:
    return list(entries(provenances, "nodes"))


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _counted(processes: Sequence[Provenance], *path: str, cut: int | None = None) -> str:
    """The value that all processes agree in, or every value with its count."""
    counts = Counter(str(value)[:cut] for process in processes if (value := _at(process, *path)))
    if len(counts) == 1 and counts.total() == len(processes):
        return next(iter(counts))
    return ", ".join(f"{value} in {count} of {len(processes)} processes" for value, count in counts.most_common())


def _listed(provenances: Iterable[Provenance], *path: str) -> str:
    values = {
        str(word) for provenance in provenances if isinstance(listed := _at(provenance, *path), list) for word in listed
    }
    return ", ".join(sorted(values))


def _carriers(provenances: Sequence[Provenance]) -> str:
    """The transports that UCX said it chose for large messages; all others were possible, and nothing proves more."""
    chosen = _listed(provenances, "transport", "carriers")
    is_silent = not chosen and _listed(provenances, "transport", "observed")
    return "not proved: UCX didn't say (1.18 and newer can)" if is_silent else chosen


def _environment(processes: Sequence[Provenance]) -> str:
    variables = [settings for process in processes if isinstance(settings := _at(process, "ucx", "env"), Mapping)]
    seen = {" ".join(f"{k}={v}" for k, v in sorted(environment.items())) for environment in variables}
    return " or ".join(sorted(text for text in seen if text))


def _registered(provenances: Sequence[Provenance]) -> str:
    """Seconds from a run's start, medians over the runs."""
    recorded = [
        times for provenance in provenances if isinstance(times := provenance.get("registered_s"), list) and times
    ]
    seen = [sorted(times) for times in recorded if all(isinstance(time, int | float) for time in times)]
    if not seen:
        return ""
    columns = zip(
        *((sorted_times[0], sorted_times[(len(sorted_times) + 1) // 2 - 1], sorted_times[-1]) for sorted_times in seen),
        strict=True,
    )
    return " | ".join(f"{statistics.median(column):.1f} s" for column in columns)


def _versions(processes: Sequence[Provenance]) -> str:
    pairs = {(_at(process, "versions", "dask"), _at(process, "versions", "distributed")) for process in processes}
    return " or ".join(sorted(f"{dask}, {distributed}" for dask, distributed in pairs if dask or distributed))


def _image(variant: PlannedVariant) -> str:
    return f"{variant.image.kind} {variant.image.id[:16]}" if variant.image else "unresolved"


def _slowest(provenances: Iterable[Provenance]) -> str:
    worst = slowest(provenances)
    return f"{worst[0]:.2f} ({worst[1]})" if worst[1] else ""


def _load(nodes: Sequence[Provenance], name: str, form: str) -> str:
    values = series(nodes, name)
    return form.format(statistics.fmean(values)) if values else ""


def _steal(nodes: Sequence[Provenance]) -> str:
    values = series(nodes, "steal")
    return f"{statistics.fmean(values):.1f} % | {max(values):.1f} %" if values else ""
