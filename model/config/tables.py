"""Section `tables`: routing tables and virtual layers for irregular networks."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section
from hopforge.model.config.paths import ConfigPath

_WITH_LIMIT = ("loren", "cowen", "thorup_zwick")


class TablesConfig(Section):
    """Which table every switch gets, and which virtual layers keep its packets from deadlock."""

    scheme: Literal["shortest", "up_down", "loren", "cowen", "thorup_zwick", "file"] = "shortest"
    """Shortest paths; up*/down*; LOREN (needs a square floor plan); landmarks of Cowen or of Thorup and Zwick; or a
    `file`."""
    t_max: Annotated[int, Field(ge=1)] | None = None
    """`loren`, `cowen`, `thorup_zwick`: most entries of a table (default: the fewest that are possible)."""
    ties: Literal["lowest", "random", "balanced"] = "lowest"
    """`shortest`: of equally near neighbours the lowest number, a random one, or the least used (as DFSSSP)."""
    file: ConfigPath | None = None
    """`scheme: file`: next hops, one line per switch, one number per destination, -1 on the diagonal (CSV); relative
    to this configuration file."""
    root: Literal["centre", "highest_degree"] | Annotated[int, Field(ge=0)] = "centre"
    """`scheme: up_down`, `layers: escape`: root of the tree: a router, or the one whose farthest router is nearest, or
    the one with most neighbours."""
    layers: Literal["acro", "lash", "lash_tor", "dfsssp", "hop_indexed", "single", "escape", "file"] = "acro"
    """How paths are put into virtual layers: `single` is one for all, `escape` leaves paths alone and adds up*/down* in
    the lowest layer as a way out, `file` reads `layers_file`."""
    layers_file: ConfigPath | None = None
    """`layers: file`: a line `source,destination,layer` for every pair, or with a layer for each hop (CSV); relative to
    this configuration file."""
    cache_key: Literal["destination", "entry"] = "destination"
    """With `routing.algorithm: tables`, what `hopforge hits` asks the caches with: the destination, or (`loren`,
    `cowen`, `thorup_zwick`) the entry of the table that a packet takes."""
    patterns: Annotated[int, Field(ge=1)] = 1000
    """Random traffic patterns for effective bandwidth and average efficiency."""
    hotspot: tuple[Annotated[float, Field(ge=0, le=1)], ...] = (0.1, 0.3, 0.7)
    """β of hotspot(β): probability that a switch sends to the hot one."""
    local: tuple[Annotated[float, Field(gt=0)], ...] = (1.0, 2.0, 3.0)
    """γ of local(γ): destinations with a probability that falls with distance^-γ on the floor plan."""

    def problems(self) -> Iterator[Problem]:
        """Check what concerns several keys."""
        if self.scheme == "file" and self.file is None:
            yield Problem("file", "missing; scheme=file needs it")
        if self.scheme != "file" and self.file is not None:
            yield Problem("file", f"is for scheme=file only, not scheme={self.scheme}")
        if self.layers == "file" and self.layers_file is None:
            yield Problem("layers_file", "missing; layers=file needs it")
        if self.layers != "file" and self.layers_file is not None:
            yield Problem("layers_file", f"is for layers=file only, not layers={self.layers}")
        if self.root != "centre" and self.scheme != "up_down" and self.layers != "escape":
            yield Problem("root", "is for scheme=up_down and layers=escape only")
        if self.t_max is not None and self.scheme not in _WITH_LIMIT:
            yield Problem("t_max", f"is for {', '.join(_WITH_LIMIT)} only, not scheme={self.scheme}")
        if self.cache_key == "entry" and self.scheme not in _WITH_LIMIT:
            yield Problem("cache_key", f"entry is for {', '.join(_WITH_LIMIT)} only, not scheme={self.scheme}")
        if self.ties != "lowest" and self.scheme != "shortest":
            yield Problem("ties", f"is for scheme=shortest only, not scheme={self.scheme}")
