"""Section `collective_plane`: units beside the routers that combine and copy words of groups of hosts."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from hopforge.model.config.base import Problem, Section


class CollectiveGroupConfig(Section):
    """Hosts that take part in the same operations."""

    hosts: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    """Hosts by number, each once (default: all)."""
    root: Annotated[int, Field(ge=0)] | None = None
    """Router at the root of the tree (default: the one whose farthest member is nearest, of several the lowest
    number)."""

    def problems(self) -> Iterator[Problem]:
        """Check that there are members, each once."""
        if self.hosts is None:
            return
        if not self.hosts:
            yield Problem("hosts", "must name at least 1 host, not none")
        twice = next((host for at, host in enumerate(self.hosts) if host in self.hosts[:at]), None)
        if twice is not None:
            yield Problem("hosts", f"host {twice} is in the group twice")


class CollectivePlaneConfig(Section):
    """The units, and their groups (docs/definitions/network-collectives.md)."""

    groups: tuple[CollectiveGroupConfig, ...] = (CollectiveGroupConfig(),)
    """Groups, numbered from 0; each has a tree of its own."""
    max_groups: Annotated[int, Field(ge=1, le=16)] = 2
    """Groups that a unit has buffers for."""
    width_bits: Annotated[int, Field(ge=8, le=1024)] = 32
    """Bits of a word, which a flit carries and a unit combines; a multiple of 8."""
    buffer_flits: Annotated[int, Field(ge=1, le=256)] = 4
    """Flits of a group that an input holds."""
    sequence_bits: Annotated[int, Field(ge=1, le=16)] = 4
    """Bits of the number of an operation."""
    words: tuple[Annotated[int, Field(ge=1, le=65536)], ...] = (1, 16, 256)
    """`hopforge collectives`: words of broadcasts and all-reduces that are timed."""

    def problems(self) -> Iterator[Problem]:
        """Check that the groups fit the units."""
        if not self.groups:
            yield Problem("groups", "must be at least 1 group, not none")
        if len(self.groups) > self.max_groups:
            yield Problem("groups", f"must be at most max_groups={self.max_groups} groups, not {len(self.groups)}")
        if self.width_bits % 8:
            yield Problem("width_bits", f"must be a multiple of 8, not {self.width_bits}")
        if not self.words:
            yield Problem("words", "must be at least 1 number, not none")
