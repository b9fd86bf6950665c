"""Section `workload`: what is replayed through the caches, or run by the hosts of the network simulator."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section
from hopforge.model.config.paths import ConfigPath, TracePath


class MappingConfig(Section):
    """How ranks are placed on hosts."""

    kind: Literal["linear", "random", "file"] = "linear"
    """Rank r on host r, a random permutation from the seed, or a file."""
    file: ConfigPath | None = None
    """For `kind: file`: text file with the host of rank 0, 1, … a line; relative to this configuration file."""

    def problems(self) -> Iterator[Problem]:
        """Check that a file is there exactly if the kind wants one."""
        if self.kind == "file" and self.file is None:
            yield Problem("file", "missing; kind=file needs it")
        if self.kind != "file" and self.file is not None:
            yield Problem("file", f"is for kind=file only, not kind={self.kind}")


class CollectivesConfig(Section):
    """The algorithm that expands each collective into point-to-point messages."""

    bcast: Literal["binomial", "linear", "ring"] = "binomial"
    """MPI_Bcast."""
    reduce: Literal["binomial", "linear"] = "binomial"
    """MPI_Reduce."""
    allreduce: Literal["recursive_doubling", "ring", "binomial"] = "recursive_doubling"
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


class ProgramWorkload(Section):
    """What all programs have."""

    mtu_bytes: Annotated[int, Field(ge=1)] = 2048
    """Messages are cut into packets of at most this many bytes."""
    mapping: MappingConfig = MappingConfig()
    """Ranks on hosts."""
    collectives: CollectivesConfig = CollectivesConfig()
    """Algorithms of the collectives."""


class TraceWorkload(ProgramWorkload):
    """A recorded MPI program as SimGrid time-independent traces."""

    kind: Literal["trace"]
    """A recorded MPI program."""
    file: TracePath
    """Folder or .tar.xz of `rank-K.txt`, relative to this configuration file; or a shipped one: `shipped:is.A.64`."""


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


WorkloadConfig = Annotated[SyntheticWorkload | TraceWorkload | CollectiveWorkload, Field(discriminator="kind")]
