"""Bad input and a bad machine: one clear line, the documented exit code, nothing half-written."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpubench.model.text import visible
from tests import in_process
from tests.cli.campaigns import words, write_suite
from tests.conftest import GPUBENCH, ROOT, Run, need, own_queue, plain_environment

CPUS = len(os.sched_getaffinity(0))
CAMPAIGN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The only line on standard error."""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("gpubench: ")
    assert "Traceback" not in done.stdout + done.stderr
    return lines[0]


TWO = "--points 'a=1.22.0 b=1.22.0'"
WRONG: list[tuple[str, int, str]] = [
    ("bench --suite quik", 2, "no suite 'quik' (did you mean 'quick'?)"),
    ("bench --site locl", 2, "no site 'locl' (did you mean 'local'?)"),
    ("bench --ucx 1.16.0", 2, "a comparison needs two variants at least"),
    ("bench --ucx '1.16.0 1.16.0'", 2, "variant '1.16.0' is given twice"),
    ("bench --ucx '1.16.0 9.9.9'", 2, "9.9.9"),
    ("bench --ucx '1.16.0 v1.14.x'", 6, "v1.14.x"),
    ("bench --ucx '1.16.0 1.17.0' --variants 'a=1.16.0 b=1.17.0'", 2, "exclude each other"),
    ("bench --nodes two", 2, "--nodes 'two' is no list of counts"),
    ("bench --budget 10", 2, "--budget: '10' is not a duration"),
    ("bench --budget 10s", 6, "a budget of 10s holds"),
    ("bench --margin 3", 2, "--margin: '3' is not a percentage"),
    ("bench --nodes 1000000000", 6, "1000000000 nodes are more than any cluster has"),
    (f"bench --nodes {'9' * 5000}", 2, "is no list of counts"),
    ("bench --nodes ²", 2, "--nodes '²' is no list of counts"),
    ("bench --workers 1000000000", 6, "more than any node can run"),
    ("bench --budget 9999999d", 2, "--budget: '9999999d' is more than a year"),
    ("bench --margin 99999%", 2, "--margin: '99999%' is more than tenfold"),
    ("bench --set 'interface=a\nb'", 6, "interface 'a\\u000ab' can't be the name of a network device"),
    ("bench --set layout.workers=1e9", 6, "more than any node can run"),
    ("bench --set layout.memory=24B", 6, "2 workers per node have 12 B each"),
    ("bench --variants 'a\x1b[31m=1.22.0 b=1.22.0'", 2, "variant 'a\\u001b[31m=1.22.0' holds a control character"),
    ("bench --protocol ucx --variants 'a=1.22.0 b=1.22.0,UCX_TSL=tcp'", 2, "no known UCX reads UCX_TSL (did you mean"),
    ("plan --variants 'a=1.22.0 b=1.22.0,GPUBENCH_SLOW=5'", 2, "GPUBENCH_SLOW=5 is no percentage up to 1000%"),
    ("plan --ucx '1.20.0 1.22.0'", 6, "on 1 node nothing can be compared: the baseline 1.20.0 is skipped"),
    ("bench --protocol udp", 2, "no protocol 'udp'"),
    ("bench --set layout.worker=3", 2, "unknown key 'layout.worker' (did you mean 'workers'?)"),
    ("bench --set limits.start=20", 2, "'limits.start' = 20: a quantity needs its unit"),
    ("bench --set launcher=srun", 6, "don't go together"),
    ("bench --blocks +2", 2, "--blocks +2 needs a campaign; name it: gpubench bench --campaign DIR"),
    ("bench --campaign c --dry-run", 2, "what is missing: gpubench status c"),
    (
        "bench --campaign c --blocks 2",
        2,
        "c is planned already, and a new plan alone takes --blocks; leave it out; gpubench bench --campaign DIR "
        "--blocks +N adds N blocks",
    ),
    ("bench --campaign c --over-budget", 2, "--over-budget needs a budget; add --budget"),
    ("bench --dry-run --fail-on regression", 2, "--fail-on needs verdicts, and --dry-run makes none"),
    ("plan c --nodes 2", 2, "c is planned already, and a new plan alone takes --nodes; leave it out"),
    ("plan --images", 2, "--images needs a directory for the campaign; add --out DIR"),
    ("plan c --out d", 2, "c is planned already; its scripts again: gpubench plan --out c"),
    ("plan --blocks +2", 2, "--blocks +2 needs a campaign"),
    ("plan --out d --json", 2, "--json prints a plan, and --out writes it: d/plan.json; leave --json out"),
    ("plan --blocks 0", 2, "--blocks '0' is no count from 1 to "),
    ("plan --blocks two", 2, "--blocks 'two' is no count from 1 to "),
    ("plan --margin 0%", 2, "give one above 0 % and below 100 %, like 3%"),
    ("plan --margin 100%", 2, "give one above 0 % and below 100 %, like 3%"),
    ("plan --suite verify --set defaults.margin=150%", 2, "give one above 0 % and below 100 %, like 3%"),
    ("plan --workers '1 two'", 2, """--workers '1 two' is no list of counts; write it like --workers "1 2 4\""""),
    ("plan --date 20221332 --out d", 2, "--date '20221332' is no date"),
    ("plan --site draco --with dask==2025.5.1", 2, "on site draco, images of kind squashfs have one stack"),
    ("plan --site draco --variants 'a=v1.12.x b=v1.12.x,dask==2025.5.1'", 2, "gpubench images build --stack NAME"),
    ("plan --site draco --variants 'a=v1.12.x b=v1.12.x,stack=ucx-py-0.29'", 2, "=ucx-py-0.29': on site draco, "),
    ("plan --site latin.toml", 2, "latin.toml is not TOML: its byte 30 is no UTF-8; save it as UTF-8"),
    ("plan --site number.toml", 2, "number.toml:1: 'inherits' = 3: write the name or path of one profile"),
    ("plan --site nameless.toml", 2, "nameless.toml: key 'name' is missing"),
    ("plan --suite latin.toml", 2, "latin.toml is not TOML: its byte 30 is no UTF-8; save it as UTF-8"),
    ("plan --set known_issues=latin.toml", 2, "latin.toml is not TOML: its byte 30 is no UTF-8"),
    (
        "bench --set 'paths.outputs=$NOT_SET/x'",
        2,
        "$NOT_SET isn't set here; set it, or give the path",
    ),
    ("submit c --nodes 2", 2, "c is planned already"),
    ("submit --here --nodes 1", 2, "site local runs its jobs on this machine, without an allocation; leave --here out"),
    ("submit --campaign c --here", 2, "--campaign excludes CAMPAIGN and --here; leave CAMPAIGN and --here out"),
    ("submit c --campaign c", 2, "--campaign excludes CAMPAIGN and --here; leave CAMPAIGN and --here out"),
    ("submit --campaign outputs/tiny/nothing", 2, "outputs/tiny/nothing is no campaign"),
    ("measure mrege", 2, "no workload 'mrege' (did you mean 'merge'?)"),
    ("measure merge --set rows_per_worker", 2, "write it like --set rows_per_worker=..."),
    ("measure merge --set rows_per_worker=1.5", 2, "merge.rows_per_worker = 1.5: not a whole number"),
    ("measure merge --set limits.wrkload=3s", 2, "unknown key 'limits.wrkload' (did you mean 'workload'?)"),
    ("measure merge --size tiny", 2, "no --size 'tiny'"),
    ("measure merge --warmup 9999999", 2, "not between 0 and 1 000 000"),
    (f"measure merge --cpus {CPUS + 1}", 2, f"lets us use {CPUS}; --cpus {CPUS}, or --workers {CPUS + 1}"),
    ("measure merge --cpus 1 --threads 2", 2, "is no multiple of 2, the threads of a worker"),
    ("measure merge --cpus 1 --workers 2", 2, "exclude each other"),
    ("measure merge --gpus 9 --site draco", 2, "a node of draco has 8; --gpus 8"),
    ("measure mine.py:totl", 2, "mine.py: no function or class 'totl' (did you mean 'total'?)"),
    ("measure mine.py", 2, "mine.py: which function or class? (there is: divide, total)"),
    ("measure none.py:total", 2, "can't read none.py: No such file or directory"),
    ("measure mine.py:divide", 2, "mine.py:4: divide is called with (client, params), and takes (number)"),
    ("measure mine.py:total --backend parsl", 2, "mine.py:total has no backend 'parsl'"),
    ("suites list mrege", 2, "no suite and no workload 'mrege' (did you mean 'merge'?)"),
    ("compare outputs/tiny --by nodes", 2, "--by is for tables of samples"),
    ("compare outputs/tiny --json --markdown", 2, "--json and --markdown exclude each other"),
    ("compare import --allow kernel", 2, "--allow: an import doesn't record its environment"),
    ("compare import outputs/tiny --allow kernel", 2, "--allow: two targets are compared without a check of their"),
    ("compare a.csv --allow kernel", 2, "--allow: a table doesn't record its environment"),
    ("report outputs/tiny --json", 2, "--json prints one section; name it with --only"),
    ("report outputs/tiny --only runs --svg x", 2, "--only and --markdown print"),
    ("report outputs/tiny --html x.html", 2, "--html is for two targets"),
    ("report outputs/tiny --margin 3%", 2, "are for two targets; name a second target, or"),
    ("report outputs/tiny outputs/tiny/runs", 2, "outputs/tiny is named twice"),
    ("report import --only runs", 2, "is an import: this needs runs, which"),
    ("status import", 2, "is an import: this needs runs, which"),
    ("logs import", 2, "is an import: this needs runs, which"),
    ("results export mlflow import", 2, "is an import: this needs runs, which"),
    ("results import draco x.csv --out d", 2, "draco-csv"),
    ("results import draco-csv mine.py --out d", 3, "mine.py:1"),
    ("trend import --json --html x.html", 2, "--json prints, --html and --svg write files; choose one"),
    (
        "plan --variants 'a=1.22.0 b=1.22.0,GPUBENCH_SLOWW=9%'",
        2,
        "reads GPUBENCH_SLOWW (did you mean 'GPUBENCH_SLOW'?)",
    ),
    (
        "plan --suite tasks --ucx '1.19.0 1.22.0' --set limits.workload=10s",
        6,
        "tasks with target = 5.0s takes 20s, 3 repetitions and 1 to warm up, and one workload of a run gets 10s; lower "
        "target or reps, or --set limits.workload=1m",
    ),
    ("compare times.csv", 3, "name yours: --columns variant=build,wall_s=COLUMN"),
    ("compare alone.csv", 3, "alone.csv has 1 variant (a); a comparison needs two"),
    ("compare alone.csv --candidate a", 3, "alone.csv has 1 variant (a); a comparison needs two"),
    ("compare nobody.csv", 3, "nobody.csv has 0 variants; a comparison needs two"),
    ("compare ms.csv", 3, "name yours: --columns variant=build,wall_ms=join_ms"),
    ("compare capitals.csv", 3, "name yours: --columns variant=Variant,wall_s=Wall_s,block=Block"),
    ("compare blanks.csv", 3, "its header reads 'variant, block, wall_s'; remove the blanks beside its commas"),
    ("compare runless.csv", 3, "numbers repetitions in column rep, and has no column run; add one"),
    ("compare times.csv --columns variant=build,wall_s=took", 2, "--columns: the table has no column 'took'"),
    ("compare times.csv --columns variant=build,seconds", 2, "--columns: 'seconds' is no FIELD=COLUMN"),
    ("compare times.csv --columns variant=build,variant=seconds", 2, "names a field twice"),
    ("compare times.csv --columns variant=build,who=seconds", 2, "--columns: no field 'who'"),
    ("compare times.csv --columns wall_s=join_ms", 2, "is in ms; write wall_ms=join_ms"),
    ("compare times.csv --columns wall_s=join_ns", 2, "is in ns; add a column of seconds"),
    ("compare times.csv --columns wall_s=rate", 2, "holds a rate, of which more is better; add a column of seconds"),
    ("compare times.csv --columns wall_s=seconds,wall_ms=join_ms", 2, "several columns of times"),
    ("bisect nowhere", 2, "nowhere"),
    ("bisect --variants '1.17.0 1.19.0'", 2, "two variants need --over; add --over versions"),
    ("bisect x --variants '1.17.0 1.19.0' --over settings", 2, "x has its own variants; leave out"),
    (f"bisect x {TWO}", 2, "--points are those of a new search; leave --over and the directory out"),
    ("bisect --ucx 1.17.0 --variants '1.18.0 1.19.0'", 2, "--ucx and --variants exclude each other"),
    ("bisect --points a=1.22.0", 2, "a search needs two points at least; for example --points"),
    (f"bisect {TWO} --blocks 4", 2, "--blocks: a search chooses points and blocks itself"),
    (f"bisect {TWO} --nodes '1 2'", 2, "a search has one number of nodes and of workers"),
    (f"bisect {TWO}", 2, "suite quick has 4 workloads; --workload merge, or another"),
    (f"bisect {TWO} --workload mrge", 2, "suite quick has no workload 'mrge'"),
    ("bisect --points 'a=1.22.0 b=1.99.0' --workload merge", 2, "1.99.0"),
    (
        "bisect --variants '1.16.0 1.17.0 1.18.0' --over settings --workload merge",
        2,
        "needs two ends, and --variants has 3",
    ),
    ("bisect --variants 'a=1.16.0 b=1.16.0' --over settings --workload merge", 2, "the same"),
    ("bisect --variants 'last=1.16.0 1.17.0' --over settings --workload merge", 2, "label 'last' is the search's own"),
    (
        "bisect --variants '1.22.0 1.22.0,nothing==1.0' --over packages --workload merge",
        2,
        "holds no package 'nothing'",
    ),
    ("bisect --variants '1.22.0 1.22.0,ucxx-cu12==1.0' --over packages --workload merge", 2, "belongs to the binding"),
    ("diff outputs/tiny outputs/tiny/runs", 2, "is named twice"),
    ("diff outputs/tiny import", 2, "is an import: this needs runs"),
    ("diff a", 2, "'a' is no campaign, and nothing is named to compare it with"),
    ("diff zzz zzz outputs/tiny", 2, "no run 'zzz'"),
    ("diff '' 1 outputs/tiny", 2, "no run ''"),
    ("diff a bb outputs/tiny", 2, "no variant 'bb' (did you mean 'b'?)"),
    ("images build 1.22.0 --runtime venv --stack ucxx-0.52.0", 2, "write 1.22.0,stack=ucxx-0.52.0, here and as a var"),
    ("images build 1.22.0 --runtime venv --date 20260101", 2, "images of kind venv have no date"),
    ("images build 1.16.0 --push", 2, "--set image.registry=HOST/NAME"),
    ("images build 1.3.0 --out files", 6, "1.3.0"),
    ("images build 1.8.0 --site summit --push", 2, "are on a file system and aren't pushed; leave --push out"),
    ("images build 1.8.0 --site summit --stack ucxx-0.45.1", 2, "--stack is for packages that gpubench installs"),
    ("images build 1.8.0 --site summit --set image.modules=[]", 2, "names neither modules nor a prefix"),
    ("images build none --site deepops --push", 2, "are on a file system and aren't pushed; leave --push out"),
    ("images push", 2, "--set image.registry=HOST/NAME"),
    ("images list --registry", 2, "--set image.registry=HOST/NAME"),
    ("images push 1.16.0 --set image.registry=localhost:1/x", 2, "images.lock.toml has no image 1.16.0 for site local"),
    ("cluster verify mine --scheduler-file x.json", 2, "NAME and --scheduler-file exclude each other"),
    ("cluster affinity", 2, "no cluster is running in outputs/clusters; gpubench cluster start"),
    ("images import --site draco", 2, "build --push --site draco --set image.registry=HOST/NAME"),
    ("images import 1.16.0", 2, "images.lock.toml has no image 1.16.0 for site local; build it: gpubench images build"),
    ("sites new a/b --scheduler slurm --runtime pyxis", 2, "'a/b': no name"),
    ("sites new mine --scheduler slrum --runtime pyxis", 2, "no scheduler 'slrum' (did you mean 'slurm'?)"),
    ("sites new mine --scheduler lsf --runtime docker", 6, "lsf + docker don't go together; they go together:"),
    ("sites new latin --scheduler local --runtime venv", 2, "latin.toml exists already"),
    ("sites list kubernetes --set 'kubernetes.tolerations=[{operator=\"Sometimes\"}]'", 2, "tolerations.0.operator'"),
    ("sites list kubernetes --set kubernetes.port=80", 2, "'kubernetes.port' = 80"),
    ("sites list kubernetes --set kubernetes.claims=x", 2, "unknown key 'kubernetes.claims'"),
    ("sites list kubernetes --set 'kubernetes.runtime_class=Not One'", 2, "'kubernetes.runtime_class' = "),
    ('sites list kubernetes --set \'kubernetes.labels={"app.kubernetes.io/name"="x"}\'', 2, "'kubernetes.labels' = "),
    ("sites list kubernetes --set 'kubernetes.labels={team=\"{x: y}\"}'", 2, "'kubernetes.labels.team' = "),
    ('sites list kubernetes --set \'kubernetes.annotations={"two words"="x"}\'', 2, "'kubernetes.annotations.two "),
    ("sites list kubernetes --set 'kubernetes.resources={\"rdma/hca\"=0}'", 2, "'kubernetes.resources.rdma/hca' = 0"),
    ("sites list kubernetes --set 'kubernetes.resources={\"memory\"=1}'", 2, "'kubernetes.resources.memory."),
    ("sites list kubernetes --set 'kubernetes.resources={\"nvidia.com/gpu\"=1}'", 2, "how many is node.gpus"),
    ("sites list kubernetes --set 'kubernetes.namespace=Not One'", 2, "'kubernetes.namespace' = "),
    ("sites list kubernetes --set 'kubernetes.context=\"two\\nlines\"'", 2, "'kubernetes.context' = "),
    ("sites check local --live", 2, "site local has no queue"),
    ("sites check --live", 2, "--live needs the name of a profile"),
    ("sites check draco --nodes 2", 2, "go with --live only"),
    ("sites check draco --live --set node.gpus=1", 2, "8 workers and 1 GPU per node"),
    ("sites check kubernetes --live", 2, "--live starts a script on the nodes, and this site's jobs are no scripts"),
    ("sites clean local --all --nodes 2", 2, "--nodes and --all; give one of them"),
    ("sites clean kubernetes", 2, "this site's jobs are no scripts"),
    ("sites prereqs draco", 6, "runtime pyxis of site draco needs no conda on the nodes"),
    ("cluster start --name ../up", 2, "--name '../up': no name; use letters, digits"),
    ("cluster start --protocol udp", 2, "there is: tcp, tls, ucx"),
    (
        "cluster start --site local-gpu --ucx 1.22.0,UCX_TLS=tcp",
        6,
        "leaves out CUDA, and device = gpu sends GPU",
    ),
    ("cluster start --time soon", 2, "--time"),
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory with a campaign, an import, a table, a workload and a file in another encoding."""
    shutil.copytree(CAMPAIGN, tmp_path / "outputs" / "tiny")
    shutil.copytree(CAMPAIGN.with_name("import"), tmp_path / "import")
    rows = "".join(f"{build},1.5,1500,1.5e9,7,1\n" for build in "abc")
    (tmp_path / "alone.csv").write_text("variant,wall_s,block\na,1,1\na,1,2\n")
    (tmp_path / "nobody.csv").write_text("variant,wall_s,block\n,1,1\n,1,2\n")
    (tmp_path / "times.csv").write_text(f"build,seconds,join_ms,join_ns,rate,block\n{rows}")
    (tmp_path / "ms.csv").write_text("build,join_ms,block\na,1.5,1\nb,1.6,1\n")
    (tmp_path / "capitals.csv").write_text("Variant,Block,Wall_s\na,1,1.5\nb,1,1.6\n")
    (tmp_path / "runless.csv").write_text("variant,block,rep,wall_s\na,1,0,1.5\nb,1,0,1.6\n")
    (tmp_path / "blanks.csv").write_text("variant, block, wall_s\na, 1, 1.5\nb, 1, 1.6\n")
    (tmp_path / "mine.py").write_text("def total(client, params): ...\n\n\ndef divide(number): ...\n")
    (tmp_path / "number.toml").write_text('inherits = 3\nname = "number"\n')
    (tmp_path / "nameless.toml").write_text('inherits = "local"\n')
    (tmp_path / "latin.toml").write_bytes('name = "mine"\ndescription = "für uns"\n'.encode("latin-1"))
    return tmp_path


@pytest.mark.parametrize(("words", "code", "said"), WRONG, ids=lambda value: visible(str(value))[:60])
def test_a_wrong_word_is_named_in_one_line_and_nothing_is_written(here: Path, words: str, code: int, said: str) -> None:
    before = {path: path.lstat().st_mtime_ns for path in here.rglob("*")}
    environment = {**own_queue(here), "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    done = in_process.run(shlex.split(words), here, plain_environment(environment))  # `cluster`, too: nothing starts
    assert (done.returncode, said in one_line(done), done.stdout) == (code, True, ""), done.stderr
    assert {path: path.lstat().st_mtime_ns for path in here.rglob("*")} == before


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "..", "a b", "", "x" * 201])
@pytest.mark.parametrize("option", ["--suite", "--site"])
def test_a_name_in_a_file_is_no_path(gpubench: Run, tmp_path: Path, option: str, name: str) -> None:
    suite = write_suite(tmp_path)
    if option == "--suite":
        suite.write_text(re.sub(r"(?m)^name = .*", f'name = "{name}"', suite.read_text(), count=1))
        more = []
    else:
        (tmp_path / "mine.toml").write_text(f'inherits = "local"\nname = "{name}"\n')
        more = ["--site", "mine.toml"]
    done = gpubench(*words(suite), *more)
    assert done.returncode == 2
    shown = repr(name) if len(name) < 100 else f"{repr(name)[:99]}…"
    assert f"'name' = {shown}: no name; use letters, digits" in one_line(done)
    assert {path.name for path in tmp_path.iterdir()} <= {suite.name, "mine.toml"}


def test_a_package_index_that_refuses_is_one_line_and_exit_code_5(gpubench: Run, tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/simple"
    env = {
        "UV_DEFAULT_INDEX": closed,
        "UV_INDEX_URL": closed,
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "UV_NO_CONFIG": "1",
    }
    env |= {"UV_HTTP_RETRIES": "0"}
    images = f"paths.images={tmp_path / 'images'}"
    done = gpubench(*words(write_suite(tmp_path), "--set", images), env=env)
    assert done.returncode == 5, done.stderr
    one_line(done)
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("more", [(), ("--outputs", "outputs/deeper"), ("--budget", "1h")])
def test_outputs_that_are_a_file_are_refused_before_an_image_is_built(
    gpubench: Run, tmp_path: Path, more: tuple[str, ...]
) -> None:
    (tmp_path / "outputs").write_text("")
    suite = write_suite(tmp_path)
    suite.write_text(f"first_pass = true\n{suite.read_text()}")
    before = sorted(tmp_path.iterdir())
    # An index that nobody serves and an empty cache: what is built would fail, and leave something.
    empty = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv"), "UV_OFFLINE": "1"}
    done = gpubench(*words(suite, *more), env=empty)
    assert done.returncode == 2
    assert "outputs is a file" in one_line(done)
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that soon is full."""
    need(os.geteuid() == 0 and shutil.which("mount") is not None, "root and mount, for a small tmpfs")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.integration
def test_a_full_disk_is_one_line_and_leaves_no_half_written_file(
    gpubench: Run, tmp_path: Path, small_disk: Path
) -> None:
    (small_disk / "ballast").write_bytes(b"\0" * (shutil.disk_usage(small_disk).free - 40_000))
    done = gpubench(*words(write_suite(tmp_path), "--outputs", str(small_disk / "outputs")))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "No space left" in one_line(done)
    assert [path for path in small_disk.rglob(".*") if path.is_file()] == []


def process(directory: Path, *words: str | Path, under: Sequence[str] = (), **options: Any) -> Any:
    """A process of its own, started by the words of ``under``; ``options`` are those of ``subprocess.run``."""
    env = plain_environment({**own_queue(directory), **options.pop("env", {})})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 300}
    settings = {"cwd": directory, "env": env, **pipes, **options}
    return subprocess.run([*under, str(GPUBENCH), *map(str, words)], check=False, **settings)


def as_ordinary_user(directory: Path, *words: str | Path, **options: Any) -> Any:
    """Root without its capabilities has an ordinary user's rights, and still reaches a checkout in its home."""
    need(os.geteuid() == 0 and shutil.which("setpriv") is not None, "root and setpriv, to give up root's rights")
    return process(directory, *words, under=["setpriv", "--bounding-set=-all", "--inh-caps=-all"], **options)


def not_mine(directory: Path) -> Path:
    """``directory``, to be read only."""
    os.chown(directory, 65534, 65534)
    directory.chmod(0o555)
    return directory


@pytest.mark.integration
def test_a_user_who_may_not_write_here_is_told_so(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    here = tmp_path / "not-mine"
    here.mkdir()
    done = as_ordinary_user(tmp_path, *words(suite), cwd=not_mine(here))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "outputs" in one_line(done)
    assert "Permission denied" in one_line(done)
    assert list(here.iterdir()) == []


def test_a_colleague_s_campaign_that_may_only_be_read_is_judged_like_ones_own(gpubench: Run, tmp_path: Path) -> None:
    own, other = (Path(shutil.copytree(CAMPAIGN, tmp_path / name / "tiny")) for name in ("own", "other"))
    expected = gpubench("compare", own)
    assert (own / "results.parquet").exists()
    before = sorted(path.name for path in other.iterdir())
    done = as_ordinary_user(tmp_path, "compare", not_mine(other))
    assert (done.returncode, done.stdout.replace("other", "own")) == (expected.returncode, expected.stdout)
    assert f"aren't updated: {other} is read-only" in done.stderr
    assert sorted(path.name for path in other.iterdir()) == before


def test_a_reader_that_has_gone_is_no_bug(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = process(tmp_path, "sites", "list", "draco", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_run_by_hand_without_dask_says_which_python_to_use(gpubench: Run, tmp_path: Path) -> None:
    need(importlib.util.find_spec("dask_cuda") is None, "an environment without dask_cuda")
    done = gpubench("run", "--role", "worker", "--interface", "lo", "--address", "tcp://127.0.0.1:9", "--device", "gpu")
    assert done.returncode == 2
    assert done.stderr.strip() == "gpubench run: this Python has no dask_cuda; use the image's Python"


def test_an_empty_name_is_no_variant(gpubench: Run, here: Path) -> None:
    for option in ("--baseline", "--candidate"):
        assert "has no variant ''" in gpubench("compare", here / "outputs" / "tiny", option, "", code=2).stderr


@pytest.mark.parametrize("name", ["plan.json", "plan.d/001.json"])
def test_a_plan_with_bytes_that_are_no_text_is_damaged(gpubench: Run, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(CAMPAIGN, tmp_path / "tiny"))
    (copy / name).write_bytes((copy / name).read_bytes().replace(b"created", b"cre\xffted", 1))
    done = gpubench("status", copy)
    assert (done.returncode, f"{name} is cut off or not JSON" in one_line(done)) == (3, True)


def test_a_locale_without_an_arrow_is_no_bug(tmp_path: Path) -> None:
    rows = [f"{variant},{block},1.{block}" for block in range(5) for variant in ("old", "für")]
    (tmp_path / "table.csv").write_text("\n".join(["variant,block,wall_s", *rows]) + "\n", encoding="utf-8")
    done = process(tmp_path, "compare", "table.csv", env={"PYTHONIOENCODING": "latin-1"}, text=False)
    assert done.returncode == 21, done.stderr
    assert "für vs old | 1.192 s \\u2192 1.192 s".encode("latin-1") in done.stdout, done.stdout


def test_output_into_a_file_on_a_full_disk_is_no_bug(tmp_path: Path) -> None:
    need(Path("/dev/full").exists(), "/dev/full")
    with Path("/dev/full").open("w") as full:
        done = process(tmp_path, "sites", "list", stdout=full)
    said = "gpubench: can't print any further: No space left on device; free some space there\n"
    assert (done.returncode, done.stderr) == (5, said)


def test_a_terminal_that_is_gone_is_one_line_and_no_bug(tmp_path: Path) -> None:
    ours, terminal = os.openpty()
    os.close(ours)
    done = process(tmp_path, "plan", "--help", stdout=terminal)
    os.close(terminal)
    assert done.returncode == 5
    assert "can't print any further: Input/output error; redirect the output to a file" in done.stderr


def test_closed_streams_are_no_bug_and_no_file_takes_their_place(tmp_path: Path) -> None:
    campaign = shutil.copytree(CAMPAIGN, tmp_path / "campaign")
    script = f"'{GPUBENCH}' compare --fail-on regression '{campaign}' >&- 2>&-"
    done = subprocess.run(["bash", "-c", script], env=plain_environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, "bug" in done.stderr) == (0, False)
    assert (campaign / "results.parquet").read_bytes().startswith(b"PAR1")
    assert json.loads((campaign / "verdicts.json").read_bytes())["cells"]
