"""Section `workload`: what is replayed through the caches, or run by the hosts of the network simulator."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hopforge.model.config.base import ConfigPath, Problem, Section, TracePath


class MappingConfig(Section):
    """How ranks are placed on hosts."""

    kind: Literal["linear", "random", "spread", "file"] = "linear"
    """Rank r on host `first` + r; on random hosts of the whole machine, from the seed; evenly spread over the machine,
    on host ⌊r · hosts / ranks⌋; or where a file says."""
    first: Annotated[int, Field(ge=0)] = 0
    """For `kind: linear`: host of rank 0."""
    file: ConfigPath | None = None
    """For `kind: file`: text file with the host of rank 0, 1, … a line; relative to this configuration file."""

    def problems(self) -> Iterator[Problem]:
        """Check that a file is there exactly if the kind wants one."""
        if self.kind == "file" and self.file is None:
            yield Problem("file", "missing; kind=file needs it")
        if self.kind != "file" and self.file is not None:
            yield Problem("file", f"is for kind=file only, not kind={self.kind}")
        if self.kind != "linear" and self.first:
            yield Problem("first", f"is for kind=linear only, not kind={self.kind}")


class CollectivesConfig(Section):
    """The algorithm that expands each collective into point-to-point messages."""

    bcast: Literal["binomial", "linear", "ring"] = "binomial"
    """MPI_Bcast."""
    reduce: Literal["binomial", "linear"] = "binomial"
    """MPI_Reduce."""
    allreduce: Literal["recursive_doubling", "ring", "halving_doubling", "binomial"] = "recursive_doubling"
    """MPI_Allreduce."""
    alltoall: Literal["pairwise", "bruck", "ring", "linear"] = "pairwise"
    """MPI_Alltoall and MPI_Alltoallv."""
    allgather: Literal["ring", "recursive_doubling", "bruck"] = "ring"
    """MPI_Allgather and MPI_Allgatherv."""
    gather: Literal["binomial", "linear"] = "binomial"
    """MPI_Gather and MPI_Gatherv."""
    scatter: Literal["binomial", "linear"] = "binomial"
    """MPI_Scatter and MPI_Scatterv."""
    reduce_scatter: Literal["pairwise", "recursive_halving"] = "pairwise"
    """MPI_Reduce_scatter."""
    barrier: Literal["bruck", "recursive_doubling"] = "bruck"
    """MPI_Barrier."""
    scan: Literal["linear", "recursive_doubling"] = "recursive_doubling"
    """MPI_Scan."""


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
    ranks: Annotated[int, Field(ge=1)] | None = None
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
    """Steps of training a neural network."""

    kind: Literal["training"]
    """Training."""
    parallelism: Literal["data", "expert", "pipeline"]
    """Everybody has the network and sums gradients (allreduce); experts spread over the ranks (all-to-all); layers in
    stages (pipeline)."""
    steps: Annotated[int, Field(ge=1, le=100000)] = 1
    """Steps of training."""
    parameters: Annotated[int, Field(ge=1, le=1 << 50)] = 100_000_000
    """Parameters: of the network (data, pipeline), of an expert in all layers together (expert)."""
    value_bytes: Annotated[int, Field(ge=1, le=8)] = 2
    """Bytes of a gradient's or activation's value."""
    tokens: Annotated[int, Field(ge=1)] = 2048
    """Tokens of a rank in a step (data, expert), of a microbatch (pipeline)."""
    buckets: Annotated[int, Field(ge=1, le=100000)] = 4
    """For `data`: parts in which gradients are summed while the backward pass goes on to the next."""
    layers: Annotated[int, Field(ge=1, le=10000)] = 4
    """For `expert`: layers of experts."""
    hidden: Annotated[int, Field(ge=1)] = 4096
    """For `expert` and `pipeline`: values of a token between layers."""
    experts_per_token: Annotated[int, Field(ge=1)] = 2
    """For `expert`: experts that each token goes to."""
    microbatches: Annotated[int, Field(ge=1, le=100000)] = 8
    """For `pipeline`: microbatches of a step."""


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


WorkloadConfig = Annotated[
    SyntheticWorkload | JobLogWorkload | TraceWorkload | ChakraWorkload | CollectiveWorkload | NpbWorkload
    | MatrixProductWorkload | GraphSearchWorkload | HimenoWorkload | DpsnnWorkload | TrainingWorkload,
    Field(discriminator="kind"),
]
