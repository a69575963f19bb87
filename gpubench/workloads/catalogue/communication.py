"""The fabric itself: messages between workers."""

from typing import Any, Mapping

from gpubench.workloads.catalogue.entry import BOTH_DEVICES, Param, Shape, Workload


def _message_held(params: Mapping[str, Any], _shape: Shape) -> int:
    return 3 * int(params["size"])


WORKLOADS = (
    Workload(
        name="message",
        factory="message:Message",
        family="communication",
        source="ucx-py's send-recv.py, OSU osu_latency",
        scaling="none",
        backends=("dask",),
        devices=BOTH_DEVICES,
        params={
            "size": Param("size", 10_000_000, "bytes of one message", original="1 B … 64 MiB"),
            "round_trips": Param("count", 5, "ping-pongs per pair of workers and repetition", original="--n-iter 30"),
        },
        timed="ping-pongs in the workers' event loops, every pair of workers in turn, seconds summed over the pairs",
        graph="none",
        counted="2 × size × round trips × pairs",
        oracle="what comes back equals what was sent (a pattern that changes with every repetition and trip), the far "
        "side counted as many bytes, and the two sides are different processes",
        held=_message_held,
        held_text="3 × size: sent, received, compared",
        grows=(("size", 1.0),),
        least_workers=2,
    ),
)
