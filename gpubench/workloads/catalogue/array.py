"""Operations on arrays, as dask-cuda's and DeepOps' benchmarks do them."""

from typing import Any, Mapping

from gpubench.workloads.catalogue.entry import BOTH_DEVICES, Param, Shape, Workload

ITEM_BYTES = 8


def square_held(copies: float, params: Mapping[str, Any], shape: Shape) -> int:
    """A worker's share of ``copies`` squares of float64, and two chunks that are being worked on per thread."""
    share = copies * int(params["size"]) ** 2 / shape.workers
    return int((share + 2 * shape.threads_per_worker * int(params["chunk"]) ** 2) * ITEM_BYTES)


def _transpose_held(params: Mapping[str, Any], shape: Shape) -> int:
    return square_held(2.0, params, shape)


def _strided_held(params: Mapping[str, Any], shape: Shape) -> int:
    return square_held(0.0 if params["generate"] else 1.0, params, shape)


def _copy_held(params: Mapping[str, Any], _shape: Shape) -> int:
    return 3 * int(params["size"])


WORKLOADS = (
    Workload(
        name="transpose-sum",
        factory="transpose_sum:TransposeSum",
        family="array",
        source="dask_cuda.benchmarks.local_cupy -o transpose_sum",
        scaling="strong",
        backends=("dask", "dask-noop"),
        devices=BOTH_DEVICES,
        params={
            "size": Param("count", 3000, "rows and columns of the array of float64", original="-s 10000"),
            "chunk": Param("count", 1000, "rows and columns of one chunk", original="-c 2500"),
        },
        timed="persisting (x + x.T).sum() of an array that lies on the workers, waiting",
        graph="before the clock",
        counted="size² × 8",
        oracle="equals 2·sum(x), summed apart from it, to 1e-9; size² within 6 standard deviations",
        held=_transpose_held,
        held_text="2 × size² × 8 B / workers: the array, and copies of blocks that others hold; "
        "2 chunks per thread in work",
        grows=(("size", 0.5), ("chunk", 0.5)),
    ),
    Workload(
        name="strided-sum",
        factory="strided_sum:StridedSum",
        family="array",
        source="DeepOps sum.py",
        scaling="strong",
        backends=("dask",),
        devices=BOTH_DEVICES,
        params={
            "size": Param("count", 4000, "rows and columns of the array of float64", original="--xdim --ydim 500000"),
            "chunk": Param("count", 1000, "rows and columns of one chunk", original="--x_chunk_size 10000"),
            "generate": Param("flag", False, "draw the array inside the clock", original="always inside"),
        },
        timed="persisting ((x + 1)[::2, ::2]).sum(), waiting",
        graph="before the clock",
        counted="size² × 8",
        oracle="equals sum(x[::2, ::2]) + count, summed apart from it, to 1e-9; 11·count within 6 standard deviations",
        held=_strided_held,
        held_text="size² × 8 B / workers unless drawn inside the clock; 2 chunks per thread in work",
        grows=(("size", 0.5), ("chunk", 0.5)),
    ),
    Workload(
        name="copy",
        factory="copy:Copy",
        family="array",
        source="STREAM's Copy",
        scaling="weak",
        backends=("dask",),
        devices=BOTH_DEVICES,
        params={
            "size": Param("size", 200_000_000, "bytes of the array that each worker copies, float64"),
            "times": Param("count", 5, "copies of a repetition"),
        },
        timed="copying one array onto another in the memory of each worker, all at once; the slowest worker's seconds",
        graph="none",
        counted="2 × size × times × workers: read and written",
        oracle="each target holds the numbers of this repetition",
        held=_copy_held,
        held_text="3 × size: source, target, and what the target is compared with",
        grows=(("size", 1.0),),
    ),
)
