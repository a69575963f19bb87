"""What a run proves of itself: the cluster is the planned one, or the run fails.

Library, variables, build, packages, transports and traffic, as read inside the processes (``process_facts``, ``ucx``).
"""

import re
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from gpubench.node import ucx_log
from gpubench.node.spec import RunSpec
from gpubench.node.spec.run import needed_on
from gpubench.node.variables import ucx_variables
from gpubench.node.workloads import ucx

ProcessFacts = Mapping[str, Any]
BY_GPUS = ("UCX_CUDA_COPY_MAX_REG_RATIO",)
"""Set by the binding where NVML shows GPUs whose BAR1 is as large as their memory, and where it shows none: a scheduler
or client may be where other GPUs are. Source: ucp/__init__.py of ucx-py 0.29 to ucxx/__init__.py of ucxx 0.52."""


class CheckError(Exception):
    """The run is not what was planned; the message says what was found where, and what was planned."""


def check_protocol(spec: RunSpec, addresses: Sequence[str]) -> None:
    planned = spec.scheme
    for address in addresses:
        protocol = address.partition("://")[0]
        if protocol != planned:
            raise CheckError(f"{address} speaks {protocol}, planned {planned} (protocol {spec.protocol})")


def check_same_workers(planned: Sequence[str], present: Iterable[str]) -> None:
    """The cluster must have the workers of the start and no others: Dask gives tasks to every worker that joins."""
    left, joined = sorted(set(planned) - set(present)), sorted(set(present) - set(planned))
    changes = [f"{', '.join(left)} left"] if left else []
    changes += [f"{', '.join(joined)} joined"] if joined else []
    if changes:
        raise CheckError(f"the cluster changed while it was measured: {' and '.join(changes)}")


def check_processes(spec: RunSpec, processes: Sequence[ProcessFacts]) -> None:
    for process in processes:
        who = "{} (pid {} on {})".format(process["role"], process["pid"], process["host"])
        _check_library(spec, process, who)
        _check_environment(spec, process["ucx"], who)
        if process["node_half"] != spec.node_half:
            raise CheckError(
                "{} imported node half {}, planned {}".format(who, process["node_half"][:64], spec.node_half[:12])
            )
        if not process["affinity"]:
            raise CheckError(f"{who} may run on no CPU")
        if process["build_id"] != spec.build_id:
            raise CheckError("{} runs in build {}, planned {}".format(who, process["build_id"] or "?", spec.build_id))
    _check_agreement(spec, processes)


def check_packages(process: ProcessFacts, listed: str) -> None:
    """The packages that a process finds are those that its image was built with.

    Args:
        listed: hash of the packages that the image's manifest lists; empty where it lists none.

    Raises:
        CheckError: somebody changed the image after its build.
    """
    if listed and process["packages"] != listed:
        raise CheckError(
            "{} on {} finds packages {}, the image's manifest lists {}: the image was changed after its build".format(
                process["role"], process["host"], process["packages"], listed
            )
        )


def _check_library(spec: RunSpec, process: ProcessFacts, who: str) -> None:
    library = process["ucx"]
    planned = spec.expect_ucx if spec.protocol == "ucx" else ucx.NO_UCX
    if library["loaded"] not in (planned, spec.expect_ucx if _loads_ucx_anyway(spec, process) else planned):
        where = " from {}".format(library["path"]) if library["path"] else ""
        raise CheckError("{} loaded UCX {}{}, planned {}".format(who, library["loaded"], where, planned))
    # Another one of the same version, by a RPATH or a hook: it was built otherwise.
    if library["path"] and library["planned_path"] and library["path"] != library["planned_path"]:
        raise CheckError("{} loaded UCX from {}, planned {}".format(who, library["path"], library["planned_path"]))


def _loads_ucx_anyway(spec: RunSpec, process: ProcessFacts) -> bool:
    """Whether this worker loads the image's UCX over tcp too, though it sends nothing by it.

    dask-cuda does so in its GPU workers before 23.12, by ``distributed.comm.ucx.init_once()`` whatever the protocol
    (initialize.py:31@v22.12.00); 23.12 returns before that (initialize.py:26@v23.12.00).
    """
    if spec.device != "gpu" or spec.protocol == "ucx" or process["role"] != "worker":
        return False
    version = re.search(r"(\d+)\.(\d+)", process["versions"].get("dask_cuda", ""))  # v22.12.00
    return version is not None and (int(version[1]), int(version[2])) < (23, 12)


def _check_environment(spec: RunSpec, environment: ProcessFacts, who: str) -> None:
    planned = ucx_variables(spec.env)
    if environment["env_at_start"] != planned:
        raise CheckError(f"{who} started with {_words(environment['env_at_start'])}, planned {_words(planned)}")
    for name in sorted(planned):
        if environment["env"].get(name) != planned[name]:
            raise CheckError(f"{who} runs with {name}={environment['env'].get(name)}, planned {planned[name]}")


def _check_agreement(spec: RunSpec, processes: Sequence[ProcessFacts]) -> None:
    """Packages, and what the binding adds to ``UCX_*`` on import, must be the same everywhere.

    What it adds by the GPUs that it finds must be the same in all processes of one role.
    """
    first = processes[0]
    first_of_role: Dict[str, ProcessFacts] = {}
    for other in processes:
        if other["packages"] != first["packages"]:
            raise CheckError(
                "{} on {} has other packages than {} on {}".format(
                    other["role"], other["host"], first["role"], first["host"]
                )
            )
        if not _loads_ucx_anyway(spec, other):
            _check_same_variables(first, other, BY_GPUS)
        _check_same_variables(first_of_role.setdefault(other["role"], other), other, ())


def _check_same_variables(first: ProcessFacts, second: ProcessFacts, but: Sequence[str]) -> None:
    sides = (first["ucx"]["env"], second["ucx"]["env"])
    here, there = ({name: value for name, value in side.items() if name not in but} for side in sides)
    if here != there:
        where = [" on {}".format(facts["host"]) if first["role"] == second["role"] else "" for facts in (first, second)]
        raise CheckError(
            "UCX_* differ: {}{} has {}, {}{} has {}".format(
                first["role"], where[0], _words(here), second["role"], where[1], _words(there)
            )
        )


def binding_environment(process: ProcessFacts) -> Dict[str, str]:
    """The ``UCX_*`` that are not planned: the binding set them when it was imported."""
    before = process["ucx"]["env_at_start"]
    return {name: value for name, value in process["ucx"]["env"].items() if before.get(name) != value}


def check_transport(spec: RunSpec, lanes_by_process: Mapping[str, ucx_log.Lanes]) -> List[str]:
    """The transports that UCX reports in its log; must be what the site expects.

    Raises:
        CheckError: none was reported, or one that the site doesn't expect.
    """
    silent = sorted(process for process, lanes in lanes_by_process.items() if not lanes)
    if silent:
        raise CheckError(f"UCX reported no lane in {', '.join(silent)}: which transport ran is unknown")
    used = ucx_log.transports(lane for lanes in lanes_by_process.values() for lane in ucx_log.every(lanes))
    foreign = [name for name in used if name not in spec.expect_transport]
    if spec.expect_transport and (foreign or not used):
        raise CheckError(
            "UCX used {}, the site expects {}".format(", ".join(used) or "none", ", ".join(spec.expect_transport))
        )
    return used


OTHER_PEERS = {
    "same_node": (ucx_log.SELF,),
    "between_nodes": (ucx_log.SELF, ucx_log.SAME_NODE),
}
"""By key of ``need_transport``: whose lanes don't count. Over TCP alone UCX may take a peer on its node for a distant
one."""


def note_talk(talked: Dict[str, List[str]], pairs: Iterable[Tuple[str, str]], workers: Sequence[ProcessFacts]) -> None:
    """Add the workers of these pairs of addresses to ``talked``: by key of ``need_transport``, each once."""
    hosts = {worker["address"]: worker["host"] for worker in workers}
    for pair in pairs:
        key = "same_node" if hosts[pair[0]] == hosts[pair[1]] else "between_nodes"
        talked[key] = sorted({*talked[key], *pair}) if set(pair) - set(talked[key]) else talked[key]


def check_needed(
    spec: RunSpec,
    talked: Mapping[str, Iterable[str]],
    workers: Mapping[str, ProcessFacts],
    lanes_by_worker: Mapping[str, ucx_log.Lanes],
) -> None:
    """Workers that sent each other data could do so by a transport that the site needs there.

    Args:
        talked: addresses of such workers, by key of ``need_transport``.
        workers: facts of the worker at each address.
        lanes_by_worker: what UCX's log says of each of them.

    Raises:
        CheckError: none of the needed transports is among the lanes of one of them.
    """
    for key, addresses in sorted(talked.items()):
        needed = needed_on(spec.device, spec.need_transport.get(key, []))
        for address in addresses if needed else ():
            others = [lanes for peer, lanes in lanes_by_worker[address].items() if peer not in OTHER_PEERS[key]]
            could = ucx_log.transports(lane for lanes in others for lane in lanes)
            if not set(needed) & set(could):
                raise CheckError(
                    "{} on {} sent and received by {} only, the site needs {} {} (need_transport.{})".format(
                        workers[address]["name"],
                        workers[address]["host"],
                        ", ".join(could) or "no transport",
                        " or ".join(needed),
                        key.replace("_", " ").replace("same", "on the same"),
                        key,
                    )
                )


def not_chosen(spec: RunSpec, talked: Mapping[str, Iterable[str]], carriers: Iterable[str]) -> List[str]:
    """A warning where UCX could send by a transport that the site needs, and chose none of them for large messages.

    Not a failure: which transport a version chooses may be what makes it slower. ``carriers``: see ``ucx_log``; empty
    where UCX doesn't say what it chose.
    """
    chosen = {carrier.partition(" ")[0] for carrier in carriers}
    return [
        "UCX chose {} for large messages, and none of need_transport.{} ({})".format(
            ", ".join(sorted(chosen)), key, ", ".join(needed)
        )
        for key, addresses in sorted(talked.items())
        for needed in [needed_on(spec.device, spec.need_transport.get(key, []))]
        if addresses and needed and chosen and not chosen & set(needed)
    ]


def unused_variables(spec: RunSpec, unused_by_process: Sequence[Mapping[str, str]]) -> List[str]:
    """A warning about planned ``UCX_*`` that no process's UCX reads: they change nothing.

    ``unused_by_process`` are, per process, what UCX's log says of variables that it doesn't read.
    """
    in_vain = [name for name in sorted(spec.env) if all(name in unused for unused in unused_by_process)]
    if not in_vain or not unused_by_process:
        return []
    near = unused_by_process[0]
    names = [name + (f" (maybe: {near[name]}?)" if near[name] not in ("", name) else "") for name in in_vain]
    return ["UCX reads no variable {}: what was set changes nothing".format(", ".join(names))]


def check_moved(spec: RunSpec, workload: str, moved: int, least: int, senders: Sequence[str]) -> None:
    """Bytes that had to move between workers must have been seen, and seen on the planned protocol."""
    check_protocol(spec, senders)
    if moved < least:
        raise CheckError(f"{workload} had to move {least} bytes between workers, {moved} were seen")


def _words(variables: Mapping[str, str]) -> str:
    return " ".join("{}={}".format(*item) for item in sorted(variables.items())) or "no UCX_*"
