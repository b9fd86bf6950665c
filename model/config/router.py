"""Sections `router` and `routing`: the router of docs/router.md, and how it finds its way."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section
from hopforge.model.config.paths import ConfigPath

Allocator = Literal["input_first", "output_first", "islip", "wavefront"]


class RouterConfig(Section):
    """Every router of the network (docs/router.md)."""

    vcs: Annotated[int, Field(ge=1, le=16)] = 4
    """Virtual channels per port."""
    buffer_flits: Annotated[int, Field(ge=1, le=65535)] = 8
    """Flits of buffer per virtual channel and input port."""
    switching: Literal["wormhole", "vct", "saf"] = "wormhole"
    """Wormhole, virtual cut-through, or store-and-forward."""
    route_computation: Literal["table", "lookup"] = "table"
    """Routes come from a table after `rc_cycles`, or from a lookup engine at every input port (section `lookup`)."""
    rc_cycles: Annotated[int, Field(ge=0, le=1024)] = 0
    """Table: cycles of route computation; 0 = computed ahead. (A lookup that hits takes its pipeline depth + 1.)"""
    va: Allocator = "output_first"
    """Allocator of virtual channels; `islip` is another name of `output_first`."""
    sa: Allocator = "output_first"
    """Switch allocator; `islip` is another name of `output_first`."""
    arbiter: Literal["round_robin", "matrix"] = "round_robin"
    """Arbiters of the separable allocators; `matrix` = least recently granted."""
    speculation: bool = False
    """Head flits ask for the switch while they ask for a virtual channel."""
    vc_release: Literal["tail", "credits"] = "tail"
    """A virtual channel is free when the tail has left, or when all its credits are back."""
    credit_delay_cycles: Annotated[int, Field(ge=0, le=1024)] = 0
    """Cycles from a credit's arrival until it counts, beyond the register it is written into."""
    link_latency_cycles: Annotated[int, Field(ge=1, le=65535)] = 1
    """Latency of the links between routers (dragonfly: inside a group)."""
    global_latency_cycles: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Dragonfly: latency of the links between groups (default: as inside)."""
    host_latency_cycles: Annotated[int, Field(ge=1, le=65535)] = 1
    """Latency of the links between hosts and routers."""
    cycles_per_flit: Annotated[int, Field(ge=1, le=1024)] = 1
    """Cycles that a flit occupies a link between routers."""
    flit_bits: Annotated[int, Field(ge=1, le=4096)] = 64
    """Hardware: data of a flit; in a head destination, source and tag (virtual cut-through: and length) lie in it."""
    tag_bits: Annotated[int, Field(ge=0, le=64)] = 8
    """Hardware: bits of a head that the hosts may use as they like."""
    length_bits: Annotated[int, Field(ge=1, le=16)] = 8
    """Hardware, virtual cut-through: bits of the number of flits in a head."""
    flit_buffers: Literal["memory", "latches"] = "memory"
    """Hardware: memories that a flow can replace by macros, or latches of standard cells (half the area of
    flip-flops)."""


class RoutingConfig(Section):
    """The routing algorithm."""

    algorithm: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = "dor"
    """dor, star_channel, valiant (mesh, torus); d_mod_k, nca (fat_tree); dragonfly_min; shortest, up_down,
    shortest_escape, tables (any network); or `file`."""
    file: ConfigPath | None = None
    """For `algorithm: file`: Python file with a function `prepare`; relative to this configuration file."""
    vc_rule: Literal["fixed", "dateline"] = "dateline"
    """Dimension order on a torus: class of virtual channels fixed per dimension as in BookSim, or changed at the
    dateline."""
    ties: Literal["plus", "random", "key"] = "plus"
    """Dimension order on a torus: direction when both are equally long; `key`: by the sign of the difference, as in
    the keys of node reduction."""
    ejection: Literal["any", "class"] = "any"
    """dragonfly_min: virtual channels on the link to the host: any, or those of the packet's class as in BookSim."""
    root: Annotated[int, Field(ge=0)] = 0
    """Root of up*/down* trees."""
    check: bool = True
    """Prove freedom from deadlock before the run."""

    def problems(self) -> Iterator[Problem]:
        """Check that a file is there exactly if the algorithm wants one."""
        if self.algorithm == "file" and self.file is None:
            yield Problem("file", "missing; algorithm=file needs it")
        if self.algorithm != "file" and self.file is not None:
            yield Problem("file", f"is for algorithm=file only, not algorithm={self.algorithm}")
