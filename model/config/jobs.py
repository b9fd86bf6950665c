"""Section `workload` with several programs at once, and every kind that the section can have."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section
from hopforge.model.config.workload import (
    ChakraWorkload,
    CollectiveWorkload,
    DpsnnWorkload,
    GraphSearchWorkload,
    HimenoWorkload,
    JobLogWorkload,
    MatrixProductWorkload,
    NpbWorkload,
    ProgramConfig,
    ProgramWorkload,
    SyntheticWorkload,
    TraceWorkload,
    TrainingWorkload,
)

#: of `workload.mapping`: keys that say where ranks are
_PLACES = ("kind", "first", "file")
#: programs whose file says how many ranks there are
_OF_FILES = ("trace", "chakra")


class JobConfig(Section):
    """A program that shares the network with others."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$")] | None = None
    """Name in results (default: its number in the list, from 0)."""
    program: ProgramConfig
    """What it runs: a section as `workload` is for one program."""
    ranks: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    """How many ranks (default: as the program says). A recorded program must have so many."""
    placement: Literal["linear", "contiguous", "block", "random", "group", "subtree", "mapping"] | None = None
    """Which of the hosts that earlier jobs of the list leave free; `mapping`: as `program.mapping` says (default:
    `mapping` if that names hosts, else linear)."""
    start_us: Annotated[float, Field(ge=0, le=1e10, allow_inf_nan=False)] = 0.0
    """Time at which its ranks begin; up to 10,000 s, times are exact to 2 ps."""

    @property
    def has_mapping(self) -> bool:
        """Whether its program says where its ranks are."""
        mapping = self.program.mapping
        return any(getattr(mapping, key) != type(mapping).model_fields[key].default for key in _PLACES)

    def problems(self) -> Iterator[Problem]:
        """Check that one key says where the ranks are, and one how many there are."""
        if self.placement not in (None, "mapping") and self.has_mapping:
            yield Problem("placement", f"must be mapping where program.mapping names hosts, not {self.placement}")
        own = getattr(self.program, "ranks", None)
        if self.ranks is not None and own is not None and own != self.ranks:
            yield Problem("ranks", f"must be program.ranks={own}, or stand in one place, not {self.ranks}")

    def sized_program(self) -> ProgramWorkload:
        """Return its program with as many ranks as the job has, where the program does not say."""
        if self.ranks is None or self.program.kind in _OF_FILES:
            return self.program
        return self.program.model_copy(update={"ranks": self.ranks})


class JobsWorkload(Section):
    """Several programs at once on one network, for `app` and `hits` (docs/definitions/jobs.md#programs-at-once)."""

    kind: Literal["jobs"]
    """Several programs."""
    jobs: Annotated[tuple[JobConfig, ...], Field(min_length=1, max_length=10_000)]
    """The programs, in the order in which they are placed."""
    groups: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """For `placement: group` and `subtree`: hosts of nested groups, the smallest first (default: those of the
    network)."""

    def problems(self) -> Iterator[Problem]:
        """Check that names differ, that packets are alike, and that groups are read."""
        for name, count in Counter(self.names).items():
            if count > 1:
                last = len(self.names) - 1 - self.names[::-1].index(name)
                yield Problem(f"jobs[{last}].name", f"{name!r} stands {count} times; names must differ")
        for number, job in enumerate(self.jobs):
            if job.program.mtu_bytes != self.mtu_bytes:
                reason = f"must be that of all jobs, {self.mtu_bytes} as in jobs[0], not {job.program.mtu_bytes}"
                yield Problem(f"jobs[{number}].program.mtu_bytes", reason)
        if self.groups and not any(job.placement in ("group", "subtree") for job in self.jobs):
            yield Problem("groups", "is for placement=group and subtree only, which no job has")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the jobs in results."""
        return tuple(job.name or str(number) for number, job in enumerate(self.jobs))

    @property
    def max_flits(self) -> int:
        """Flits of all jobs together in engine packet: the largest limit of one of them."""
        return max(job.program.max_flits for job in self.jobs)

    @property
    def mtu_bytes(self) -> int:
        """Largest payload of a packet, of all programs."""
        return self.jobs[0].program.mtu_bytes


WorkloadConfig = Annotated[
    SyntheticWorkload | JobLogWorkload | JobsWorkload | TraceWorkload | ChakraWorkload | CollectiveWorkload
    | NpbWorkload | MatrixProductWorkload | GraphSearchWorkload | HimenoWorkload | DpsnnWorkload | TrainingWorkload,
    Field(discriminator="kind"),
]
