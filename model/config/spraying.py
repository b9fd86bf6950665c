"""Sections `traffic.entropy` and `traffic.reorder` (docs/definitions/spraying.md)."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.routing import RoutingConfig
from hopforge.model.config.tables import TablesConfig


class EntropyConfig(Section):
    """A number in packets by which `routing.spread: entropy` takes ways (docs/definitions/spraying.md)."""

    per: Literal["flow", "message", "packet", "flowlet"] = "packet"
    """What has a number of its own: all packets between two hosts, a message, a packet, or a run of packets between two
    hosts without a long gap."""
    values: Annotated[int, Field(ge=1, le=(1 << 31) - 1)] = 65536
    """Different numbers that there are."""
    gap_cycles: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """`flowlet`: cycles from the tail of a packet to the next packet from which on this begins a new flowlet."""

    def problems(self) -> Iterator[Problem]:
        """Check that flowlets have a gap."""
        if self.per == "flowlet" and self.gap_cycles is None:
            yield Problem("gap_cycles", "missing; per=flowlet needs it")
        if self.per != "flowlet" and self.gap_cycles is not None:
            yield Problem("gap_cycles", f"is for per=flowlet only, not per={self.per}")


class ReorderConfig(Section):
    """What hosts do with packets that come before their turn; it is measured, too (docs/definitions/spraying.md)."""

    deliver: Literal["in_order", "at_once"] = "in_order"
    """They wait in a reorder buffer; or count when they come."""
    buffer_packets: Annotated[int, Field(ge=0, le=(1 << 31) - 1)] | None = None
    """`in_order`: places for the packets of each source; a source sends no packet that may find none (default: no
    limit)."""

    def problems(self) -> Iterator[Problem]:
        """Check that a buffer has packets that wait."""
        if self.deliver == "at_once" and self.buffer_packets is not None:
            yield Problem("buffer_packets", "is for deliver=in_order only, not deliver=at_once")


def spraying_problems(
    router: RouterConfig, routing: RoutingConfig, entropy: EntropyConfig | None, given: dict[str, bool]
) -> Iterator[Problem]:
    """Return what of the entropy and of reorder buffers does not fit; keys are from the root of the file.

    Parameters
    ----------
    router, routing, entropy
        Sections.
    given : dict
        Key of section `traffic` → whether the file asks for it.
    """
    if routing.spread == "entropy" and entropy is None:
        yield Problem("traffic.entropy", "missing; routing.spread=entropy needs it")
    if routing.spread != "entropy" and entropy is not None:
        reader = "null" if routing.spread is None else routing.spread
        yield Problem("traffic.entropy", f"needs routing.spread=entropy, which reads it, not {reader}")
    for key in ("entropy", "reorder"):
        if not given[key]:
            continue
        if router.model != "input_queued":
            yield Problem(f"traffic.{key}", f"needs router.model=input_queued, not {router.model}")
        for other in ("reply", "acknowledge", "classes"):
            if given[other]:
                yield Problem(f"traffic.{key}", f"cannot stand together with traffic.{other}")


def path_problems(routing: RoutingConfig, tables: TablesConfig) -> Iterator[Problem]:
    """Return what of tables with several paths and of their choice does not fit; keys are from the root of the file."""
    several = tables.scheme == "k_shortest"
    if routing.algorithm != "tables":
        return
    if several and routing.spread is None:
        yield Problem("routing.spread", "missing; tables.scheme=k_shortest needs it: it says who chooses a path")
    if several and routing.links in ("hash", "adaptive"):
        yield Problem("routing.links", f"{routing.links} is not for tables.scheme=k_shortest: each path has one link")
    if routing.spread is not None and not several:
        yield Problem(
            "routing.spread",
            f"needs tables.scheme=k_shortest with algorithm=tables, not {tables.scheme}, which has one path",
        )
