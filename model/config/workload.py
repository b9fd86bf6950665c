"""Section `workload`: what is replayed through the caches, or run by the hosts of the network simulator."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from hopforge.model.config.base import ConfigPath, Problem, Section, TracePath
from hopforge.model.config.training import (
    GradientsConfig,
    LevelsConfig,
    ParallelConfig,
    SizesConfig,
    StagesConfig,
)


class MappingConfig(Section):
    """How ranks are placed on hosts."""

    kind: Literal["linear", "random", "spread", "file"] = "linear"
    """Rank r on host `first` + r; on random hosts of the whole machine, from the seed; evenly spread over the machine,
    on host ⌊r · hosts / ranks⌋; or where a file says."""
    first: Annotated[int, Field(ge=0)] = 0
    """For `kind: linear`: host of rank 0."""
    file: ConfigPath | None = None
    """For `kind: file`: text file with the host of rank 0, 1, … a line; relative to this configuration file."""
    links: Literal["turns", "pair"] = "turns"
    """With `topology.host_links`: the messages of a rank take its host's links in turns; or those between two hosts all
    take the same one. A message leaves by the link of the number by which it came in."""

    def problems(self) -> Iterator[Problem]:
        """Check that a file is there exactly if the kind wants one."""
        if self.kind == "file" and self.file is None:
            yield Problem("file", "missing; kind=file needs it")
        if self.kind != "file" and self.file is not None:
            yield Problem("file", f"is for kind=file only, not kind={self.kind}")
        if self.kind != "linear" and self.first:
            yield Problem("first", f"is for kind=linear only, not kind={self.kind}")


class ByHostsConfig(Section):
    """Algorithms for calls that collective units cannot do; none: such a call is refused."""

    barrier: Literal["bruck", "recursive_doubling", "recursive_doubling_upper", "binomial", "linear"] | None = None
    """Of MPI_Barrier."""
    bcast: Literal[
        "binomial", "linear", "ring", "scatter_ring_allgather", "scatter_doubling_allgather", "knomial_4", "binary",
        "split_binary", "binomial_doubling", "linear_by_rank",
    ] | None = None
    """Of MPI_Bcast."""
    allreduce: Literal[
        "recursive_doubling", "ring", "halving_doubling", "binomial", "rabenseifner", "rabenseifner_halves", "linear"
    ] | None = None
    """Of MPI_Allreduce."""


class CollectivesConfig(Section):
    """The algorithm that expands each collective into point-to-point messages."""

    rules: Literal["named", "mpich", "open_mpi", "file"] = "named"
    """Who decides on each operation: the keys below; or MPICH's or Open MPI's rules by bytes and ranks, or those of a
    file (docs/definitions/collective-rules.md), for every operation that has no key here or is `by_rules`."""
    rules_file: ConfigPath | None = None
    """For `rules: file`: YAML file of rules; relative to this configuration file."""
    bcast: Literal[
        "binomial", "linear", "ring", "scatter_ring_allgather", "scatter_doubling_allgather", "knomial_4", "binary",
        "split_binary", "binomial_doubling", "linear_by_rank", "by_rules", "in_network",
    ] = "binomial"
    """MPI_Bcast. `in_network`, here and below: by the units of section `collective_plane`."""
    reduce: Literal[
        "binomial", "linear", "ring", "binary", "in_order_binary", "rabenseifner", "rabenseifner_halves", "by_rules"
    ] = "binomial"
    """MPI_Reduce."""
    allreduce: Literal[
        "recursive_doubling", "ring", "halving_doubling", "binomial", "rabenseifner", "rabenseifner_halves", "linear",
        "by_rules", "in_network",
    ] = "recursive_doubling"
    """MPI_Allreduce."""
    alltoall: Literal[
        "pairwise", "bruck", "ring", "linear", "scattered", "linear_backward", "linear_by_rank", "by_rules"
    ] = "pairwise"
    """MPI_Alltoall and MPI_Alltoallv."""
    allgather: Literal["ring", "recursive_doubling", "bruck", "neighbour", "by_rules"] = "ring"
    """MPI_Allgather and MPI_Allgatherv."""
    gather: Literal["binomial", "linear", "linear_by_rank", "linear_sync", "by_rules"] = "binomial"
    """MPI_Gather and MPI_Gatherv."""
    scatter: Literal["binomial", "linear", "linear_by_rank", "by_rules"] = "binomial"
    """MPI_Scatter and MPI_Scatterv."""
    reduce_scatter: Literal["pairwise", "recursive_halving", "ring", "butterfly", "by_rules"] = "pairwise"
    """MPI_Reduce_scatter."""
    barrier: Literal[
        "bruck", "recursive_doubling", "recursive_doubling_upper", "binomial", "linear", "by_rules", "in_network"
    ] = "bruck"
    """MPI_Barrier."""
    scan: Literal["linear", "recursive_doubling", "by_rules"] = "recursive_doubling"
    """MPI_Scan."""
    by_hosts: ByHostsConfig = ByHostsConfig()
    """Beside `in_network`: algorithms for what the units cannot do (docs/definitions/network-collectives.md)."""

    def problems(self) -> Iterator[Problem]:
        """Check that a file is there exactly if the rules want one."""
        if self.rules == "file" and self.rules_file is None:
            yield Problem("rules_file", "missing; rules=file needs it")
        if self.rules != "file" and self.rules_file is not None:
            yield Problem("rules_file", f"is for rules=file only, not rules={self.rules}")
        for name in self.operations():
            if self.rules == "named" and getattr(self, name) == "by_rules":
                yield Problem(name, "by_rules needs rules=mpich, open_mpi or file, not named")
        for name in ByHostsConfig.model_fields:
            if getattr(self.by_hosts, name) is not None and getattr(self, name) != "in_network":
                yield Problem("by_hosts", f"{name} is for {name}=in_network only, not {name}={getattr(self, name)}")

    @model_validator(mode="after")
    def _leave_to_rules(self) -> Self:
        """With rules, operations without a key of their own are `by_rules`."""
        if self.rules != "named":
            for name in set(self.operations()) - self.model_fields_set:
                self.__dict__[name] = "by_rules"
        return self

    @classmethod
    def operations(cls) -> list[str]:
        """Return the keys that name an algorithm."""
        return [name for name in cls.model_fields if name not in ("rules", "rules_file", "by_hosts")]

    @property
    def in_network(self) -> tuple[str, ...]:
        """Operations that collective units do."""
        return tuple(name for name in ByHostsConfig.model_fields if getattr(self, name) == "in_network")

    def named(self, operation: str) -> str | None:
        """Return the algorithm of an operation; None: the rules decide by bytes and ranks."""
        algorithm: str = getattr(self, operation)
        return None if algorithm == "by_rules" else algorithm


class SyntheticWorkload(Section):
    """Synthetic traffic between all hosts."""

    kind: Literal["uniform", "all_to_all", "permutation", "neighbour"]
    """Pattern: random destinations, everybody to everybody, one fixed partner, or the neighbours in the grid."""
    order: Literal["cyclic", "random"] = "cyclic"
    """Order of the destinations in `all_to_all`."""
    permutation: Literal["random", "transpose", "bit_reverse", "bit_complement", "shuffle", "butterfly", "tornado"] = (
        "random"
    )
    """Partner in `permutation`."""
    packets_per_host: Annotated[int, Field(ge=1)] = 1000
    """Packets that each host sends (`uniform`, `permutation`, `neighbour`)."""
    rounds: Annotated[int, Field(ge=1)] = 1
    """Repetitions (`all_to_all`)."""


class ComputingConfig(Section):
    """Ranks that compute more slowly than others (`hopforge app`, `net` of programs)."""

    stragglers: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    """So many ranks, drawn with `seed`, take `slowdown` times as long for every computation."""
    slowdown: Annotated[float, Field(ge=1, le=1e6)] = 2.0
    """How much longer stragglers compute."""
    noise: Annotated[float, Field(ge=0, le=10)] = 0.0
    """Every computation of every rank takes a random multiple of its time: log-normal, mean 1, with this coefficient of
    variation."""

    @property
    def is_even(self) -> bool:
        """Whether all ranks compute as the program says."""
        return self.noise == 0 and (self.stragglers == 0 or self.slowdown == 1)


class ProgramWorkload(Section):
    """What all programs have."""

    mtu_bytes: Annotated[int, Field(ge=1)] = 2048
    """Messages are cut into packets of at most this many bytes."""
    max_flits: Annotated[int, Field(ge=1)] = 10_000_000_000
    """`app.engine: packet` and `hopforge net`: messages of more flits (all together) are refused; 10¹⁰ take about 40
    minutes. On packet routers it limits packets (10¹⁰: 6 hours), and offers in vain before failed links."""
    mapping: MappingConfig = MappingConfig()
    """Ranks on hosts."""
    collectives: CollectivesConfig = CollectivesConfig()
    """Algorithms of the collectives."""
    computing: ComputingConfig = ComputingConfig()
    """Stragglers, and noise of computations."""


class TraceWorkload(ProgramWorkload):
    """A recorded MPI program as SimGrid time-independent traces."""

    kind: Literal["trace"]
    """A recorded MPI program."""
    file: TracePath
    """Folder or .tar.xz of `rank-K.txt`, relative to this configuration file; a schedule of GOAL (`.goal`, `.bin`);
    or a shipped trace: `shipped:is.A.64`."""


class ChakraWorkload(ProgramWorkload):
    """Execution traces of Chakra, a file for each rank."""

    kind: Literal["chakra"]
    """Execution traces of Chakra."""
    file: ConfigPath
    """What the names of the files begin with: `PREFIX` of `PREFIX.0.et` (or `.et.gz`), `PREFIX.1.et`, …; relative to
    this configuration file."""
    process_groups: ConfigPath | None = None
    """JSON file of process groups, `{"1": [0, 1], …}` (default: `PREFIX.json` if it is there)."""
    dimensions: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Sizes of the network that `involved_dim` speaks of, the first one counts fastest; their product is the number of
    ranks."""
    all_gather_size: Literal["part", "whole"] = "part"
    """What `comm_size` of an all-gather counts: what a rank contributes, or what it has at the end."""
    broadcast: Literal["replay", "expand"] = "replay"
    """A broadcast takes the time that the trace has, or is sent by the algorithm of `collectives.bcast`."""
    honour_ctrl_deps: bool = False
    """A node waits for its `ctrl_deps`, too."""
    durations: Literal["replay", "roofline"] = "replay"
    """Computations take the time that the trace has, or max(operations / `peak_gflops`,
    bytes / `memory_gigabytes_per_s`) where it counts either."""
    peak_gflops: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] | None = None
    """For `durations: roofline`: 10⁹ operations per second of a rank."""
    memory_gigabytes_per_s: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] | None = None
    """For `durations: roofline`: 10⁹ bytes per second of its memory."""
    unknown_nodes: Literal["refuse", "skip"] = "refuse"
    """Nodes of unknown types: an error, or taken as nodes that take no time."""

    def problems(self) -> Iterator[Problem]:
        """Check that the roofline has its numbers, and nothing else has."""
        for key in ("peak_gflops", "memory_gigabytes_per_s"):
            if self.durations == "roofline" and getattr(self, key) is None:
                yield Problem(key, "missing; durations=roofline needs it")
            if self.durations != "roofline" and getattr(self, key) is not None:
                yield Problem(key, f"is for durations=roofline only, not durations={self.durations}")


class CollectiveWorkload(ProgramWorkload):
    """One collective operation of MPI, again and again, by its algorithm in `collectives`."""

    kind: Literal["collective"]
    """A collective operation of all ranks."""
    operation: Literal[
        "allreduce", "alltoall", "allgather", "barrier", "bcast", "gather", "reduce", "reduce_scatter", "scan",
        "scatter",
    ]
    """What the ranks call."""
    bytes: Annotated[int, Field(ge=0, le=1 << 40)] = 1024
    """Payload: the vector of bcast, reduce, allreduce and scan; what a rank sends to each other rank in `alltoall`;
    what it contributes to a gather, or gets of a scatter."""
    repeat: Annotated[int, Field(ge=1, le=1000000)] = 1
    """How often; a rank goes on to the next call when its part of the last one is done."""
    root: Annotated[int, Field(ge=0)] = 0
    """Root of bcast, reduce, gather and scatter."""
    ranks: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    """How many ranks (default: one for each host)."""


class GeneratedWorkload(ProgramWorkload):
    """What all programs have that are written from their definitions."""

    ranks: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    """How many ranks (default: one for each host)."""


class NpbWorkload(GeneratedWorkload):
    """One of the NAS Parallel Benchmarks 3.3 (MPI)."""

    model_config = ConfigDict(serialize_by_alias=True)

    kind: Literal["npb"]
    """A NAS Parallel Benchmark."""
    benchmark: Literal["bt", "cg", "dt", "ep", "ft", "is", "lu", "mg", "sp"]
    """Which one; the legal numbers of ranks depend on it."""
    problem: Annotated[Literal["S", "W", "A", "B", "C", "D", "E"], Field(alias="class")] = "A"
    """Problem size."""
    graph: Literal["BH", "WH", "SH"] = "BH"
    """Graph of DT: black hole (many to one), white hole (one to many), shuffle."""
    iterations: Annotated[int, Field(ge=2)] | None = None
    """At most so many of the iterations that the class has (default: all); EP and DT have none."""

    def problems(self) -> Iterator[Problem]:
        """Check that there are iterations to leave out."""
        if self.iterations is not None and self.benchmark in ("dt", "ep"):
            yield Problem("iterations", f"is not for benchmark={self.benchmark}, which has none")


class MatrixProductWorkload(GeneratedWorkload):
    """A product of two square matrices by SUMMA."""

    kind: Literal["matrix_product"]
    """A matrix product."""
    order: Annotated[int, Field(ge=1, le=1 << 24)] = 4096
    """Rows and columns of the matrices."""
    panel: Annotated[int, Field(ge=1)] = 128
    """Columns that are broadcast in one step."""


class GraphSearchWorkload(GeneratedWorkload):
    """A breadth-first search in the manner of Graph500."""

    kind: Literal["bfs"]
    """A breadth-first search."""
    scale: Annotated[int, Field(ge=1, le=24)] = 16
    """log₂ of the number of vertices."""
    edge_factor: Annotated[int, Field(ge=1, le=64)] = 16
    """Edges per vertex."""


class HimenoWorkload(GeneratedWorkload):
    """The Himeno benchmark, a Jacobi solver with halos on three axes."""

    kind: Literal["himeno"]
    """The Himeno benchmark."""
    size: Literal["XS", "S", "M", "L", "XL"] = "S"
    """Box: 64×32×32, 128×64×64, 256×128×128, 512×256×256 or 1024×512×512 points."""
    iterations: Annotated[int, Field(ge=1, le=100000)] = 100
    """Jacobi steps."""


class DpsnnWorkload(GeneratedWorkload):
    """DPSNN, a simulator of spiking neural networks: bursts of spikes from everybody to everybody."""

    kind: Literal["dpsnn"]
    """A spiking neural network."""
    rate_hz: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 21.0
    """Mean firing rate of a neuron."""
    steps: Annotated[int, Field(ge=1, le=1 << 20)] = 400
    """Steps of a millisecond of simulated time, each with one exchange of spikes."""
    neurons: Annotated[int, Field(ge=1, le=1 << 24)] = 2500
    """Neurons of a rank: each other rank gets Poisson(neurons · rate · 1 ms) spikes in a step."""
    spike_bytes: Annotated[int, Field(ge=1, le=4096)] = 12
    """Bytes of a spike."""
    flops_per_spike: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = 0.0
    """Operations for each spike received; 0: only the communication takes time."""


class TrainingWorkload(GeneratedWorkload):
    """Steps of training a neural network: a transformer by `model` or `sizes` as a graph, or a simple program."""

    kind: Literal["training"]
    """Training."""
    model: str | None = None
    """A transformer by name (docs/definitions/training.md has them); it runs as a graph."""
    sizes: SizesConfig = SizesConfig()
    """Sizes of the transformer where they are not those of `model`."""
    parallel: ParallelConfig = ParallelConfig()
    """With `model` or `sizes`: what is shared by how many ranks."""
    stages: StagesConfig = StagesConfig()
    """With `model` or `sizes`: order of the microbatches."""
    gradients: GradientsConfig = GradientsConfig()
    """With `model` or `sizes`: exchange of gradients."""
    levels: LevelsConfig = LevelsConfig()
    """With `model` or `sizes`: levels of the collectives."""
    microbatch: Annotated[int, Field(ge=1, le=1 << 20)] = 1
    """With `model` or `sizes`: sequences of a microbatch."""
    recompute: bool = False
    """With `model` or `sizes`: the backward pass repeats the forward pass of each layer (activations are not kept)."""
    skew: Annotated[float, Field(ge=0, le=10)] = 0.0
    """With experts: how unevenly tokens choose them; the n-th most wanted one gets n^-skew of the first one's."""
    shrink: Annotated[float, Field(ge=1, le=1e9)] = 1.0
    """With `model` or `sizes`: bytes and operations are divided by this."""
    parallelism: Literal["data", "expert", "pipeline"] | None = None
    """Without `model` and `sizes`, a simple program: everybody has the network and sums gradients (allreduce); experts
    spread over the ranks (all-to-all); layers in stages (pipeline)."""
    steps: Annotated[int, Field(ge=1, le=100000)] = 1
    """Steps of training."""
    parameters: Annotated[int, Field(ge=1, le=1 << 50)] = 100_000_000
    """For `parallelism`. Parameters: of the network (data, pipeline), of an expert in all layers together (expert)."""
    value_bytes: Annotated[int, Field(ge=1, le=8)] = 2
    """Bytes of a gradient's or activation's value."""
    tokens: Annotated[int, Field(ge=1)] = 2048
    """For `parallelism`. Tokens of a rank in a step (data, expert), of a microbatch (pipeline)."""
    buckets: Annotated[int, Field(ge=1, le=100000)] = 4
    """For `parallelism: data`: parts in which gradients are summed while the backward pass goes on to the next."""
    layers: Annotated[int, Field(ge=1, le=10000)] = 4
    """For `parallelism: expert`: layers of experts."""
    hidden: Annotated[int, Field(ge=1)] = 4096
    """For `parallelism: expert` and `pipeline`: values of a token between layers."""
    experts_per_token: Annotated[int, Field(ge=1)] = 2
    """For `parallelism: expert`: experts that each token goes to."""
    microbatches: Annotated[int, Field(ge=1, le=100000)] = 8
    """For `model`, `sizes` and `parallelism: pipeline`: microbatches of a step."""

    @property
    def is_graph(self) -> bool:
        """Whether it is a transformer, which runs as a graph."""
        return self.model is not None or bool(self.sizes.model_dump(exclude_none=True))

    def problems(self) -> Iterator[Problem]:
        """Check that each form has its own keys only."""
        fields = type(self).model_fields  # a default may be written: a program writes a file anew with every key
        given = {key for key in self.model_fields_set if getattr(self, key) != fields[key].default}
        if self.is_graph and self.parallelism is not None:
            yield Problem("parallelism", "is a simple program; model and sizes have parallel in its place")
        elif self.is_graph:
            for key in sorted(_OF_SIMPLE_TRAINING & given):
                yield Problem(key, "is for parallelism only; a model has sizes")
        elif self.parallelism is None:
            yield Problem("model", "missing; or parallelism, for a simple program")
        else:
            for key in sorted(_OF_GRAPH_TRAINING & given):
                yield Problem(key, f"is for model and sizes only, not parallelism={self.parallelism}")


_OF_SIMPLE_TRAINING = {"parameters", "tokens", "buckets", "layers", "hidden", "experts_per_token"}
_OF_GRAPH_TRAINING = {"parallel", "stages", "gradients", "levels", "microbatch", "recompute", "skew", "shrink"}


class JobLogWorkload(Section):
    """A log of jobs that share the hosts of the network, for `hits` (docs/definitions/jobs.md#packets-of-a-log)."""

    kind: Literal["job_log"]
    """Jobs of a log, each with its own exchanges while it runs."""
    file: ConfigPath | None = None
    """Log in the Standard Workload Format (`.swf`, `.swf.gz`); relative to this configuration file."""
    generate: Literal["all", "batch", "interactive", "typed"] | None = None
    """Draw the log instead, from the model of Lublin and Feitelson."""
    count: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    """Jobs of a drawn log."""
    processors: Annotated[int, Field(ge=10, le=1 << 30)] | None = None
    """Processors of the machine that a log is drawn for (default: hosts times `ppn`)."""
    ppn: Annotated[int, Field(ge=1, le=1 << 20)] = 1
    """Processors of a host."""
    scheduler: Literal["fcfs", "easy"] = "easy"
    """First come first served, or with backfilling."""
    placement: Literal["linear", "contiguous", "block", "random", "group", "subtree"] = "linear"
    """How hosts are chosen for a job."""
    groups: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """For `placement: group` and `subtree`: hosts of nested groups, the smallest first (default: those of the
    network)."""
    alltoalls: Annotated[int, Field(ge=0, le=1000)] = 1
    """Rounds of pairwise all-to-all of a job."""
    exchanges: Annotated[int, Field(ge=0, le=1_000_000)] = 10
    """Neighbour exchanges of a job: a packet of each rank to the next one."""

    def problems(self) -> Iterator[Problem]:
        """Check that there is one log, and keys that are read."""
        if (self.file is None) == (self.generate is None):
            yield Problem("file", "name either a file or generate")
        for key in ("count", "processors"):
            if self.file is not None and key in self.model_fields_set:
                yield Problem(key, "is for generate; a file has its own jobs")
        if self.groups and self.placement not in ("group", "subtree"):
            yield Problem("groups", f"is for placement=group and subtree only, not placement={self.placement}")
        if not self.alltoalls + self.exchanges:
            yield Problem("exchanges", "must be at least 1 without alltoalls, not 0")


ProgramConfig = Annotated[
    TraceWorkload | ChakraWorkload | CollectiveWorkload | NpbWorkload | MatrixProductWorkload | GraphSearchWorkload
    | HimenoWorkload | DpsnnWorkload | TrainingWorkload,
    Field(discriminator="kind"),
]
"""Every kind of program."""
