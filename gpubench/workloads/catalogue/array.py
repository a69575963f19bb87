"""Operations on arrays, as dask-cuda's and DeepOps' benchmarks do them, and STREAM's Copy."""

from typing import Any, Callable, Dict, Mapping

from gpubench.workloads.catalogue.entry import Param, Shape, Workload

ITEM_BYTES = 8
Held = Callable[[Mapping[str, Any], Shape], int]

SIZE = Param("count", 2000, "rows and columns of each matrix of float64", original="-s 10000")
CHUNK = Param("count", 1000, "rows and columns of one block", original="-c 2500")
LENGTH = Param("count", 1_000_000, "numbers in a column", original="-s 10000")
CUT = Param("count", 250_000, "numbers in one block of a column", original="-c 2500")
SQUARE_TEXT = "{} × size² × 8 B / workers: {}; 2 blocks per thread in work"


def _square(copies: float) -> Held:
    """``copies`` squares, dealt out to the workers, and two blocks in work per thread."""

    def held(params: Mapping[str, Any], shape: Shape) -> int:
        share = copies * int(params["size"]) ** 2 / shape.workers
        return int((share + 2 * shape.threads_per_worker * int(params["chunk"]) ** 2) * ITEM_BYTES)

    return held


def _fft_held(params: Mapping[str, Any], shape: Shape) -> int:
    # The transform is complex, so twice its operand; a block holds whole columns.
    size = int(params["size"])
    return int((3 * size**2 / shape.workers + 3 * shape.threads_per_worker * size * int(params["chunk"])) * ITEM_BYTES)


def _svd_held(params: Mapping[str, Any], shape: Shape) -> int:
    # The matrix, Dask's Q of its blocks, and u; all triangular factors meet in one worker, and so do s and vᵀ.
    rows, columns = int(params["size"]), int(params["second_size"])
    blocks = -(-rows // max(1, int(params["chunk"])))
    return int((3 * rows * columns / shape.workers + (2 * blocks + 3) * columns**2) * ITEM_BYTES)


def _columns(copies: float) -> Held:
    def held(params: Mapping[str, Any], shape: Shape) -> int:
        share = copies * int(params["size"]) / shape.workers
        return int((share + 2 * shape.threads_per_worker * int(params["chunk"])) * ITEM_BYTES)

    return held


def _gather_held(params: Mapping[str, Any], shape: Shape) -> int:
    # Each block of x makes a part for each block of the index before they are put together.
    blocks = -(-int(params["size"]) // max(1, int(params["chunk"])))
    return _columns(1.0)(params, shape) + (2 + blocks) * int(params["second_size"]) * ITEM_BYTES


def _workload(name: str, factory: str, timed: str, oracle: str, **changes: Any) -> Workload:
    facts: Dict[str, Any] = {
        "source": "dask_cuda.benchmarks.local_cupy -o {}".format(name.replace("-", "_")),
        "params": {"size": SIZE, "chunk": CHUNK},
        "counted": "size² × 8",
        "grows": (("size", 0.5), ("chunk", 0.5)),
        **changes,
    }
    return Workload(
        name=name,
        factory=f"array_operations:{factory}",
        family="array",
        scaling="strong",
        timed=f"persisting {timed} of operands that lie on the workers, waiting",
        graph="before the clock",
        oracle=oracle,
        **facts,
    )


_OF_COLUMNS: Dict[str, Any] = {
    "counted": "2 × size × 8",
    "params": {"size": LENGTH, "chunk": CUT},
    "grows": (("size", 1.0), ("chunk", 1.0)),
    "held": _columns(3.0),
}
_TOTAL = "equals the exact sum of the blocks' sums, drawn again, to 1e-9; size²/2 within 6 standard deviations"

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
    _workload(
        "dot",
        "Dot",
        "the matrix product x.dot(y)",
        "w·(xy) equals (w·x)·y in every column to 1e-9, w random and x, y drawn again (Freivalds)",
        held=_square(5.0),
        held_text=SQUARE_TEXT.format(5, "both operands, copies of blocks that others hold, the product"),
        counted="2 × size² × 8",
    ),
    _workload(
        "svd",
        "Svd",
        "u, s and vᵀ of the singular value decomposition",
        "w·u·s·vᵀ equals w·x, uᵀu and v vᵀ leave a random vector as it is, Σs² equals Σx², all to 1e-9; s falls",
        held=_svd_held,
        held_text="3 × size × second_size × 8 B / workers: the matrix, Q, u; "
        "2 triangles per block and 3 more on one worker",
        params={
            "size": Param("count", 20_000, "rows of the matrix of float64", original="-s 10000"),
            "second_size": Param("count", 200, "columns, no more than rows", original="-2 1000"),
            "chunk": Param("count", 5000, "rows of one block", original="-c 2500"),
        },
        counted="size × second_size × 8",
        grows=(("size", 1.0), ("chunk", 1.0)),
    ),
    _workload(
        "fft",
        "Fft",
        "the Fourier transform of every column",
        "Σ|X|² equals size·Σ|x|²; w·X, w being powers of a root of −1, equals x times a geometric series; to 1e-9",
        held=_fft_held,
        held_text="3 × size² × 8 B / workers: the matrix and its complex transform; "
        "3 × size × chunk × 8 B per thread in work",
        params={"size": SIZE, "chunk": Param("count", 500, "columns of one block", original="-c 2500")},
    ),
    _workload(
        "sum",
        "Total",
        "the sum of all elements",
        _TOTAL,
        held=_square(1.0),
        held_text=SQUARE_TEXT.format(1, "the operand"),
    ),
    _workload(
        "mean",
        "Mean",
        "the mean of all elements",
        _TOTAL + " (times size²)",
        held=_square(1.0),
        held_text=SQUARE_TEXT.format(1, "the operand"),
    ),
    _workload(
        "slice",
        "Slice",
        "x[::3].copy()",
        "shape; w·x[::3] equals v·x in every column to 1e-9, v being the random w in every third place",
        held=_square(4 / 3),
        held_text=SQUARE_TEXT.format("4/3", "the operand and every third row"),
    ),
    _workload(
        "col-sum",
        "ColSum",
        "x + y",
        "w·(x + y) equals w·x + w·y in every block to 1e-9, w random and x, y drawn again",
        held_text="3 × size × 8 B / workers: both columns and their sum; 2 blocks per thread in work",
        **_OF_COLUMNS,
    ),
    _workload(
        "col-mask",
        "ColMask",
        "x[y > 10]",
        "every block's count exactly, its randomly weighted sum to 1e-9, by places instead of a mask, x, y drawn again",
        held_text="3 × size × 8 B / workers: both columns and what is kept, at most one more; "
        "2 blocks per thread in work",
        **_OF_COLUMNS,
    ),
    _workload(
        "col-gather",
        "ColGather",
        "x[index]",
        "every number equals the one in its place, exactly, looked up in blocks that are drawn again",
        held=_gather_held,
        held_text="size × 8 B / workers and 2 blocks per thread; second_size × 8 B for the index, the result, "
        "and a part of it per block of x",
        params={
            "size": LENGTH,
            "second_size": Param("count", 10_000, "places to gather, random", original="-2 1000"),
            "chunk": CUT,
        },
        counted="(size + second_size) × 8",
        grows=(("size", 1.0), ("second_size", 1.0), ("chunk", 1.0)),
    ),
    _workload(
        "map-overlap",
        "MapOverlap",
        "the mean filter of (2·kernel + 1)² elements",
        "w·y equals the same filter as two means over lines, applied to w and to w·x instead, in every column to 1e-9",
        held=_square(4.0),
        held_text=SQUARE_TEXT.format(4, "the operand, blocks with their neighbours' margins, the result"),
        source="dask_cuda.benchmarks.local_cupy_map_overlap",
        params={
            "size": SIZE,
            "chunk": Param("count", 1000, "rows and columns of one block", original='-c "128 MiB" (a square of 4096²)'),
            "kernel": Param("count", 1, "how many neighbours in each direction take part", original="-k 1"),
        },
    ),
)
