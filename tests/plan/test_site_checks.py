"""Every finding of `sites check`, right and wrong."""

import pytest

from gpubench.model.site import NeededTransports, Site
from gpubench.plan.image_checks import check_image
from gpubench.plan.node_checks import check_images, check_nodes, parse_facts
from gpubench.plan.site_checks import check_site
from tests.plan.requests_by_hand import site

BATCH = """
name = "cluster"
scheduler = "slurm"
launcher = "srun"
runtime = "pyxis"
device = "gpu"
interface = "ibp132s0"
[env]
UCX_TLS = "rc"
[layout]
workers = 8
memory = "200GB"
[node]
cores = 16
gpus = 8
memory = "400GB"
[batch]
options = ["--nv-meta=x"]
[container]
mounts = ["/data:/data:ro"]
[image]
fabric = ["verbs"]
[setup]
modules = ["cuda"]
[paths]
shared = ["/scratch"]
[defaults]
nodes = [1, 2]
"""
HOST = """host n1
login secret
interfaces ibp132s0, lo
addresses 10.0.0.1/24 fe80::1/64
gpus 8
memlock unlimited
cores 16
scratch /tmp
fabric rdma_cm, uverbs0
modules gcc/12:cuda/11.2
"""
DRIVER = "driver libcuda.so.1 libnvidia-ml.so.1\n"
INSIDE = f"host n1\nfabric uverbs0\n{DRIVER}ucx cuda_copy/cuda rc_verbs/mlx5_0:1 tcp/ibp132s0\n"


def cluster(old: str = "", new: str = "") -> Site:
    assert old in BATCH
    return Site.load(BATCH.replace(old, new, 1) if old else BATCH, "cluster.toml")


def wrong(found: Site) -> list[str]:
    return [finding.what for finding in check_site(found) if finding.ok is False]


def test_a_right_profile_has_only_right_lines() -> None:
    found = check_site(cluster())
    assert [finding for finding in found if finding.ok is not True] == []
    assert [finding.what for finding in found] == [
        "slurm + srun + pyxis go together",
        "protocol ucx",
        "interface ibp132s0 can be the name of a network device",
        "8 workers x 1 thread = 8 fit into the 16 cores of node.cores",
        "8 workers and 8 GPUs per node, a worker takes one GPU",
        "layout.memory fits into node.memory",
        "scheduler on rank0, client on rank0",
        "batch.warning 2m00s and limits.job 4h00m: the warning comes before the end",
        "default node counts 1, 2: ascending, each once",
        "batch.options: all are options",
        "names of variables",
        "container.mounts",
        "paths.shared: /scratch",
    ]


@pytest.mark.parametrize(
    "group", ["all", "sm", "shm", "mm", "ib", "rc", "rc_v", "rc_x", "ud", "ud_v", "ud_x", "dc", "dc_x", "cuda", "rocm"]
)
def test_a_word_that_stands_for_several_transports_is_none_that_a_run_reports(group: str) -> None:
    (what,) = wrong(cluster('device = "gpu"', f'device = "gpu"\nexpect_transport = ["rc_mlx5", "{group}"]'))
    assert what == f"expect_transport: {group} in UCX_TLS stands for several; name those that ucx_info -d lists"


def test_a_profile_for_gpus_that_asks_for_none_is_told() -> None:
    profile = cluster('device = "gpu"', 'device = "auto"').model_copy()
    site = profile.model_copy(
        update={
            "node": profile.node.model_copy(update={"gpus": 0}),
            "image": profile.image.model_copy(update={"cuda": "12.4"}),
        }
    )
    (unknown,) = (finding.what for finding in check_site(site) if finding.ok is None)
    assert unknown == "image.cuda is set and node.gpus isn't: a job asks for no GPU, and may run on CPUs"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('runtime = "pyxis"', 'runtime = "docker"', "slurm + srun + docker don't go together"),
        ('interface = "ibp132s0"', 'interface = "ib0:1"', "interface 'ib0:1' can't be the name"),
        ('interface = "ibp132s0"', 'interface = ".."', "interface '..' can't be the name"),
        ('interface = "ibp132s0"', 'interface = "enp0s31f6000000x"', "has more than 15 letters"),
        ('device = "gpu"', 'device = "gpu"\nprotocol = "ucxx"', "protocol ucxx: there is tcp, ucx"),
        ("workers = 8", "workers = 8\nthreads = 3", "8 workers x 3 threads = 24 are more than the 16 cores"),
        ("gpus = 8", "gpus = 4", "8 workers and 4 GPUs per node"),
        ("gpus = 8", "", "8 workers and 0 GPUs per node"),
        ('device = "gpu"', 'device = "cpu"', "node.gpus = 8 is asked for"),
        ('memory = "200GB"', 'memory = "500GB"', "layout.memory is more than node.memory"),
        ("[env]", '[limits]\njob = "1m"\n[env]', "batch.warning 2m00s and limits.job 1m00s"),
        ("nodes = [1, 2]", "nodes = [2, 1]", "default node counts 2, 1"),
        ('"--nv-meta=x"', '"nv-meta=x", "--good", "--bad "', "batch.options: nv-meta=x, --bad  is no option"),
        ('UCX_TLS = "rc"', '"UCX-TLS" = "rc"\n"1A" = "x"', "names of variables: env: 'UCX-TLS', env: '1A'"),
        ('"/data:/data:ro"', '"/data"', "container.mounts: not HOST:INSIDE[:ro]: /data"),
        ('"/scratch"', '"scratch"', "paths.shared: scratch is no absolute path"),
    ],
)
def test_one_untruth_is_one_wrong_line(old: str, new: str, message: str) -> None:
    (what,) = wrong(cluster(old, new))
    assert message in what


@pytest.mark.parametrize(
    ("devices", "ok"), [("ibp132s0", True), ("eth0, mlx5_0:1", None), ("mlx5_0:1", "no line"), ("all", "no line")]
)
def test_the_network_of_ucx_is_held_against_that_of_dask(devices: str, ok: bool | str | None) -> None:
    site = cluster('UCX_TLS = "rc"', f'UCX_NET_DEVICES = "{devices}"')
    found = [one for one in check_site(site) if "UCX_NET_DEVICES" in one.what]
    assert [one.ok for one in found] == ([] if ok == "no line" else [ok])
    if ok is None:
        assert "eth0,mlx5_0:1 does not name interface ibp132s0: set both" in found[0].what


def test_what_the_old_form_of_pbs_lacks_is_wrong_and_an_account_that_is_charged_is_asked_for() -> None:
    batch = cluster().batch.model_copy(update={"select": False, "needs_account": True})
    lacks = cluster("cores = 16\n", "").model_copy(update={"batch": batch})
    assert wrong(lacks) == ["site cluster: batch.select = false, and node.cores isn't set; correct the site file"]
    assert [str(one) for one in check_site(lacks) if "batch.account" in one.what] == [
        "not checked: batch.account is empty, and this site charges every job: --set batch.account=NAME"
    ]


def test_an_interface_may_have_fifteen_letters() -> None:
    assert wrong(cluster('"ibp132s0"', '"enp0s31f6000000"')) == []


def test_the_steps_of_the_largest_node_count_are_checked() -> None:
    sets = '[launch]\noptions = ["-n", "2", "-a", "1"]\n[layout]\nworkers = 1\n[node]\ncores = 8\n[defaults]\nnodes = '
    plain = BATCH[: BATCH.index("[env]")].replace("slurm", "lsf").replace("srun", "jsrun").replace("pyxis", "venv")
    found = Site.load(plain.replace('"gpu"', '"cpu"') + sets + "[1, 2, 3]", "cluster.toml")
    assert [what for what in wrong(found) if "resource sets" in what] == [
        "site cluster: 2 resource sets of 1 tasks for 3 nodes: every node has one supervisor, which starts its "
        "workers; leave -n and -a out of launch.options"
    ]


def test_what_cannot_be_known_is_called_unchecked() -> None:
    plain = cluster().model_copy(update={"paths": site().paths, "node": site().node, "device": "auto"})
    assert wrong(plain) == []
    assert [finding.what.split(" ")[0] for finding in check_site(plain) if finding.ok is None] == ["8", "paths.shared"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", ""),
        ("login secret", "login ", "a file of this machine is read on every node: n1 has nothing"),
        ("ibp132s0, lo", "ib0, lo", "interface ibp132s0 is on every node: n1 has ib0, lo"),
        ("addresses 10.0.0.1/24 fe80::1/64", "addresses ", "interface ibp132s0 has an address: n1 has nothing"),
        ("addresses 10.0.0.1/24 fe80::1/64\n", "", "interface ibp132s0 has an address: n1 has nothing"),
        ("gpus 8", "gpus 7", "8 GPUs on every node: n1 has 7"),
        ("memlock unlimited", "memlock 64", "memlock is unlimited, as NICs need it: n1 has 64"),
        ("cores 16", "cores 7", "cores for 8 worker threads: n1 has 7"),
        ("scratch /tmp", "scratch ", "the directory for scratch files can be written on every node: n1 has nothing"),
        ("rdma_cm, uverbs0", "", "NICs in /dev/infiniband on every node: n1 has nothing"),
        ("cuda/11.2", "cudatoolkit", "module cuda is loaded: n1 has gcc/12:cudatoolkit"),
    ],
)
def test_what_a_node_says_is_held_against_the_profile(old: str, new: str, message: str) -> None:
    assert old in HOST
    other = HOST.replace("host n1", "host n2")
    found = list(
        check_nodes(cluster(), 2, [parse_facts(text) for text in (HOST.replace(old, new, 1), other)], "secret")
    )
    assert [finding.what for finding in found if not finding.ok] == ([message] if message else [])


def test_a_node_that_left_nothing_is_missed() -> None:
    assert [str(finding) for finding in check_nodes(cluster(), 2, [], "secret")] == [
        "wrong: srun: 0 of 2 nodes left a file"
    ]
    first = next(check_nodes(cluster(), 2, [parse_facts(HOST)], "secret"))
    assert str(first) == "wrong: srun: 1 of 2 nodes left a file: n1"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (INSIDE, ["ok", "ok", "ok", "ok", "ok"]),
        (INSIDE.replace("uverbs0", ""), ["ok", "wrong", "ok", "ok", "ok"]),
        (INSIDE.replace("rc_verbs", "posix"), ["ok", "ok", "ok", "wrong", "ok"]),
        (INSIDE.replace("rc_verbs", "dc_mlx5"), ["ok", "ok", "ok", "ok", "ok"]),
        (INSIDE.replace("rc_verbs", "ud_verbs"), ["ok", "ok", "ok", "ok", "ok"]),
        (INSIDE.replace(" libcuda.so.1", ""), ["ok", "ok", "wrong", "ok", "ok"]),
        (INSIDE.replace("cuda_copy/cuda ", ""), ["ok", "ok", "ok", "ok", "wrong"]),
        (f"host n1\nfabric uverbs0\n{DRIVER}", ["ok", "ok", "ok", "not checked"]),
    ],
)
def test_inside_the_image_there_must_be_nics_and_a_driver_and_ucx_must_see_both(text: str, lines: list[str]) -> None:
    hosts = [parse_facts(HOST)]
    found = check_images(cluster(), hosts, [parse_facts(text)])
    assert [str(finding).partition(":")[0] for finding in found] == lines


def test_without_a_fabric_ucx_must_see_the_interface() -> None:
    plain = cluster('fabric = ["verbs"]', "").model_copy(update={"device": "cpu"})
    found = list(check_images(plain, [parse_facts(HOST)], [parse_facts(INSIDE)]))
    assert [str(finding) for finding in found][1:] == ["ok: UCX sees tcp/ibp132s0"]
    gone = list(check_images(plain, [parse_facts(HOST)], [parse_facts(INSIDE.replace("tcp/ibp132s0", "tcp/lo"))]))
    assert str(gone[-1]).startswith("wrong: UCX sees tcp/ibp132s0: n1 has cuda_copy/cuda rc_verbs/mlx5_0:1 tcp/lo")


def test_without_an_image_nothing_is_said_of_it() -> None:
    (only,) = check_images(cluster(), [parse_facts(HOST)], None)
    assert str(only).startswith("not checked: what UCX sees")


@pytest.mark.parametrize(
    ("base", "ok", "what"),
    [
        ("debian:12", False, "image.cuda = 12.4, and image.base debian:12 has no CUDA"),
        ("docker.io/library/ubuntu:22.04", False, "has no CUDA"),
        ("nvidia/cuda:12.4.1-devel-ubuntu22.04", True, "has image.cuda = 12.4"),
        ("nvidia/cuda:12.8.1-devel-ubuntu22.04", False, "is newer than image.cuda = 12.4"),
        ("registry.example.org/hpc/base:3", None, "whether image.base registry.example.org/hpc/base:3 has it"),
    ],
)
def test_a_base_without_the_cuda_of_the_profile_is_wrong(base: str, ok: bool | None, what: str) -> None:
    keys = f'fabric = ["verbs"]\ncompute_capability = "8.0"\ncuda = "12.4"\nbase = "{base}"'
    (*_, finding) = check_image(cluster('fabric = ["verbs"]', keys), "docker")
    assert finding.ok is ok
    assert what in finding.what


def test_a_profile_without_gpus_has_any_base_and_modules_bring_their_own_cuda() -> None:
    plain = cluster('device = "gpu"', 'device = "cpu"')
    assert list(check_image(plain, "docker")) == []
    assert list(check_image(cluster(), "modules")) == []


@pytest.mark.parametrize(
    ("kind", "missing"),
    [("docker", "image.cuda, image.compute_capability, image.base"), ("conda", "image.cuda, image.compute_capability")],
)
def test_gpus_without_cuda_in_the_image_are_wrong(kind: str, missing: str) -> None:
    (finding,) = check_image(cluster(), kind)
    assert (finding.ok, finding.what) == (False, f"device = gpu, and {missing} aren't set")
    found = cluster('device = "gpu"', "")
    assert found.device == "auto"
    assert (found.node.gpus, next(iter(check_image(found, kind))).ok) == (8, False)


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"interface": "ibp132s0"}, "interface ibp132s0"),
        ({"interface": "ib0", "env": {"UCX_TLS": "rc,cuda"}}, "interface ib0"),
        ({"interface": "eth0", "env": {"UCX_NET_DEVICES": "mlx5_0:1"}}, "env.UCX_NET_DEVICES mlx5_0:1"),
        ({"interface": "eth0", "env": {}, "expect_transport": ["tcp", "rc_mlx5"]}, "expect_transport rc_mlx5"),
        (
            {"interface": "eth0", "env": {}, "need_transport": NeededTransports(between_nodes=["dc_mlx5"])},
            "need_transport dc_mlx5",
        ),
        ({"interface": "ib0", "env": {"UCX_TLS": "^cuda"}}, "interface ib0"),
        ({"interface": "ib0", "env": {"UCX_TLS": "^rc,ud"}}, "interface ib0"),
        ({"interface": "ib0", "env": {"UCX_TLS": "^ib"}}, ""),
        ({"interface": "ib0", "env": {"UCX_TLS": "^rc_x,rc_v,ud,dc"}}, ""),
        ({"interface": "ib0", "env": {"UCX_TLS": "tcp,cuda_copy"}}, ""),
        ({"interface": "ib0", "protocol": "tcp"}, ""),
        ({"interface": "hsn0", "env": {}}, ""),
    ],
)
def test_a_fast_network_without_verbs_in_the_image_is_wrong_unless_tcp_is_meant(
    settings: dict[str, object], seen: str
) -> None:
    site = cluster('fabric = ["verbs"]', "").model_copy(update={"device": "cpu", **settings})
    found = list(check_image(site, "squashfs"))
    assert [one.ok for one in found] == ([False] if seen else [])
    assert not seen or found[0].what.startswith(f"{seen} is InfiniBand or RoCE, and image.fabric is empty")


@pytest.mark.parametrize(
    ("scratch", "said"), [("/scratch/spill", True), ("/scratch", True), ("/scratches", False), ("/tmp", False)]
)
def test_a_scratch_that_all_nodes_share_is_remarked(scratch: str, said: bool) -> None:
    text = BATCH.replace('shared = ["/scratch"]', f'shared = ["/scratch"]\nscratch = "{scratch}"')
    found = [(one.ok, one.what) for one in check_site(Site.load(text, "bench.toml"))]
    line = f"paths.scratch {scratch} lies below /scratch of paths.shared: workers spill to a shared file system"
    assert ((None, line) in found) is said
