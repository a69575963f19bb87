"""What UCX writes into its log while it connects: which transports it could use, which one it chose, what it ignored.

The log is at level info, with ``UCX_PROTO_INFO=y``.
"""

import re
from typing import Any, Dict, Iterable, List, Mapping, Set

_UNUSED = re.compile(r"\bUCX\s+WARN\s+unused environment variables?: (.*)")
_GROUP = re.compile(r"\b[a-z_]+\(([^()]+)(\)|$)")
_CONFIGURATION = re.compile(r"\b(?:(self|intra-node|inter-node) )?cfg#\d+\b|\bep_cfg\[\d+\]:")
_LANE = re.compile(r"\b([a-z][a-z0-9_]*)/\w")
SELF, SAME_NODE, UNKNOWN = "self", "intra-node", "unknown"
SENT_FROM = {"cpu": "from host memory", "gpu": "from cuda"}
"""By device: how UCX calls the memory of the messages that matter."""

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
    return {peer: sorted(found) for peer, found in sorted(by_peer.items())}


def every(lanes_by_peer: Lanes) -> List[str]:
    """All lanes, each once."""
    return sorted({lane for found in lanes_by_peer.values() for lane in found})


def transports(all_lanes: Iterable[str]) -> List[str]:
    """``["tcp/lo", "rc_mlx5/mlx5_0:1"]`` → ``["rc_mlx5", "tcp"]``; a process's lane to itself is no transport."""
    return sorted({lane.partition("/")[0] for lane in all_lanes} - {"self"})


def carriers(log: str, device: str) -> List[str]:
    """The transports that UCX chose for the largest messages that this process sent from its device's memory.

    UCX prints the table of an operation when a process first does it: it has sent such a message. The row that ends
    with ``inf`` says how large ones go. Before 1.18 the binding turns off what prints it: nothing is known then.

    Source: ``ucp_proto_select_elem_info`` in proto_debug.c: ``| tagged message by ucp_tag_send* from host memory |``,
    ``| 5029..inf | (?) rendezvous zero-copy read from remote | cma/memory |``.
    """
    chosen: Set[str] = set()
    is_ours = False
    for line in log.splitlines():
        row = line.partition("|")[2]
        if "_send" in row and " from " in row:
            is_ours = SENT_FROM[device] in row
        elif is_ours and "..inf |" in row:
            chosen.update(_LANE.findall(row.rstrip(" |").rpartition("|")[2]))
            is_ours = False  # the table's last row
    return sorted(chosen)


def unused(log: str) -> Dict[str, str]:
    """The ``UCX_*`` that UCX says it doesn't read, each with the name that UCX suggests instead, or an empty one.

    Source: ``ucs_config_parser_print_env_vars`` in parser.c, whose line reads ``… unused environment variables: UCX_A;
    UCX_TSL (maybe: UCX_TLS?)``. UCX writes it when its first worker is made, about variables of all modules: one of a
    module that isn't used on this machine is unused, too.
    """
    found = {}
    for names in _UNUSED.findall(log):
        for words in names.split(";"):
            name, _, near = words.strip().partition(" (maybe: ")
            found[name] = near.rstrip("?)")
    return found


def read(log: str, device: str) -> Dict[str, Any]:
    """All of it: ``lanes``, ``carriers``, ``unused``."""
    return {"lanes": lanes(log), "carriers": carriers(log, device), "unused": unused(log)}
