"""Section `workload`: the packets that are replayed through the caches."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Section

AlltoallAlgorithm = Literal["pairwise", "bruck", "ring", "linear"]


class MappingConfig(Section):
    """How ranks are placed on hosts."""

    kind: Literal["linear", "random", "file"] = "linear"
    file: Path | None = None


class CollectivesConfig(Section):
    """The algorithm that expands each collective into point-to-point messages."""

    bcast: Literal["binomial", "linear", "ring"] = "binomial"
    reduce: Literal["binomial", "linear"] = "binomial"
    allreduce: Literal["recursive_doubling", "ring", "binomial"] = "recursive_doubling"
    alltoall: AlltoallAlgorithm = "pairwise"
    allgather: Literal["ring", "recursive_doubling", "bruck"] = "ring"
    gather: Literal["binomial", "linear"] = "binomial"
    scatter: Literal["binomial", "linear"] = "binomial"
    reduce_scatter: Literal["pairwise", "recursive_halving"] = "pairwise"
    barrier: Literal["bruck", "recursive_doubling"] = "bruck"
    scan: Literal["linear", "recursive_doubling"] = "recursive_doubling"


class SyntheticWorkload(Section):
    """Synthetic traffic between all hosts."""

    kind: Literal["uniform", "all_to_all", "permutation", "neighbour"]
    order: Literal["cyclic", "random"] = "cyclic"
    permutation: Literal["random", "transpose", "bit_reverse", "bit_complement", "shuffle", "butterfly", "tornado"] = "random"
    packets_per_host: Annotated[int, Field(ge=1)] = 1000
    rounds: Annotated[int, Field(ge=1)] = 1


class TraceWorkload(Section):
    """A recorded MPI program: a folder or .tar.xz of SimGrid time-independent traces, or `shipped:is.A.64`."""

    kind: Literal["trace"]
    file: str
    mtu_bytes: Annotated[int, Field(ge=1)] = 2048
    mapping: MappingConfig = MappingConfig()
    collectives: CollectivesConfig = CollectivesConfig()


WorkloadConfig = Annotated[SyntheticWorkload | TraceWorkload, Field(discriminator="kind")]
