"""A site profile: everything that a machine fixes, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

import pydantic

from gpubench.errors import UsageError, joined
from gpubench.model.base import Line, Part, Settings, between, with_nul
from gpubench.model.bounds import MOST_BLOCKS
from gpubench.model.quantities import MOST_SECONDS, Bytes, Fraction, MemoryPool, Seconds
from gpubench.model.secrets import holds_login, password_in

Parts = Annotated[int, between(0, 1_000_000)]
"""Of a node: cores, GPUs, devices of any kind."""
Wait = Annotated[Seconds, between(0.001, MOST_SECONDS)]
"""A time limit; nothing is done in no time."""
LONGEST_WARNING = 65_535
"""Seconds: the longest that Slurm takes."""


class Layout(Settings):
    """Processes per node.

    ``memory`` is what all workers of a node may use together; unset: half of the node's. ``one_machine`` says that all
    nodes of a job are this one machine, so that they share its cores and its memory. ``rmm_pool`` is the size of every
    GPU worker's memory pool (RMM), ``none``, or ``default``: whatever the image has, recorded only.

    ``scheduler`` and ``client`` say where these run: on ``rank0`` beside its workers, or on the ``launch-node``, where
    the job's script runs and no worker; the scheduler may also have an ``own-set`` of resources, a core of one node.

    ``arrangement`` says how a block runs its variants: ``sequential``, one cluster after the other, or ``interleaved``:
    all clusters live at the same time, their repetitions take turns, and those that wait are stopped. ``auto``:
    interleaved where clusters can take turns and their workers fit into the node's memory.

    ``waiting`` says how processes wait for messages. ``default``: as Dask's way to UCX does on its own, by polling, so
    that scheduler, workers and client take a core each also when they have nothing to do. ``event``: they sleep.
    ``auto``: they sleep where the binding can do it.
    """

    workers: int = pydantic.Field(ge=1)
    threads: int = pydantic.Field(default=1, ge=1)
    memory: Bytes | None = None
    one_machine: bool = False
    rmm_pool: MemoryPool = "default"
    scheduler: Literal["rank0", "launch-node", "own-set"] = "rank0"
    client: Literal["rank0", "launch-node"] = "rank0"
    arrangement: Literal["auto", "sequential", "interleaved"] = "sequential"
    waiting: Literal["auto", "default", "event"] = "default"


class Node(Settings):
    """What a job asks for on each node: cores, GPUs, memory; 0 or unset: nothing is asked for.

    ``gpu_memory`` is what one GPU has: a workload that needs more is refused at plan. Unset: not checked.
    """

    cores: Parts = pydantic.Field(default=0, ge=0)
    gpus: Parts = pydantic.Field(default=0, ge=0)
    memory: Bytes | None = None
    gpu_memory: Bytes | None = None


class Batch(Settings):
    """What the site's scheduler wants to be told.

    Args:
        queue: partition or queue.
        account: that is charged.
        qos: quality of service.
        constraint: features that the nodes must have.
        options: further directives, written as they stand (``--exclusive``).
        warning: how long before the job's end it is told, so that it can end in order.
        alloc_flags: how nodes are set up for the job, as LSF takes them (``gpumps smt4``).
        memory_unit: in which LSF counts memory here, ``LSF_UNIT_FOR_LIMITS`` of its lsf.conf.
    """

    queue: Line = ""
    account: Line = ""
    qos: Line = ""
    constraint: Line = ""
    options: list[Line] = pydantic.Field(default_factory=list)
    warning: Annotated[Seconds, between(0, LONGEST_WARNING)] = 120.0
    alloc_flags: Line = ""
    memory_unit: Literal["KB", "MB", "GB", "TB"] = "KB"

    def memory(self, size: int) -> int:
        """Bytes as whole ``memory_unit``: LSF's are powers of 1024, and a fraction of one can't be asked for."""
        return max(1, size >> 10 * (1 + ("KB", "MB", "GB", "TB").index(self.memory_unit)))


class LaunchSettings(Settings):
    """Further ``options`` of the launcher's command, for every step of a job, as they stand; they replace our own."""

    options: list[str] = pydantic.Field(default_factory=list)


class Setup(Settings):
    """What a job does before its first run: ``modules`` are loaded in this order."""

    modules: list[Line] = pydantic.Field(default_factory=list)


class Paths(Settings):
    """Where things live; ``~`` and ``$VARIABLES`` are resolved by the front end, unset means the user's own default.

    ``shared`` are the file systems that every node sees: a campaign that waits in a queue must lie below one of them,
    symbolic links and variables resolved where it is submitted; empty: not known, and not checked.
    ``scratch`` is a directory of each node's own, resolved there.
    """

    images: str = ""
    outputs: str = "outputs"
    scratch: str = ""
    shared: list[str] = pydantic.Field(default_factory=list)


class ImageSettings(Settings):
    """What an image must be like to run on this site.

    Args:
        base: the image that every build starts from, ``--base`` on the command line overrides it.
        architecture: of the nodes, as ``uname -m`` says it.
        cuda: the newest CUDA release that the nodes' driver can run, like ``12.4``; empty: images without CUDA.
        compute_capability: of the nodes' GPUs, like ``7.0``; empty without GPUs.
        fabric: configure words that UCX must have been built with beside TCP and shared memory (``verbs``, ``rdmacm``):
            where this isn't empty, UCX from wheels is refused, they are built without.
        packages: further packages of the base's distribution.
        registry: where images are pushed to and pulled from, ``[http://]HOST[:PORT]/REPOSITORY``; with ``http://``
            without TLS, also by enroot.
        ucx_repository: where branches and tags of UCX are looked up.
        build_network: Docker's network mode of the build steps; empty: the engine's default.
        modules: of the runtime ``modules``, loaded in this order; ``{ucx}`` stands for the UCX spec.
        prefix: ``bin`` and ``lib`` of this folder come before what the modules bring, ``{ucx}`` as above; empty: none.
    """

    base: Line = "debian:12"
    architecture: Literal["x86_64", "aarch64", "ppc64le"] = "x86_64"
    cuda: str = ""
    compute_capability: str = ""
    fabric: list[str] = pydantic.Field(default_factory=list)
    packages: list[Line] = pydantic.Field(default_factory=list)
    registry: str = ""
    ucx_repository: str = "https://github.com/openucx/ucx.git"
    build_network: str = ""
    modules: list[Line] = pydantic.Field(default_factory=list)
    prefix: Line = ""


class ContainerSettings(Settings):
    """How containers are started here: further options of the runtime's command, and ``HOST:INSIDE[:ro]`` mounts."""

    options: list[str] = pydantic.Field(default_factory=list)
    mounts: list[str] = pydantic.Field(default_factory=list)


class ImportSettings(Settings):
    """Where an image is imported into a squashfs file, and by which command line.

    Args:
        launch: words before ``bash import.sh`` (``srun --partition …``); empty: it runs where the user is.
        folder: of the squashfs files; empty: ``paths.images``.
        program: that imports; empty: ``apptainer`` where the runtime is Apptainer, else ``enroot``.
    """

    launch: list[str] = pydantic.Field(default_factory=list)
    folder: str = ""
    program: Literal["", "enroot", "apptainer"] = ""


class Limits(Settings):
    """How long each wait may take at most. ``job`` is one allocation's time limit."""

    job: Wait = 4 * 3600.0
    start: Wait = 120.0
    stop: Wait = 30.0
    silence: Wait = 20.0
    workload: Wait = 300.0


class Estimates(Settings):
    """The time model before this site has a history: seconds outside the workloads, and of one workload."""

    run: Seconds = 10.0
    workload: Seconds = 3.0


class Defaults(Settings):
    """What a command uses when the user names nothing else.

    ``allow_changed`` are patterns (``network.*``) of what may differ between a block's variants without blocking their
    comparison.
    """

    variants: list[str] = pydantic.Field(default_factory=list)
    suite: str = "quick"
    nodes: list[pydantic.PositiveInt] = pydantic.Field(default_factory=lambda: [1], min_length=1)
    blocks: Annotated[int, between(1, MOST_BLOCKS)] = pydantic.Field(default=8, ge=1)
    budget: Seconds | None = None
    margin: Fraction = 0.03
    allow_changed: list[str] = pydantic.Field(default_factory=list)


class FetchSettings(Settings):
    """Where ``gpubench fetch`` finds this site's campaigns from afar: a ``host`` for ssh, empty: this machine's files;
    ``path`` holds them, below the home directory unless it is absolute."""

    host: str = ""
    path: str = ""


class Toleration(Settings):
    """Of a taint; words as in Kubernetes' own ``tolerations``."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


_LABEL = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = "[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
MaybeObject = Annotated[str, pydantic.Field(pattern=f"^({_DOMAIN})?$")]
"""Name of an object that the cluster has; empty: none."""
Key = Annotated[str, pydantic.Field(pattern=f"^({_DOMAIN}/)?{_LABEL}$")]
"""Of labels and annotations."""
LabelValue = Annotated[str, pydantic.Field(pattern=f"^({_LABEL})?$")]
ExtendedResource = Annotated[str, pydantic.Field(pattern=f"^{_DOMAIN}/{_LABEL}$")]
OUR_LABELS = {"app.kubernetes.io/name", "app.kubernetes.io/instance"}
"""Objects are found by them."""


class KubernetesSettings(Settings):
    """What pods are asked for.

    Args:
        namespace: where the objects go.
        context: of the user's kubeconfig; empty: the current one.
        claim: a ReadWriteMany claim whose ``claim_folder`` is ``paths.outputs`` of the machine that submits: results
            are files in it. Empty: results come home in the log of rank 0's pod.
        claim_folder: path inside the claim; empty: its root.
        node_selector: labels that nodes must have.
        tolerations: of taints that nodes may have.
        image_pull_secrets: names of secrets that are there already.
        shm: size of ``/dev/shm``, which is memory of the pod; unset: half of ``node.memory``.
        run_as_user: every process has this user and group id.
        capabilities: of Linux, added after all have been dropped (``IPC_LOCK``: a fabric needs it).
        gpu_resource: name under which the cluster counts its GPUs.
        resources: what a run's container asks for beside cores, memory and GPUs, by the cluster's name for it
            (``{"rdma/hca_shared_devices_a" = 1}``): what its device plugins hand out.
        labels: of every object, beside our own.
        annotations: of every pod (``{"k8s.v1.cni.cncf.io/networks" = "ib-network"}``: a second interface by Multus).
        runtime_class: name of the cluster's RuntimeClass for the pods (``nvidia``); empty: its default.
        priority_class: name of a PriorityClass; empty: its default.
        service_account: whose name pods run under; they get no token of it. Empty: the namespace's default.
        host_network: pods have the node's network: ``interface`` is one of the node's, where ``port`` must be free.
        port: of rank 0, on which the nodes of a run meet.
        start: how long the first pod waits for the last one: scheduling and pulling of images.
        keep: how long a Job that has ended stays, with the logs that hold its results.
    """

    namespace: str = pydantic.Field(default="default", pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    context: str = pydantic.Field(default="", pattern="^[^\\x00-\\x1f]*$")
    claim: str = pydantic.Field(default="", pattern="^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    claim_folder: str = ""
    node_selector: dict[str, str] = pydantic.Field(default_factory=dict)
    tolerations: list[Toleration] = pydantic.Field(default_factory=list)
    image_pull_secrets: list[str] = pydantic.Field(default_factory=list)
    shm: Bytes | None = None
    run_as_user: Annotated[int, between(0, 2**31 - 1)] = pydantic.Field(default=1000, ge=0)
    capabilities: list[str] = pydantic.Field(default_factory=list)
    gpu_resource: str = "nvidia.com/gpu"
    resources: dict[ExtendedResource, Annotated[Parts, pydantic.Field(ge=1)]] = pydantic.Field(default_factory=dict)
    labels: dict[Key, LabelValue] = pydantic.Field(default_factory=dict)
    annotations: dict[Key, str] = pydantic.Field(default_factory=dict)
    runtime_class: MaybeObject = ""
    priority_class: MaybeObject = ""
    service_account: MaybeObject = ""
    host_network: bool = False
    port: int = pydantic.Field(default=8785, ge=1024, le=65535)
    start: Wait = 1800.0
    keep: Seconds = 7 * 86400.0

    @pydantic.field_validator("labels")
    @classmethod
    def _not_ours(cls, value: dict[str, str]) -> dict[str, str]:
        if taken := sorted(OUR_LABELS & set(value)):
            raise ValueError(f"{', '.join(taken)} is set by gpubench, which finds its objects by it")
        return value

    @pydantic.model_validator(mode="after")
    def _each_once(self) -> KubernetesSettings:
        if self.gpu_resource in self.resources:
            raise ValueError(f"resources: {self.gpu_resource} is gpu_resource; how many is node.gpus")
        return self


class Site(Settings):
    """One machine as ``sites/<name>.toml`` describes it.

    ``env`` is set in every process of a run, under every variant. ``expect_transport`` are the transports that UCX may
    use here; a run that used another one is failed. ``env_allow`` names what a run may inherit from the shell.
    ``known_issues`` is a file of rules beside those that come with gpubench (``issues/known.toml``).

    A file may begin with ``inherits = "NAME"``: it then only says what differs from that profile.
    """

    name: Part
    description: Line = ""
    scheduler: str
    launcher: str
    runtime: str
    device: Literal["auto", "cpu", "gpu"] = "auto"
    protocol: str = "ucx"
    interface: str
    layout: Layout
    node: Node = Node()
    batch: Batch = Batch()
    kubernetes: KubernetesSettings = KubernetesSettings()
    launch: LaunchSettings = LaunchSettings()
    setup: Setup = Setup()
    env: dict[str, str] = pydantic.Field(default_factory=dict)
    env_allow: list[str] = pydantic.Field(default_factory=list)
    expect_transport: list[str] = pydantic.Field(default_factory=list)
    known_issues: str = ""
    image: ImageSettings = ImageSettings()
    container: ContainerSettings = ContainerSettings()
    imports: ImportSettings = ImportSettings()
    paths: Paths = Paths()
    limits: Limits = Limits()
    estimates: Estimates = Estimates()
    defaults: Defaults = Defaults()
    fetch: FetchSettings = FetchSettings()

    @classmethod
    def of(cls, plain: Mapping[str, Any], source: str, at: Callable[[str], str] | None = None) -> Self:
        """As every ``Settings``; also for a NUL byte, which no command line and no variable holds."""
        place = at or (lambda _path: source)
        what = "holds a NUL byte, which no command line and no variable can carry"
        faults = [UsageError(f"{place(path)}: '{path}' {what}") for path in with_nul(plain)]
        image = plain.get("image")
        if isinstance(image, Mapping):
            logins = [key for key in ("registry", "base") if holds_login(str(image.get(key, "")))]
            faults += [password_in(f"{place(f'image.{key}')}: 'image.{key}'") for key in logins]
        if faults:
            raise joined(faults)
        return super().of(plain, source, at)
