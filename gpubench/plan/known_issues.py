"""Known issues against a plan: which variants they concern at which node counts."""

from collections.abc import Iterable, Iterator, Sequence

from gpubench.errors import PlanRefusedError
from gpubench.model.known_issue import Circumstances, KnownIssue
from gpubench.model.plan import AppliedIssue, PlannedVariant
from gpubench.model.site import Site
from gpubench.model.text import counted


def apply_issues(
    issues: Iterable[KnownIssue],
    *,
    site: Site,
    protocol: str,
    variants: Sequence[PlannedVariant],
    nodes: Sequence[int],
    today: str,
) -> tuple[list[AppliedIssue], list[str]]:
    """What the rules say of a campaign.

    Args:
        variants: with their images where those are built, which know their version best.

    Returns:
        The rules applied, and a note for every rule that would have been if it hadn't expired, and for every node count
        at which they leave nothing to compare.

    Raises:
        PlanRefusedError: they leave nothing to compare at all.
    """
    given = set(site.env).union(*(variant.env for variant in variants))
    applied: list[AppliedIssue] = []
    notes: list[str] = []
    for issue in issues:
        concerned = [
            (count, variant.label)
            for count in nodes
            for variant in variants
            if issue.when.hold(_circumstances(site, protocol, variant, count))
        ]
        if concerned and issue.expires and issue.expires <= today:
            notes.append(
                f"expired on {issue.expires} and not applied: {issue.why}; "
                f"it would concern {_places(concerned)}: renew the rule or remove it"
            )
            continue
        env = {name: value for name, value in issue.env.items() if name not in given}
        applied += [
            AppliedIssue(name=issue.name, action=issue.action, why=issue.why, nodes=count, variant=label, env=env)
            for count, label in concerned
        ]
    baseline, *candidates = [variant.label for variant in variants]
    not_compared = []
    for count in nodes:
        skipped = {issue.variant for issue in applied if issue.action == "skip" and issue.nodes == count}
        if baseline in skipped or (candidates and skipped >= set(candidates)):
            what = f"the baseline {baseline}" if baseline in skipped else "every candidate"
            not_compared.append(f"on {counted(count, 'node')} nothing can be compared: {what} is skipped")
    if candidates and len(not_compared) == len(nodes):
        why = next(issue.why for issue in applied if issue.action == "skip")
        raise PlanRefusedError(f"{not_compared[0]}: {why}", then="compare other versions, or change the rule")
    notes += not_compared
    return applied, notes


def issue_lines(applied: Iterable[AppliedIssue]) -> Iterator[str]:
    """A line per rule: what it does to which variants on how many nodes, and why."""
    grouped: dict[tuple[str, str], list[AppliedIssue]] = {}
    for issue in applied:
        grouped.setdefault((issue.name, issue.why), []).append(issue)
    for (_, why), issues in grouped.items():
        places = _places([(issue.nodes, issue.variant) for issue in issues])
        if issues[0].action == "env":
            counts = ", ".join(map(str, sorted({issue.nodes for issue in issues})))
            setting = (
                " ".join(f"{name}={value}" for name, value in issues[0].env.items()) or "nothing: all is set already"
            )
            nodes = f"{counts} node{'' if counts == '1' else 's'}"
            yield f"set for every variant on {nodes}: {setting}, for {places}: {why}"
        else:
            yield f"{'skipped' if issues[0].action == 'skip' else 'warning'}: {places}: {why}"


def _circumstances(site: Site, protocol: str, variant: PlannedVariant, nodes: int) -> Circumstances:
    image = variant.image
    return Circumstances(
        ucx=image.ucx_version if image and image.ucx_version else variant.ucx.partition(",")[0],
        nodes=nodes,
        gpus=nodes * site.node.gpus,
        protocol=protocol,
        runtime=site.runtime,
        transports=site.expect_transport,
        env={**(image.env if image else {}), **site.env, **variant.env},
    )


def _places(concerned: Iterable[tuple[int, str]]) -> str:
    """``v1.13.x on 8 and 16 nodes``."""
    counts: dict[str, list[str]] = {}
    for count, label in concerned:
        counts.setdefault(label, []).append(str(count))
    return ", ".join(
        f"{label} on {' and '.join(node_counts)} node{'' if node_counts == ['1'] else 's'}"
        for label, node_counts in counts.items()
    )
