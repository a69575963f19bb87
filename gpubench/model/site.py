"""A site profile: everything that a machine fixes, as data."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

import pydantic

from gpubench.errors import UsageError, joined
from gpubench.model.base import Line, PathPart, Settings, between
from gpubench.model.bounds import MOST_BLOCKS
from gpubench.model.quantities import MOST_SECONDS, Bytes, Fraction, MemoryPool, Seconds
from gpubench.model.secrets import holds_login, password_in, texts

Parts = Annotated[int, between(0, 1_000_000)]
"""Of a node: cores, GPUs, devices of any kind."""
Wait = Annotated[Seconds, between(0.001, MOST_SECONDS)]
"""A time limit; nothing is done in no time."""
LONGEST_WARNING = 65_535
"""Seconds: the longest that Slurm takes."""


class Layout(Settings):
    """Processes of a run: how many on each node, and how they behave."""

    workers: int = pydantic.Field(ge=1)
    """Workers on each node."""
    threads: int = pydantic.Field(default=1, ge=1)
    """Threads of each worker."""
    memory: Bytes | None = None
    """What all workers of a node may use together. Unset: half of the node's memory."""
    one_machine: bool = False
    """All nodes of a job are this one machine, so they share its cores and its memory."""
    rmm_pool: MemoryPool = "default"
    """Size of every GPU worker's memory pool (RMM), or ``none``, or ``default``: what the image does by itself,
    which is only recorded."""
    scheduler: Literal["rank0", "launch-node", "own-set"] = "rank0"
    """Where Dask's scheduler runs: on ``rank0`` beside the first node's workers; on the ``launch-node``, where the
    job's script runs and no worker; or in an ``own-set`` of resources, which is one core of one node. The last two
    need LSF."""
    client: Literal["rank0", "launch-node"] = "rank0"
    """Where the client runs: ``rank0``, or the ``launch-node`` where workers use no GPU."""
    arrangement: Literal["auto", "sequential", "interleaved"] = "sequential"
    """How a block runs its variants. ``sequential``: one cluster after the other. ``interleaved``: all clusters
    live at the same time, their repetitions take turns, and the clusters that wait are stopped. ``auto``:
    interleaved where clusters can take turns and their workers fit into the node's memory."""
    waiting: Literal["auto", "default", "event"] = "default"
    """How processes wait for messages. ``default``: as Dask's way to UCX does by itself, which is polling, so that
    scheduler, workers and client use a core each even when they have nothing to do. ``event``: they sleep.
    ``auto``: they sleep where the binding can do it."""


class Node(Settings):
    """What a job asks for on each node. 0 or unset: the job does not ask for it."""

    cores: Parts = pydantic.Field(default=0, ge=0)
    """Cores."""
    gpus: Parts = pydantic.Field(default=0, ge=0)
    """GPUs."""
    memory: Bytes | None = None
    """Memory. Unset: a job of Slurm asks for all that the node has, unless ``batch.options`` names some."""
    gpu_memory: Bytes | None = None
    """What one GPU has. The plan refuses a workload that needs more. Unset: this is not checked."""


class NeededTransports(Settings):
    """Transports by which data must be able to go; one of a list is enough. A run without fails.

    This is a necessary condition: UCX may still choose another one. If it does so for all large messages, and says so
    (UCX 1.18 and newer), the run has a warning. Empty: not checked.
    """

    same_node: list[str] = pydantic.Field(default_factory=list)
    """Between workers of one node, by the names of ``expect_transport``: ``cuda_ipc``, which uses NVLink. Workers on
    the CPU need none for GPU memory."""
    between_nodes: list[str] = pydantic.Field(default_factory=list)
    """Between workers of two nodes: ``rc_mlx5``, ``dc_mlx5``."""


class Batch(Settings):
    """Options for the site's scheduler."""

    queue: Line = ""
    """Partition or queue."""
    account: Line = ""
    """Account that is charged."""
    qos: Line = ""
    """Quality of service."""
    constraint: Line = ""
    """Features that the nodes must have."""
    options: list[Line] = pydantic.Field(default_factory=list)
    """Further directives, written into the job script as they are (``--exclusive``)."""
    needs_account: bool = False
    """Every job is charged to an account: without ``account`` no job is submitted."""
    jobs_per_user: Parts = pydantic.Field(default=0, ge=0)
    """How many jobs of one user the queue takes at a time, those that wait included. 0: not limited, or not known."""
    request_gpus: bool = True
    """Whether a job asks its scheduler for ``node.gpus``. ``false``: the scheduler does not count GPUs (Slurm without
    GRES), and a whole node comes with all of them."""
    select: bool = True
    """PBS: a job asks for its nodes with ``-l select``. ``false``: with ``-l ncpus``, ``-l ngpus`` and ``-l mem``, each
    the sum over all nodes, at sites that refuse ``-l select``; needs ``node.cores``."""
    script: Literal["stdin", "argument"] = "stdin"
    """How LSF's ``bsub`` gets the script: on its standard input (``bsub < job.sh``) or as an ``argument``."""
    warning: Annotated[Seconds, between(0, LONGEST_WARNING)] = 120.0
    """How long before its end the job gets a signal, so that it can end in order."""
    alloc_flags: Line = ""
    """How LSF prepares the nodes (``gpumps smt4``)."""
    memory_unit: Literal["KB", "MB", "GB", "TB"] = "KB"
    """The unit in which LSF counts memory here: ``LSF_UNIT_FOR_LIMITS`` of its ``lsf.conf``."""

    def memory(self, size: int) -> int:
        """Bytes as whole ``memory_unit``: LSF's are powers of 1024, and a fraction of one can't be asked for."""
        return max(1, size >> 10 * (1 + ("KB", "MB", "GB", "TB").index(self.memory_unit)))


class LaunchSettings(Settings):
    """Options of the launcher's command."""

    options: list[str] = pydantic.Field(default_factory=list)
    """Further options of jsrun, for every step of a job, written as they are. An option replaces gpubench's own
    of the same name. No other launcher takes any."""


class Setup(Settings):
    """What a job does before its first run."""

    module_paths: list[Line] = pydantic.Field(default_factory=list)
    """Directories of further modules (``module use``), before ``modules``."""
    modules: list[Line] = pydantic.Field(default_factory=list)
    """Environment modules that the job loads, in this order."""


class Paths(Settings):
    """Directories. The command line resolves ``~`` and ``$VARIABLES``; unset means the user's own default."""

    images: str = ""
    """Directory of images: virtual environments, conda prefixes, squashfs files."""
    outputs: str = "outputs"
    """Directory of campaigns."""
    scratch: str = ""
    """A directory of each node's own; the node resolves it. Unset: ``TMPDIR``, else ``/tmp``."""
    shared: list[str] = pydantic.Field(default_factory=list)
    """File systems that every node sees. A campaign that waits in a queue must lie below one of them, after
    symbolic links and variables are resolved on the machine that submits. Empty: they are not known, and this is
    not checked."""


class ImageSettings(Settings):
    """Properties that an image must have on this site."""

    base: Line = "debian:12"
    """The image that every build starts from; ``--base`` on the command line overrides it."""
    architecture: Literal["x86_64", "aarch64", "ppc64le"] = "x86_64"
    """Architecture of the nodes, as ``uname -m`` prints it."""
    cuda: str = ""
    """The newest CUDA release that the nodes' driver can run, like ``12.4``. Empty: unknown. For ``device = "gpu"``
    images then have the CUDA of their stack, and UCX is compiled for images of kind venv only."""
    cuda_home: Line = ""
    """Where CUDA's toolkit lies on the machine that builds UCX for a conda prefix or a venv; variables are put in there
    (``$CUDA_HOME``). Empty: ``/usr/local/cuda``."""
    compute_capability: str = ""
    """Compute capability of the nodes' GPUs, like ``7.0``. Empty: no GPUs."""
    fabric: list[str] = pydantic.Field(default_factory=list)
    """Options that UCX must be configured with, besides TCP and shared memory (``verbs``, ``rdmacm``). If this is
    not empty, UCX from wheels is refused, because wheels are built without them."""
    packages: list[Line] = pydantic.Field(default_factory=list)
    """Further packages of the base's distribution."""
    registry: str = ""
    """Where images are pushed to and pulled from: ``[http://]HOST[:PORT]/REPOSITORY``. With ``http://`` no TLS is
    used, by enroot either."""
    ucx_repository: str = "https://github.com/openucx/ucx.git"
    """Where branches and tags of UCX are looked up."""
    build_network: str = ""
    """Network of the build steps: `default`, `host` or `none`, as BuildKit has them. Empty: the engine's default."""
    modules: list[Line] = pydantic.Field(default_factory=list)
    """For runtime ``modules``: the modules to load, in this order. ``{ucx}`` stands for the UCX version."""
    prefix: Line = ""
    """For runtime ``modules``: ``bin`` and ``lib`` of this directory come before what the modules bring. ``{ucx}``
    as above. Empty: none."""


class ContainerSettings(Settings):
    """How containers are started on this site."""

    options: list[str] = pydantic.Field(default_factory=list)
    """Further options of the runtime's command."""
    mounts: list[str] = pydantic.Field(default_factory=list)
    """Further mounts, each ``HOST:INSIDE`` or ``HOST:INSIDE:ro``."""


class ImportSettings(Settings):
    """Where and how ``gpubench images import`` makes squashfs files."""

    launch: list[str] = pydantic.Field(default_factory=list)
    """Words before ``bash import.sh`` (``srun --partition …``). Empty: the import runs where the user is."""
    folder: str = ""
    """Directory of the squashfs files. Empty: ``paths.images``."""
    program: Literal["", "enroot", "apptainer"] = ""
    """Program that imports. Empty: ``apptainer`` where the runtime is Apptainer, else ``enroot``."""


class Limits(Settings):
    """How long each wait may take at most."""

    job: Wait = 4 * 3600.0
    """Time limit of one job (one allocation). Without this key a job gets 3 times what it is estimated to take (8 times
    where only ``[estimates]`` tell), at least what the workloads of one run may take, and ``start`` and ``stop`` on top
    of it; at most the default."""
    start: Wait = 120.0
    """Start of a run: until every worker is connected. Dask gets as long to connect, if this is more than its 30 s."""
    stop: Wait = 30.0
    """End of a run: from its last workload until none of its processes lives on any node."""
    silence: Wait = 20.0
    """Longest silence between two nodes of a run; after it, the run counts the silent node as lost."""
    workload: Wait = 300.0
    """One workload of a run, with its checks."""


class TimeEstimates(Settings):
    """The time model that a plan uses until runs of this site are known."""

    run: Seconds = 10.0
    """Time of a run outside its workloads."""
    workload: Seconds = 3.0
    """Time of one workload."""


class Defaults(Settings):
    """Values that a command uses if the user gives no others."""

    variants: list[str] = pydantic.Field(default_factory=list)
    """Variants, each written as for ``--variants``; the first is the baseline."""
    suite: str = "quick"
    """Suite."""
    nodes: list[pydantic.PositiveInt] = pydantic.Field(default_factory=lambda: [1], min_length=1)
    """Node counts."""
    blocks: Annotated[int, between(1, MOST_BLOCKS)] = pydantic.Field(default=8, ge=1)
    """Number of blocks."""
    budget: Seconds | None = None
    """The longest time that a campaign may take."""
    margin: Fraction = 0.03
    """Differences up to this count as none."""
    allow_changed: list[str] = pydantic.Field(default_factory=list)
    """Patterns (``network.*``) of what may differ between a block's variants without blocking their comparison."""


class Toleration(Settings):
    """One toleration of a taint; the words are those of Kubernetes' own ``tolerations``."""

    key: str = ""
    """Key of the taint."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """How key and value are compared."""
    value: str = ""
    """Value of the taint."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """Effect of the taint. Empty: all effects."""


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
    """Settings of a job's pods."""

    namespace: str = pydantic.Field(default="default", pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    """Namespace of all objects."""
    context: str = pydantic.Field(default="", pattern="^[^\\x00-\\x1f]*$")
    """Context of the user's kubeconfig. Empty: the current one."""
    claim: str = pydantic.Field(default="", pattern="^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    """A ReadWriteMany claim, for a standing cluster. Its ``claim_folder`` must be ``paths.outputs`` of the machine that
    submits."""
    claim_folder: str = ""
    """Path inside the claim. Empty: its root."""
    node_selector: dict[str, str] = pydantic.Field(default_factory=dict)
    """Labels that nodes must have."""
    tolerations: list[Toleration] = pydantic.Field(default_factory=list)
    """Tolerations of taints that nodes may have."""
    image_pull_secrets: list[str] = pydantic.Field(default_factory=list)
    """Names of secrets that exist already in the namespace."""
    shm: Bytes | None = None
    """Size of ``/dev/shm``, which counts as memory of the pod. Unset: half of ``node.memory``."""
    run_as_user: Annotated[int, between(0, 2**31 - 1)] = pydantic.Field(default=1000, ge=0)
    """User and group id of every process."""
    capabilities: list[str] = pydantic.Field(default_factory=list)
    """Linux capabilities that are added after all have been dropped (``IPC_LOCK``: a fabric needs it). Only root keeps
    them: ``run_as_user = 0``."""
    gpu_resource: str = "nvidia.com/gpu"
    """Name under which the cluster counts its GPUs."""
    resources: dict[ExtendedResource, Annotated[Parts, pydantic.Field(ge=1)]] = pydantic.Field(default_factory=dict)
    """What a run's container asks for beside cores, memory and GPUs, by the cluster's name for it
    (``{"rdma/hca_shared_devices_a" = 1}``): what the cluster's device plugins offer."""
    labels: dict[Key, LabelValue] = pydantic.Field(default_factory=dict)
    """Labels of every object, beside gpubench's own."""
    annotations: dict[Key, str] = pydantic.Field(default_factory=dict)
    """Annotations of every pod (``{"k8s.v1.cni.cncf.io/networks" = "ib-network"}``: a second interface by
    Multus)."""
    runtime_class: MaybeObject = ""
    """Name of the cluster's RuntimeClass for the pods (``nvidia``). Empty: its default."""
    priority_class: MaybeObject = ""
    """Name of a PriorityClass. Empty: the cluster's default."""
    service_account: MaybeObject = ""
    """Service account of the pods. Empty: the namespace's default. They get no token of it, unless parsl starts its
    blocks as pods: then this account must have the rights for that, and without one the job brings an account."""
    host_network: bool = False
    """Pods use the node's network: ``interface`` is one of the node's, and ``port`` must be free there."""
    port: int = pydantic.Field(default=8785, ge=1024, le=65535)
    """Port of rank 0, on which the nodes of a run meet."""
    start: Wait = 1800.0
    """How long the first pod waits for the last one, which includes scheduling and pulling of images."""
    keep: Seconds = 7 * 86400.0
    """How long a Job that has ended stays, with the logs that hold its results."""

    @pydantic.field_validator("labels")
    @classmethod
    def _not_ours(cls, value: dict[str, str]) -> dict[str, str]:
        if taken := sorted(OUR_LABELS & set(value)):
            raise ValueError(f"{', '.join(taken)} is set by gpubench, which finds its objects by it")
        return value

    @pydantic.model_validator(mode="after")
    def _no_duplicates(self) -> "KubernetesSettings":
        if self.gpu_resource in self.resources:
            raise ValueError(f"resources: {self.gpu_resource} is gpu_resource; how many is node.gpus")
        return self

    @pydantic.model_validator(mode="after")
    def _no_lost_capabilities(self) -> "KubernetesSettings":
        """No ambient capabilities: https://github.com/kubernetes/enhancements/issues/2763"""
        if self.capabilities and self.run_as_user:
            raise ValueError(f"capabilities: user {self.run_as_user} loses them; only root keeps them: run_as_user = 0")
        return self


class Site(Settings):
    """One machine as ``sites/<name>.toml`` describes it. A file may begin with ``inherits = "NAME"``: then it only
    says what differs from that profile. The docstring below a key is its documentation: ``docs/generate.py`` makes
    ``docs/site-keys.md`` and the JSON Schema of it."""

    name: PathPart
    """Name of the site; the name of its file is usual."""
    description: Line = ""
    """One line for ``gpubench sites list``."""
    scheduler: str
    """The program that starts jobs here. Only some combinations with launcher and runtime exist; see their table."""
    launcher: str
    """How a job starts one supervisor on each of its nodes."""
    runtime: str
    """How runs enter their image."""
    device: Literal["auto", "cpu", "gpu"] = "auto"
    """What workers compute with. ``auto``: GPUs if a node has any and the image holds cupy."""
    protocol: str = "ucx"
    """``ucx``, or ``tcp`` for Dask without UCX."""
    interface: str
    """Network interface of the nodes, as ``ip link`` names it."""
    layout: Layout
    node: Node = Node()
    batch: Batch = Batch()
    kubernetes: KubernetesSettings = KubernetesSettings()
    launch: LaunchSettings = LaunchSettings()
    setup: Setup = Setup()
    env: dict[str, str] = pydantic.Field(default_factory=dict)
    """Variables that are set in every process of a run, under every variant."""
    env_allow: list[str] = pydantic.Field(default_factory=list)
    """Names of variables that a run may inherit from the shell."""
    expect_transport: list[str] = pydantic.Field(default_factory=list)
    """Transports that UCX may use here, by the names that ``ucx_info -d`` lists: ``tcp``; ``rc_mlx5``, ``rc_verbs``,
    ``dc_mlx5``, ``ud_mlx5``, ``ud_verbs`` over InfiniBand and RoCE; ``posix``, ``sysv``, ``cma``, ``xpmem``, ``knem``
    inside a node; ``cuda_copy``, ``cuda_ipc``, ``gdr_copy`` for GPU memory. A run that used another one is failed.
    Empty: not checked."""
    need_transport: NeededTransports = NeededTransports()
    known_issues: str = ""
    """A file of rules, in addition to those that come with gpubench (``issues/known.toml``)."""
    image: ImageSettings = ImageSettings()
    container: ContainerSettings = ContainerSettings()
    imports: ImportSettings = ImportSettings()
    paths: Paths = Paths()
    limits: Limits = Limits()
    estimates: TimeEstimates = TimeEstimates()
    defaults: Defaults = Defaults()

    @property
    def has_gpus(self) -> bool:
        """Whether images for this site hold what GPU workers load."""
        return self.device == "gpu" or (self.device == "auto" and bool(self.node.gpus or self.image.cuda))

    def with_layout(self, **changes: str) -> Self:
        """This profile with these values in its layout."""
        return self.model_copy(update={"layout": self.layout.model_copy(update=changes)})

    @classmethod
    def of(cls, plain: Mapping[str, Any], source: str, at: Callable[[str], str] | None = None) -> Self:
        """As every ``Settings``; also for a NUL byte, which no command line and no variable holds."""
        place = at or (lambda _path: source)
        what = "holds a NUL byte, which no command line and no variable can carry"
        paths = [".".join(keys) for keys, text in texts(plain) if "\0" in text]
        faults = [UsageError(f"{place(path)}: '{path}' {what}") for path in paths]
        image = plain.get("image")
        if isinstance(image, Mapping):
            logins = [key for key in ("registry", "base") if holds_login(str(image.get(key, "")))]
            faults += [password_in(f"{place(f'image.{key}')}: 'image.{key}'") for key in logins]
        if faults:
            raise joined(faults)
        return super().of(plain, source, at)
