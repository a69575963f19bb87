"""What UCX writes into its log while it connects: which transports it could use, which one it chose, what it ignored.

The log is at level info, with ``UCX_PROTO_INFO=y``.
"""

import re
from typing import Any, Dict, Iterable, List, Mapping, Set

_UNUSED = re.compile(r"\bUCX\s+WARN\s+unused environment variables?: (.*)")
_GROUP = re.compile(r"\b[a-z_]+\(([^()]+)(\)|$)")
_CONFIGURATION = re.compile(r"\b(?:(self|intra-node|inter-node) )?cfg#\d+\b|\bep_cfg\[\d+\]:")
_LANE = re.compile(r"\b([a-z][a-z0-9_]*)/\w")
_STAGED = re.compile(r"copy-(?:in|out)|frag h")
"""In the description of how UCX sends: it copies into buffers, which are in main memory unless they are fragments of
the kind that the bindings ask for (``frag cuda``; UCX_RNDV_FRAG_MEM_TYPE)."""
SELF, SAME_NODE, UNKNOWN = "self", "intra-node", "unknown"
_MEMORY = {"cpu": "host memory", "gpu": "cuda"}
"""By device: how UCX calls the memory of the messages that matter, or begins its name."""
_DATA = r"\| (?:.*(?:tagged|active) message by .* from|rendezvous data send.* from|rendezvous data fetch.* into) {}"
"""The title of a table about data in such memory. UCX calls the part of a message that follows its announcement so.
The bindings send no data as a stream."""
STAGED = "through main memory"
_NOT_OF_THE_WAY = re.compile(r"^(?:\(\?\) )?(?:rendezvous )?|,\s*(?:f|fr|fra|frag\b.*)?$")
"""In such a description: that it is expected only, that the receiver is asked first, which are other tables' words for
the same; and the kind of the fragments, which UCX before 1.20 cuts off after 63 characters."""

Lanes = Mapping[str, Iterable[str]]


def lanes(log: str) -> Dict[str, List[str]]:
    """``tl/device`` of every lane that UCX's log reports, by who the peer is: ``{"intra-node": ["tcp/lo"]}``.

    UCX before 1.15 doesn't say who the peer is (``unknown``). A line ends after 256 characters: of a group that isn't
    closed the last word may be cut off.

    Source: ``ucp_worker_print_used_tls`` in ucp_worker.c, whose lines read
    ``… intra-node cfg#1 tag(tcp/lo) am(tcp/lo) …``, in older releases (1.12) ``… ep_cfg[1]: tag(tcp/lo) …``.
    """
    by_peer: Dict[str, Set[str]] = {}
    for line in log.splitlines():
        mark = _CONFIGURATION.search(line)
        for group, end in _GROUP.findall(line[mark.end() :]) if mark else ():
            names = [name for name in re.split(r"[\s+]+|\.\.", group) if name]
            whole = [name for name in (names if end else names[:-1]) if "/" in name]
            if whole and mark:
                by_peer.setdefault(mark[1] or UNKNOWN, set()).update(whole)
    return {peer: sorted(lanes_of_peer) for peer, lanes_of_peer in sorted(by_peer.items())}


def every(lanes_by_peer: Lanes) -> List[str]:
    return sorted({lane for lanes_of_peer in lanes_by_peer.values() for lane in lanes_of_peer})


def transports(all_lanes: Iterable[str]) -> List[str]:
    """``["tcp/lo", "rc_mlx5/mlx5_0:1"]`` → ``["rc_mlx5", "tcp"]``; a process's lane to itself is no transport."""
    return sorted({lane.partition("/")[0] for lane in all_lanes} - {"self"})


def carriers(log: str, device: str) -> List[str]:
    """How UCX chose to move the largest messages of this process, from and into its device's memory.

    ``cuda_ipc (zero-copy flushed write to remote)``: a transport, and UCX's words for what it does; ``rc_mlx5 (pipeline
    read from remote, cuda_copy) through main memory`` where data of a GPU is copied there on its way.

    UCX prints the table of an operation when a process first does it: it has sent such a message. The row that ends
    with ``inf`` says how large ones go. What a sender expects of its peer (``(?)``) needn't be what happens: where a
    GPU can't open the memory of another one, its process chooses anew, and prints what. Before 1.18 the binding turns
    off what prints it: nothing is known then.

    Source: ``ucp_proto_select_elem_info`` in proto_debug.c: ``| tagged message by ucp_tag_send* from host memory |``,
    ``| 5029..inf | (?) rendezvous zero-copy read from remote | cma/memory |``; names of operations in proto.c:106,
    descriptions in rndv_mtype.inl:185 (``cuda_copy, write to remote, frag host``) and eager.h:22@v1.22.0.
    """
    chosen: Set[str] = set()
    of_device = re.compile(_DATA.format(_MEMORY[device]))
    is_ours = False
    for line in log.splitlines():
        if _CONFIGURATION.search(line):  # a table begins
            is_ours = False
        if of_device.search(line):
            is_ours = True
        elif is_ours and "..inf |" in line:
            description, lanes_chosen = line.rstrip(" |").rsplit("|", 2)[1:]
            way = _NOT_OF_THE_WAY.sub("", description.strip())
            staged = f" {STAGED}" if device == "gpu" and _STAGED.search(description) else ""
            chosen.update(f"{name} ({way}){staged}" for name in _LANE.findall(lanes_chosen))
    return sorted(chosen)


def unused(log: str) -> Dict[str, str]:
    """The ``UCX_*`` that UCX says it doesn't read, each with the name that UCX suggests instead, or an empty one.

    Source: ``ucs_config_parser_print_env_vars`` in parser.c, whose line reads ``… unused environment variables: UCX_A;
    UCX_TSL (maybe: UCX_TLS?)``. UCX writes it when its first worker is made, about variables of all modules: one of a
    module that isn't used on this machine is unused, too.
    """
    variables = {}
    for names in _UNUSED.findall(log):
        for entry in names.split(";"):
            name, _, near = entry.strip().partition(" (maybe: ")
            variables[name] = near.rstrip("?)")
    return variables


def read(log: str, device: str) -> Dict[str, Any]:
    """All of it: ``lanes``, ``carriers``, ``unused``."""
    return {"lanes": lanes(log), "carriers": carriers(log, device), "unused": unused(log)}
