"""Section `tables`: the routing tables of irregular networks, and the virtual layers of their paths."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import ConfigPath, Problem, Section

_WITH_LIMIT = ("loren", "cowen", "thorup_zwick")
#: values of `tables.layers` for several tables at once
_SHARED_LAYERS = ("fewest", "lash", "hop_indexed", "single")


class TablesConfig(Section):
    """Which table every switch gets, and which virtual layers keep its packets from deadlock."""

    scheme: Literal[
        "shortest", "k_shortest", "up_down", "nue", "loren", "cowen", "thorup_zwick", "file"
    ] = "shortest"  # fmt: skip
    """Shortest paths; 2^`lmc` short paths for each destination, of which the source chooses (`several-paths.md`);
    up*/down*; Nue (finds layers, too); LOREN (needs a square floor plan); landmarks of Cowen or of Thorup and Zwick;
    or a `file`."""
    slack: Annotated[int, Field(ge=0, le=15)] = 1
    """`k_shortest`: hops by which a path may be longer than the shortest."""
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
    layers: Literal[
        "acro", "lash", "lash_tor", "dfsssp", "nue", "fewest", "hop_indexed", "single", "escape", "file"
    ] = "acro"  # fmt: skip
    """How paths are put into virtual layers: `nue` as `scheme: nue` found them, `fewest` by the method that needs the
    fewest (`k_shortest`), `single` is one for all, `escape` leaves paths alone and adds up*/down* in the lowest layer
    as a way out, `file` reads `layers_file`."""
    layers_file: ConfigPath | None = None
    """`layers: file`: a line `source,destination,layer` for every pair, or with a layer for each hop (CSV); relative to
    this configuration file."""
    max_layers: Annotated[int, Field(ge=1, le=64)] | None = None
    """Layers that there are. `dfsssp`: more are refused, and paths are spread over those that would be empty (default:
    as many as are needed). `nue`: any number will do (default: 1)."""
    lmc: Annotated[int, Field(ge=0, le=7)] = 0
    """2^lmc LIDs for each host in `lft.txt` of `hopforge route`; with `k_shortest` each has a path of its own."""
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
        if self.scheme == "nue" and self.layers != "nue":
            yield Problem("layers", f"must be nue with scheme=nue, whose paths need its layers, not {self.layers}")
        if self.layers == "nue" and self.scheme != "nue":
            yield Problem("layers", f"nue is for scheme=nue only, which finds both together, not scheme={self.scheme}")
        yield from self._path_problems()
        if self.max_layers is not None and self.scheme != "nue" and self.layers not in ("dfsssp", "nue"):
            yield Problem("max_layers", f"is for layers=dfsssp and nue only, not layers={self.layers}")
        if self.root != "centre" and self.scheme != "up_down" and self.layers != "escape":
            yield Problem("root", "is for scheme=up_down and layers=escape only")
        if self.t_max is not None and self.scheme not in _WITH_LIMIT:
            yield Problem("t_max", f"is for {', '.join(_WITH_LIMIT)} only, not scheme={self.scheme}")
        if self.cache_key == "entry" and self.scheme not in _WITH_LIMIT:
            yield Problem("cache_key", f"entry is for {', '.join(_WITH_LIMIT)} only, not scheme={self.scheme}")
        if self.ties != "lowest" and self.scheme != "shortest":
            yield Problem("ties", f"is for scheme=shortest only, not scheme={self.scheme}")

    @property
    def lids(self) -> int:
        """Addresses of a host."""
        return 1 << self.lmc

    def _path_problems(self) -> Iterator[Problem]:
        """Check what `scheme: k_shortest` needs, and what is for it alone."""
        several = self.scheme == "k_shortest"
        if several and self.lmc == 0:
            yield Problem("lmc", "must be at least 1 with scheme=k_shortest, which has 2^lmc paths, not 0")
        if several and self.layers not in _SHARED_LAYERS:
            yield Problem("layers", f"must be {', '.join(_SHARED_LAYERS)} with scheme=k_shortest, not {self.layers}")
        if not several and self.layers == "fewest":
            yield Problem("layers", f"fewest is for scheme=k_shortest only, not scheme={self.scheme}")
        if not several and self.slack != type(self).model_fields["slack"].default:
            yield Problem("slack", f"is for scheme=k_shortest only, not scheme={self.scheme}")
