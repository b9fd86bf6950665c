"""Section `app`: how `hopforge app` runs a program."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from hopforge.model.config.base import Problem, Section

Backend = Literal["embedded", "simgrid", "auto"]
BACKENDS: tuple[str, ...] = get_args(Backend)
#: what SimGrid adds to every message (smpi_request.cpp)
SIMGRID_ENVELOPE_BYTES = 16


#: machine → L, o, g, G, O, S: LogGOPSim without options, ATLAHS for AI and for HPC (docs/definitions/goal.md)
LOGGOPS_MACHINES: dict[str, tuple[float, float, float, float, float, int]] = {
    "default": (2500, 1500, 1000, 6, 0, 65535),
    "ai": (3700, 200, 5, 0.04, 0, 0),
    "hpc": (3000, 8000, 0, 0.18, 0, 256000),
}
_Time = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)] | None


class LoggopsConfig(Section):
    """The machine of engine loggops, in units of the schedule; keys that are left out are those of `machine`."""

    machine: Literal["default", "ai", "hpc"] = "default"
    """What the others are where they are left out: LogGOPSim without options, ATLAHS for AI, ATLAHS for HPC."""
    L: _Time = None
    """Latency of the network (2500, 3700, 3000)."""
    o: _Time = None
    """Time of the cpu for a message, at either end (1500, 200, 8000)."""
    g: _Time = None
    """Least time between two messages of a nic (1000, 5, 0)."""
    G: _Time = None
    """Time of a byte on a nic (6, 0.04, 0.18)."""
    O: _Time = None  # noqa: E741  the letter of the literature
    """Time of the cpu for a byte, at either end (0, 0, 0)."""
    S: Annotated[int, Field(ge=0, le=1 << 62)] | None = None
    """Largest message that its sender does not wait for, in bytes (65535, 0, 256000)."""
    unit_ns: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] = 1.0
    """Nanoseconds of a unit of the schedule, for results in seconds."""

    @property
    def settings(self) -> tuple[float, float, float, float, float, int]:
        """L, o, g, G, O, S."""
        L, o, g, G, O, S = (  # noqa: E741
            known if own is None else own
            for own, known in zip(
                (self.L, self.o, self.g, self.G, self.O, self.S), LOGGOPS_MACHINES[self.machine], strict=True
            )
        )
        return L, o, g, G, O, int(S)


class AppConfig(Section):
    """A program on the network, timed."""

    engine: Literal["flow", "packet", "loggops"] = "flow"
    """Messages that share the bandwidth of links (`flow`), the router simulator, cycle by cycle (`packet`), or the
    model LogGOPS, which has no network (`loggops`)."""
    backend: Backend = "auto"
    """`flow`: SimGrid's replay (`smpirun` must be installed), hopforge's own engine with the same model (`embedded`),
    or SimGrid where it is installed and can do what is asked, else hopforge's own (`auto`)."""
    host_gflops: Annotated[float, Field(gt=0)] | None = None
    """Speed of a rank in 10⁹ operations per second (default: computing takes no time)."""
    machine_gflops: Annotated[float, Field(gt=0)] | None = None
    """`--program`: speed of the machine that hopforge runs on (default: `host_gflops`, so that computing takes as long
    as here)."""
    eager_bytes: Annotated[int, Field(ge=0)] = 65536
    """The sender of a smaller message goes on; with another it waits until the message has arrived (SimGrid:
    smpi/send-is-detached-thresh)."""
    buffered_bytes: Annotated[int, Field(ge=0)] = 0
    """Smaller messages start when they are sent, others when their receive is posted, too; at most `eager_bytes`
    (SimGrid: smpi/async-small-thresh)."""
    lookup: Literal["hit", "miss", "conventional", "cache"] = "hit"
    """Delay of a switch: `timing.switch_base_ns`, with `miss_penalty_ns`, `conventional_switch_ns`, or by `cache`:
    every hop pays the penalty as often as its input port misses when the program is replayed (section `lookup`)."""
    caches: Literal["cold", "warm"] = "cold"
    """`flow`, for `lookup: cache`: caches are empty at the start, or have seen every destination once (no compulsory
    misses)."""
    envelope_bytes: Annotated[int, Field(ge=0)] = SIMGRID_ENVELOPE_BYTES
    """`flow`: bytes that every message has beside its payload (SimGrid: 16)."""
    latency_factor: Annotated[float, Field(gt=0)] = 1.0
    """`flow`: factor of all latencies (SimGrid CM02: 1, LV08: 13.01)."""
    bandwidth_factor: Annotated[float, Field(gt=0, le=1)] = 1.0
    """`flow`: share of a link's rate that is payload (SimGrid CM02: 1, LV08: 0.97)."""
    sharing: Literal["latency", "equal"] = "latency"
    """`flow`: messages share a full link in proportion to 1/latency of their routes (SimGrid's CM02), or equally."""
    injection: Literal["shared", "queued"] = "shared"
    """Messages of a host share its link (SimGrid; with `packet` their packets take turns), or leave it one after the
    other; in `flow` the next one begins when buffers and cables hold what is left of the last one."""
    buffer_bytes: Annotated[int, Field(ge=0)] | None = None
    """For `injection: queued`: bytes that the buffer of a virtual channel holds (default: `router.buffer_flits` times
    `traffic.flit_bytes`)."""
    tcp_window_bytes: Annotated[int, Field(ge=1)] | None = 4194304
    """`flow`: no message is faster than this per two latencies of its route (SimGrid's TCP gamma; null: no limit)."""
    loggops: LoggopsConfig = LoggopsConfig()
    """`loggops`: its parameters."""

    @property
    def embedded_only(self) -> tuple[str, ...]:
        """Keys with a value that SimGrid does not have."""
        chosen = {"lookup": self.lookup == "cache", "sharing": self.sharing == "equal",
                  "injection": self.injection == "queued",
                  "envelope_bytes": self.envelope_bytes != SIMGRID_ENVELOPE_BYTES}  # fmt: skip
        return tuple(key for key, is_chosen in chosen.items() if is_chosen)

    def problems(self) -> Iterator[Problem]:
        """Check keys that need others, that what starts early leaves early, and that SimGrid can do what is asked."""
        for key in self.embedded_only if self.backend == "simgrid" else ():
            yield Problem(key, f"must not be {getattr(self, key)} with backend=simgrid")
        if self.buffer_bytes is not None and self.injection == "shared":
            yield Problem("buffer_bytes", "is for injection=queued only, not injection=shared")
        if self.buffered_bytes > self.eager_bytes:
            reason = f"must be at most eager_bytes={self.eager_bytes}, not {self.buffered_bytes}"
            yield Problem("buffered_bytes", reason)
