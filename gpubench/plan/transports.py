"""Whether ``UCX_TLS`` leaves a run the transports that it needs. Pure."""

from collections.abc import Mapping

from gpubench.errors import PlanRefusedError
from gpubench.node.spec.run import needed_on
from gpubench.plan.request import Request


def check_gpu_transports(device: str, protocol: str, env: Mapping[str, str], who: str) -> None:
    """Raise PlanRefusedError where UCX is told to do without CUDA, and GPU workers would send GPU memory.

    UCX has no transport for GPU memory then (``ucx_perftest -m cuda`` with ``UCX_TLS=tcp`` refuses it, 1.19.0).
    """
    transports = env.get("UCX_TLS", "all").lower().split(",")
    named = any("cuda" in word for word in transports)
    without = named if transports[0].startswith("^") else not named and "all" not in transports
    if device == "gpu" and protocol == "ucx" and without:
        raise PlanRefusedError(
            f"{who}: UCX_TLS = {env['UCX_TLS']} leaves out CUDA, and device = gpu sends GPU memory",
            then="add cuda_copy,cuda_ipc",
        )


_ALIASES = {"ib": ("rc", "dc", "ud"), "rc_x": ("rc_mlx5",), "dc_x": ("dc_mlx5",), "rc_v": ("rc_verbs",)}
"""Words of ``UCX_TLS`` and how the transports begin that they stand for; any other word begins as its transports do."""


def check_needed_transports(request: Request, env: Mapping[str, str], who: str) -> None:
    """Raise PlanRefusedError where ``UCX_TLS`` leaves out all transports that the site needs between its workers."""
    allowed = [word.strip().lower() for word in env.get("UCX_TLS", "all").split(",")]
    if request.protocol != "ucx" or "all" in allowed:
        return
    if allowed == [""]:
        raise PlanRefusedError(
            f"{who}: UCX_TLS is empty, and leaves UCX no transport", then="leave it out, or write UCX_TLS=all"
        )
    is_left_out = allowed[0].startswith("^")
    begins = tuple(prefix for word in allowed for prefix in _ALIASES.get(word.lstrip("^"), (word.lstrip("^"),)))
    layout, needs = request.site.layout, request.site.need_transport
    several = {
        "same_node": max([*(request.workers or [layout.workers]), max(request.nodes) if layout.one_machine else 1]) > 1,
        "between_nodes": max(request.nodes) > 1 and not layout.one_machine,
    }
    for key, transports in (("same_node", needs.same_node), ("between_nodes", needs.between_nodes)):
        names = needed_on(request.device, transports)
        if several[key] and names and all(name.startswith(begins) == is_left_out for name in names):
            without = f"UCX_TLS = {env['UCX_TLS']} leaves out {' and '.join(names)}"
            raise PlanRefusedError(
                f"{who}: {without}, of need_transport.{key} of the site",
                then=f"add {names[0]}, or --set 'need_transport.{key}=[]'",
            )
