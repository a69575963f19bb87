"""What benchmarks of links and collectives print: OSU, ucx_perftest, ucxx's send_recv, nccl-tests, rapidsmpf.

All are read by one scheme: lines above the rows say what is measured (``_Output``), a row is read by its heading or its
words, and other lines in between are left out. A file may hold the output of several runs.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator
from typing import Any

from gpubench.importers.base import Lines, Refused, Row, Rows, plain_number, positive, printed, whole
from gpubench.model.text import counted


@dataclasses.dataclass
class _Output:
    """The header above the rows of a run, the ``number`` th of its file."""

    number: int = 0
    title: str = ""
    version: str = ""
    columns: list[str] = dataclasses.field(default_factory=list)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    hosts: dict[str, str] = dataclasses.field(default_factory=dict)
    check: str = ""
    device: str | None = None
    reports: list[tuple[int, bool, dict[str, str]]] = dataclasses.field(default_factory=list)


def _row(name: str, line: int, workload: str, seconds: float, run: int | str, **fields: Any) -> Row:
    fields = {"identity": (name, line), **fields}
    return Row(file=name, line=line, workload=workload, wall_s=seconds, run=f"{name}:{run}", **fields)


def _size(size: int | None) -> dict[str, int]:
    return {} if size is None else {"size": size}


# OSU, https://mvapich.cse.ohio-state.edu/benchmarks/. osu_latency, osu_bw and the collectives print one mean per size;
# of a bandwidth (10^6 bytes per second) the figure is seconds per message, size over bandwidth. Columns are read by the
# heading, because -f, -c and newer releases add some.

_TITLE = re.compile(r"^#\s*(OSU .*?)(?:\s+Test)?(?:\s+v(\d[\w.]*))?\s*$")
_MEMORY = re.compile(r"^#\s*Send Buffer on (\w+) .*Receive Buffer on (\w+)")
_OSU_SETTING = re.compile(r"\[\s*([^:\]]+?):\s*(\d+)\s*\]")
_OSU_WORD = re.compile(r"^#\s*(Datatype|Window creation|Synchronization):\s*(\S.*?)\.?\s*$")
"""One-sided tests print how the window is made and synchronised, newer releases the type of the elements."""
_LATENCY = ("Latency (us)", "Avg Latency(us)", "Avg Lat(us)", "Overall(us)")
_BANDWIDTH = ("Bandwidth (MB/s)", "MB/s")


def _osu(_stem: str, name: str, lines: Lines) -> Rows:
    output = _Output()
    for number, line in lines:
        if found := _TITLE.match(line):
            output = _Output(output.number + 1, found[1], found[2] or "")
        elif found := _MEMORY.match(line):
            output.settings["memory"] = f"{found[1]} to {found[2]}".lower()
            output.device = "cpu" if {found[1], found[2]} == {"HOST"} else "gpu"
        elif found := _OSU_WORD.match(line):
            output.settings[found[1].replace(" ", "_").lower()] = found[2]
        elif line.startswith("#"):
            output.settings.update((key.replace(" ", "_"), int(value)) for key, value in _OSU_SETTING.findall(line))
            heading = re.split(r"\s{2,}", line[1:].strip())
            output.columns = heading if {*_LATENCY, *_BANDWIDTH} & {*heading} else output.columns
        elif line.strip()[:1].isdecimal():
            yield _osu_row(name, number, output, line.split())
    return bool(output.number)


def _osu_row(name: str, line: int, output: _Output, values: list[str]) -> Row | Refused:
    if not output.title:
        return Refused(name, line, "no title '# OSU ... Test' before it")
    if len(output.columns) != len(values):
        return Refused(name, line, f"{counted(len(values), 'field')}, the heading has {len(output.columns)}")
    fields = dict(zip(output.columns, values, strict=True))
    size = int(fields["Size"]) if fields.get("Size", "").isdecimal() else None
    latency = next((positive(fields[one]) for one in _LATENCY if one in fields), None)
    rate = next((positive(fields[one]) for one in _BANDWIDTH if one in fields), None)
    seconds = latency / 1e6 if latency else size / rate / 1e6 if rate and size else None
    if seconds is None or ("Size" in fields and size is None):
        return Refused(name, line, f"no size and time: {' '.join(values)}")
    if fields.get("Validation") == "Fail":
        return Refused(name, line, "its answer was wrong (Validation)")
    return _row(
        name,
        line,
        output.title,
        seconds,
        output.number,
        extra={**fields, "title": output.title, "version": output.version},
        params=output.settings | _size(size),
        device=output.device,
        reps=whole(fields.get("Iterations")),
        bytes=size,
        answer="ok" if fields.get("Validation") == "Pass" else "unchecked",
    )


OSU = printed(
    "what the OSU micro-benchmarks printed",
    _osu,
    "an OSU micro-benchmark: no line '# OSU ... Test'",
    lacks=("date", "UCX", "MPI", "nodes", "processes", "host", "single repetitions", "their count, except with -f"),
    caution="a row is one mean; where processes ran (one node or two) is not recorded",
)


# ucx_perftest prints reports while it runs, and the figures of the whole run in the line "Final:". The figure is
# "overall", the arithmetic mean over all iterations, in seconds. In a latency test it is half a round trip; in a
# bandwidth test it is the time per message, of which the sender's completion is the end. MB are 2^20 bytes. Before
# UCX 1.11 there is no "Final:": the last line is the result. The server prints which test it is and the size of
# messages, the client the figures: a file that holds both says more than the client's alone.

_BOX = re.compile(r"^\|\s*([A-Z][A-Za-z ]+?):\s*(.*?)\s*\|$")
_PERFTEST_HEADING = re.compile(r"\|\s*(latency|overhead) \(usec\)\s*\|")
_PERFTEST_FIGURES = re.compile(r"^\s*(?:\[thread \d+\]|(Final:))?\s*(\d+)((?:\s+\S+){7})\s*$")
_NAMES = ("p50_us", "average_us", "overall_us", "average_mb_s", "overall_mb_s", "average_msg_s", "overall_msg_s")
_PERFTEST_PARAMS = ("API", "Data layout", "Send memory", "Recv memory", "Window size")


def _perftest(_stem: str, name: str, lines: Lines) -> Rows:
    runs: list[_Output] = []
    for number, line in lines:
        box, heading = _BOX.match(line), _PERFTEST_HEADING.search(line)
        figures = _PERFTEST_FIGURES.match(line)
        if (box and box[1] == "API") or (heading and (not runs or runs[-1].title)):
            runs.append(_Output(len(runs) + 1))
        if box and runs:
            runs[-1].settings[box[1]] = box[2]
        elif heading:
            runs[-1].title = heading[1]
        elif runs and "# iterations" in line:
            runs[-1].check = "Stage" if "Stage" in line else ""
        elif figures and runs and runs[-1].title:
            values = dict(zip(_NAMES, figures[3].split(), strict=True))
            runs[-1].reports.append((number, bool(figures[1]), {"iterations": figures[2], **values}))
    for run in runs:
        yield _perftest_row(name, run)
    return bool(runs)


def _perftest_row(name: str, run: _Output) -> Row | Refused:
    if not run.reports:
        why = "no figures: the client prints them, this may be the server's output"
        return Refused(name, 1, f"run {run.number} has {why}")
    line, final, figures = run.reports[-1]
    if run.check and not final:
        return Refused(name, line, f"run {run.number} ends before 'Final:'")
    seconds, reps = positive(figures["overall_us"]), whole(figures["iterations"])
    if seconds is None or reps is None:
        return Refused(name, line, f"unreadable: {' '.join(figures.values())}")
    box = run.settings
    size = whole(box.get("Message size"))
    memory = {box[key] for key in ("Send memory", "Recv memory") if key in box}
    return _row(
        name,
        line,
        f"ucx_perftest: {box.get('Test', run.title)}",
        seconds / 1e6,
        run.number,
        extra={**box, **figures, "heading": run.title, "reports": [one for _, _, one in run.reports[:-1]]},
        params={key.lower().replace(" ", "_"): box[key] for key in _PERFTEST_PARAMS if key in box} | _size(size),
        device=None if not memory else "cpu" if memory == {"host"} else "gpu",
        reps=reps,
        bytes=size,
    )


UCX_PERFTEST = printed(
    "what ucx_perftest printed",
    _perftest,
    "ucx_perftest: no table with 'latency (usec)' or 'overhead (usec)'",
    lacks=(
        "date",
        "UCX version",
        "transport",
        "hosts",
        "single repetitions",
        "test and size, except in the server's output",
    ),
    caution="bandwidth counts the sender's completion, not the arrival of the last message",
)


# python -m ucxx.benchmarks.send_recv prints its settings, a summary, and a line per iteration. The figure is the
# latency, half of a round trip. With --no-detailed-report there is the average only. The size of messages is rounded to
# three digits, so that it is a parameter, and no count of bytes.

_UCXX_BEGIN = "Roundtrip benchmark"
_PAIR = re.compile(r"^([^|]+?)\s*\| (.*?)\s*$")
_ITERATION = re.compile(r"^(\d+)\s*\| [\d.]+ \w+/s, (\d+) ?ns\s*$")
_AVERAGE = re.compile(r"^(\d+) ns$")
_NO_PARAMETER = ("Iterations", "Device(s)", "Server CPU", "Client CPU", "Backend")


def _ucxx(_stem: str, name: str, lines: Lines) -> Rows:
    begins = [at for at, (_, line) in enumerate(lines) if line.strip() == _UCXX_BEGIN]
    for run, (begin, end) in enumerate(itertools.pairwise([*begins, len(lines)]), start=1):
        yield from _ucxx_rows(name, lines[begin:end], run)
    return bool(begins)


def _ucxx_rows(name: str, lines: Lines, run: int) -> Iterator[Row | Refused]:
    first = lines[0][0]
    settings: dict[str, str] = {}
    times: list[tuple[int, int | None, int | None, str]] = []
    for line, text in lines:
        if one := _ITERATION.match(text):
            times.append((line, int(one[1]), 1, one[2]))
        elif pair := _PAIR.match(text):
            settings.setdefault(pair[1], pair[2])
    wanted = whole(settings.get("Iterations"))
    if times and len(times) != wanted:
        yield Refused(name, times[-1][0], f"{len(times)} of {wanted} iterations: the output is cut off; they are kept")
    if not times and (average := _AVERAGE.match(settings.get("Latency (average)", ""))):
        line = next(at for at, text in lines if text.startswith("Latency (average)"))
        times = [(line, None, wanted, average[1])]
    if not times:
        yield Refused(name, first, "neither iterations nor 'Latency (average)': the output is cut off")
    params = {
        key.lower().replace(" ", "_"): value
        for key, value in settings.items()
        if key not in _NO_PARAMETER and not key.startswith(("Bandwidth (", "Latency ("))
    }
    for line, rep, reps, text in times:
        seconds = positive(text)
        if seconds is None:
            yield Refused(name, line, f"{text} ns is no time")
            continue
        yield _row(
            name,
            line,
            "ucxx send_recv",
            seconds / 1e9,
            run,
            extra={**settings, "latency_ns": text},
            backend=settings.get("Backend"),
            params=params,
            device="cpu" if settings.get("Device(s)") == "CPU-only" else "gpu" if "Device(s)" in settings else None,
            rep=rep,
            reps=reps,
        )


UCXX = printed(
    "what python -m ucxx.benchmarks.send_recv printed",
    _ucxx,
    f"ucxx.benchmarks.send_recv: no line '{_UCXX_BEGIN}'",
    lacks=("date", "UCX and ucxx versions", "hosts", "exact message size", "transport, except if UCX_TLS was printed"),
    caution="iterations of one process are not independent: they give one figure per date, whatever their number",
)


# nccl-tests, https://github.com/NVIDIA/nccl-tests, print settings, the GPUs of all ranks, and a row per size with the
# times of two arrangements. Times are microseconds per operation, means over "iters". Out-of-place and in-place are two
# cells. The test is named in newer releases only ("# Collective test starting:"); else by the file.

_NCCL_BEGINS = ("# nThread", "# nccl-tests version", "# Collective test starting")
"""One of these is above the rows of a run."""
_NCCL_SETTING = re.compile(r"([A-Za-z]+(?: iters)?):? (\d+)")
_NCCL_VERSION = re.compile(r"^# nccl-tests version (\S+)(?:.*nccl-library=(\S+))?")
_NCCL_TEST = re.compile(r"^# Collective test starting: (\S+)")
_RANK = re.compile(r"^#\s+Rank\s+(\d+)\s.*?\bon\s+(\S+)\s+device")
_NCCL_HEADING = re.compile(r"^#\s+size\s+count\s+type\s+(.*?)\s*time\s+algbw\s+busbw\s+(\S+)")
_UNCHECKED = "N/A"
_PLACES = ("out-of-place", "in-place")
_NCCL_FIGURES = ("time_us", "algbw_gb_s", "busbw_gb_s", "check")
_COUNT_OF_WRONG = "#wrong"
"""What the last column is called; in older releases it is a deviation, which says of no answer that it is wrong."""


def _nccl(stem: str, name: str, lines: Lines) -> Rows:
    output = _Output(title=stem)
    for number, line in lines:
        if output.columns and line.startswith(_NCCL_BEGINS):
            output = _Output(output.number, stem)
        if found := _NCCL_VERSION.match(line):
            output.settings |= {"version": found[1], "nccl": found[2] or ""}
        elif line.startswith("# nThread"):
            output.settings |= dict(_NCCL_SETTING.findall(line))
        elif found := _NCCL_TEST.match(line):
            output.title = found[1]
        elif found := _RANK.match(line):
            output.hosts[found[1]] = found[2]
        elif found := _NCCL_HEADING.match(line):
            output.columns, output.check = ["size", "count", "type", *found[1].split()], found[2]
            output.number += 1
        elif line.strip()[:1].isdecimal():
            yield from _nccl_rows(name, number, output, line.split())
    return bool(output.number)


def _nccl_rows(name: str, line: int, output: _Output, values: list[str]) -> Iterator[Row | Refused]:
    expected = len(output.columns) + len(_PLACES) * len(_NCCL_FIGURES)
    if len(values) != expected or not output.columns or not values[0].isdecimal():
        why = (
            f"{counted(len(values), 'field')}, the heading has {expected}" if output.columns else "no heading before it"
        )
        yield Refused(name, line, why)
        return
    about = dict(zip(output.columns, values, strict=False))
    size = int(about["size"])
    params = {key: about[key] for key in output.columns if key not in ("size", "count")}
    for at, place in enumerate(_PLACES):
        first = len(output.columns) + at * len(_NCCL_FIGURES)
        figures = dict(zip(_NCCL_FIGURES, values[first : first + len(_NCCL_FIGURES)], strict=True))
        seconds = positive(figures["time_us"])
        wrong = figures["check"] if output.check == _COUNT_OF_WRONG else _UNCHECKED
        if seconds is None:
            yield Refused(name, line, f"{place}: time '{figures['time_us']}' is none")
        elif wrong not in ("0", _UNCHECKED):
            yield Refused(name, line, f"{place}: its answer was wrong (#wrong {wrong})")
        else:
            yield _row(
                name,
                line,
                f"nccl-tests: {output.title}",
                seconds / 1e6,
                output.number,
                extra={**output.settings, **about, **figures, "ranks": output.hosts},
                identity=(name, line, place),
                params={**params, "size": size, "place": place},
                workers=len(output.hosts) or None,
                nodes=len(set(output.hosts.values())) or None,
                device="gpu",
                reps=whole(output.settings.get("iters")),
                bytes=size,
                answer="unchecked" if wrong == _UNCHECKED else "ok",
            )


NCCL_TESTS = printed(
    "what nccl-tests printed",
    _nccl,
    "nccl-tests: no heading 'size count type'",
    lacks=(
        "date",
        "UCX",
        "transport",
        "single repetitions",
        "test, except in newer releases",
        "NCCL, except in newer releases",
    ),
    caution="a row is one mean of its iterations, measured after those of smaller sizes in one process",
)


# rapidsmpf's bench_comm and bench_shuffle print at the end: means: 3.09 sec | ... | nranks: 8
# (https://github.com/rapidsai/rapidsmpf/issues/698). The seconds are the mean over the runs of one start. The line
# doesn't name the benchmark: the file does.

_MEANS = "means:"
_RANKS = "nranks"
_RATES = ("/s", "/sec")


def _rapidsmpf(stem: str, name: str, lines: Lines) -> Rows:
    results = [(number, line) for number, line in lines if line.strip().startswith(_MEANS)]
    for number, line in results:
        pairs = (part.partition(":") for part in line.split("|"))
        fields = {key.strip(): value.strip() for key, colon, value in pairs if colon}
        words = fields["means"].split()
        seconds = positive(words[0]) if words[1:] == ["sec"] else None
        if seconds is None:
            yield Refused(name, number, f"means '{fields['means']}' are no seconds")
            continue
        params = {
            key: plain_number(value)
            for key, value in fields.items()
            if key not in ("means", _RANKS) and not value.endswith(_RATES)
        }
        workers = whole(fields.get(_RANKS))
        about = {"extra": fields, "params": params, "workers": workers, "reps": None}
        yield _row(name, number, f"rapidsmpf: {stem}", seconds, number, **about)
    return bool(results)


RAPIDSMPF = printed(
    "the lines of results of rapidsmpf's bench_comm and bench_shuffle",
    _rapidsmpf,
    f"a rapidsmpf benchmark: no line '{_MEANS} ... sec | ...'",
    lacks=(
        "date",
        "UCX",
        "nodes",
        "hosts",
        "benchmark, except in the file's name",
        "count of repetitions",
        "single ones",
    ),
    caution="the mean is over ranks and runs: a slow rank can't be told from a slow run",
)
