"""Sums of arrays, as dask-cuda's and DeepOps' benchmarks do them, and STREAM's Copy."""

from typing import Any, Callable, Mapping

from gpubench.node.workloads.catalogue.entry import Param, Shape, Workload

ITEM_BYTES = 8
Held = Callable[[Mapping[str, Any], Shape], int]


def _square(copies: float) -> Held:
    """``copies`` squares, dealt out to the workers, and two blocks in work per thread."""

    def held(params: Mapping[str, Any], shape: Shape) -> int:
        share = copies * int(params["size"]) ** 2 / shape.workers
        return int((share + 2 * shape.threads_per_worker * int(params["chunk"]) ** 2) * ITEM_BYTES)

    return held


WORKLOADS = (
    Workload(
        name="transpose-sum",
        factory="arrays:TransposeSum",
        family="array",
        source="dask_cuda.benchmarks.local_cupy -o transpose_sum",
        scaling="strong",
        params={
            "size": Param("count", 3000, "rows and columns of the array of float64", original="-s 10000"),
            "chunk": Param("count", 1000, "rows and columns of one chunk", original="-c 2500"),
        },
        timed="persisting (x + x.T).sum() of an array that lies on the workers, waiting",
        graph="before the clock",
        counted="size² × 8",
        oracle="equals 2·sum(x), summed apart from it, to 1e-9; size² within 6 standard deviations",
        held=_square(2.0),
        held_text="2 × size² × 8 B / workers: the array, and copies of blocks that others hold; "
        "2 chunks per thread in work",
        grows=(("size", 0.5), ("chunk", 0.5)),
    ),
    Workload(
        name="strided-sum",
        factory="arrays:StridedSum",
        family="array",
        source="DeepOps sum.py",
        scaling="strong",
        params={
            "size": Param("count", 4000, "rows and columns of the array of float64", original="--xdim --ydim 500000"),
            "chunk": Param("count", 1000, "rows and columns of one chunk", original="--x_chunk_size 10000"),
            "generate": Param("flag", False, "draw the array inside the clock", original="always inside"),
        },
        timed="persisting ((x + 1)[::2, ::2]).sum(), waiting",
        graph="before the clock",
        counted="size² × 8",
        oracle="equals sum(x[::2, ::2]) + count, summed apart from it, to 1e-9; 11·count within 6 standard deviations",
        held=lambda params, shape: _square(0.0 if params["generate"] else 1.0)(params, shape),
        held_text="size² × 8 B / workers unless drawn inside the clock; 2 chunks per thread in work",
        grows=(("size", 0.5), ("chunk", 0.5)),
    ),
    Workload(
        name="copy",
        factory="copy:Copy",
        family="array",
        source="STREAM's Copy",
        scaling="weak",
        params={
            "size": Param("size", 200_000_000, "bytes of the array that each worker copies, float64"),
            "times": Param("count", 5, "copies of a repetition"),
        },
        timed="copying one array onto another in the memory of each worker, all at once; the slowest worker's seconds",
        graph="none",
        counted="2 × size × times × workers: read and written",
        oracle="each target holds the numbers of this repetition",
        held=lambda params, _shape: 3 * int(params["size"]),
        held_text="3 × size: source, target, and what the target is compared with",
        grows=(("size", 1.0),),
    ),
)
