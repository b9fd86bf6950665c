"""Section `app`: how `hopforge app` runs a program."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section


class AppConfig(Section):
    """A program on the network, timed."""

    engine: Literal["flow", "packet"] = "flow"
    """Messages that share the bandwidth of links (`flow`), or the router simulator, cycle by cycle (`packet`)."""
    host_gflops: Annotated[float, Field(gt=0)] | None = None
    """Speed of a rank in 10⁹ operations per second (default: computing takes no time)."""
    eager_bytes: Annotated[int, Field(ge=0)] = 65536
    """The sender of a smaller message goes on; with another it waits until the message has arrived (SimGrid:
    smpi/send-is-detached-thresh)."""
    buffered_bytes: Annotated[int, Field(ge=0)] = 0
    """`flow`: smaller messages start when they are sent, others when their receive is posted, too; at most
    `eager_bytes` (SimGrid: smpi/async-small-thresh). With `packet` all below `eager_bytes` start at once."""
    lookup: Literal["hit", "miss", "conventional"] = "hit"
    """`flow`: delay of a switch, `timing.switch_base_ns`, with `miss_penalty_ns`, or `conventional_switch_ns`."""
    envelope_bytes: Annotated[int, Field(ge=0)] = 16
    """`flow`: bytes that every message has beside its payload (SimGrid SMPI: 16)."""
    latency_factor: Annotated[float, Field(gt=0)] = 1.0
    """`flow`: factor of all latencies (SimGrid CM02: 1, LV08: 13.01)."""
    bandwidth_factor: Annotated[float, Field(gt=0, le=1)] = 1.0
    """`flow`: share of a link's rate that is payload (SimGrid CM02: 1, LV08: 0.97)."""
    sharing: Literal["latency", "equal"] = "latency"
    """`flow`: messages share a full link in proportion to 1/latency of their routes (SimGrid's CM02), or equally."""
    tcp_window_bytes: Annotated[int, Field(ge=1)] | None = 4194304
    """`flow`: no message is faster than this per two latencies of its route (SimGrid's TCP gamma; null: no limit)."""

    def problems(self) -> Iterator[Problem]:
        """Check that what starts early leaves early."""
        if self.buffered_bytes > self.eager_bytes:
            reason = f"must be at most eager_bytes={self.eager_bytes}, not {self.buffered_bytes}"
            yield Problem("buffered_bytes", reason)
