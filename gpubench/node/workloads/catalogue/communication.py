"""The fabric itself: messages between workers, through the binding and through UCX alone."""

from typing import Any, Mapping

from gpubench.node.workloads.catalogue.entry import Param, Shape, Workload


def _message_held(params: Mapping[str, Any], _shape: Shape) -> int:
    return 4 * int(params["size"])


WORKLOADS = (
    Workload(
        name="message",
        factory="message:Message",
        family="communication",
        source="ucx-py's send-recv.py, OSU osu_latency",
        scaling="none",
        params={
            "size": Param("size", 10_000_000, "bytes of one message", original="1 B … 64 MiB"),
            "round_trips": Param("count", 5, "ping-pongs per pair of workers and repetition", original="--n-iter 30"),
            # A pair costs its round trips and about 5 ms for telling two workers to begin, outside the clock: all pairs
            # of 64 workers (2016) some 10 s per repetition, their ring (64) a third of a second.
            "pairs": Param(
                "choice",
                "all",
                "which workers play, one pair after another: all pairs, n(n-1)/2; ring: each with the next, n; hosts: "
                "the first workers of every two hosts and the first two of each host, h(h-1)/2 + h",
                choices=("all", "ring", "hosts"),
                original="one pair",
            ),
        },
        timed="ping-pongs in the workers' event loops, pair after pair of workers, seconds summed over the pairs",
        graph="none",
        counted="2 × size × round trips × pairs",
        oracle="what comes back equals what was sent (a pattern that changes with every repetition and trip), the far "
        "side counted as many bytes, and the two sides are different processes",
        held=_message_held,
        held_text="4 × size: sent, a buffer for the echo, received, compared",
        grows=(("size", 1.0),),
        least_workers=2,
    ),
    Workload(
        name="link",
        factory="link:LinkTest",
        family="communication",
        source="ucx_perftest; ucxx.benchmarks.send_recv",
        scaling="none",
        params={
            "test": Param(
                "choice",
                "tag_lat",
                "what ucx_perftest measures: round trips (tag_lat, ucp_am_lat) or one way (tag_bw, ucp_am_bw); "
                "send_recv: round trips of ucxx.benchmarks.send_recv, with the progress mode of the workers",
                choices=("tag_lat", "tag_bw", "ucp_am_lat", "ucp_am_bw", "send_recv"),
                original="-t",
            ),
            "size": Param("size", 1024, "bytes of one message", original="-s"),
            "iterations": Param("count", 1000, "messages per pair of workers and repetition", original="-n"),
            "pairs": Param(
                "choice",
                "all",
                "which workers play, as for message",
                choices=("all", "ring", "hosts"),
            ),
        },
        timed="the iterations, by the program's own clock, behind its own warm-up of a tenth as many; pair after pair "
        "of workers, each in two processes of its own, seconds summed over the pairs",
        graph="none",
        counted="size × iterations × pairs, twice for round trips",
        oracle="none for the bytes themselves, so answers are `unchecked`: every pair must complete all iterations,"
        " and the program must have loaded the same libucp as the workers",
        held=_message_held,
        held_text="4 × size: sent and received by the program on either side",
        grows=(("size", 1.0),),
        least_workers=2,
    ),
)
