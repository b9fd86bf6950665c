"""Section `wavelengths`: what `hopforge wavelengths` compares."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from hopforge.model.config.base import ConfigPath, Problem, Section

Spread = Literal["rr", "least", "flow", "hash", "hash_low", "bank"]
SPREADS: tuple[Spread, ...] = get_args(Spread)  # kernels call them by their place
Share = Literal["split", "full"]
MOST_LANES = 256


class WavelengthsConfig(Section):
    """Links of several wavelengths, with a lookup engine for the link or for each (docs/definitions/wavelengths.md)."""

    lanes: tuple[Annotated[int, Field(ge=1, le=MOST_LANES)], ...] = (1, 2, 4, 8)
    """Wavelengths of a link, a run for each; every one must divide every rate of `rates_gbps`."""
    spread: tuple[Spread, ...] = ("rr", "flow", "hash", "bank")
    """How packets choose a wavelength: in turns (rr), the one that is free first (least), by source and destination
    (flow), by destination with the high bits of its hash (hash), or with the low bits that also choose the set
    (hash_low), or with a set from the bits above those (bank)."""
    share: tuple[Share, ...] = ("split", "full")
    """Each wavelength has its part of the lines of `lookup.cache.entries` (split), or as many (full)."""
    rates_gbps: tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...] = (400, 800, 1600)
    """Rates of a link for which the cheapest arrangement is chosen."""
    ports: Annotated[int, Field(ge=1, le=4096)] = 64
    """Links of a switch."""
    packets: ConfigPath | None = None
    """Packets of one link (CSV with columns destination, bytes and source) in place of section `workload`; relative to
    this configuration file."""

    def problems(self) -> Iterator[Problem]:
        """Check that lists are lists of different things, and that wavelengths divide rates."""
        for key in ("lanes", "spread", "share", "rates_gbps"):
            values = getattr(self, key)
            if not values:
                yield Problem(key, "must not be empty")
            for value in dict.fromkeys(values):
                if values.count(value) > 1:
                    yield Problem(key, f"names {value} twice")
        for lanes in self.lanes:
            for rate in self.rates_gbps:
                if rate % lanes:
                    yield Problem("lanes", f"must divide rates_gbps={rate}, not {lanes}")
                    return
