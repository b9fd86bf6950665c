"""Section `simulation`: loads, seeds, precision and limits of the network simulator."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from hopforge.model.config.base import Problem, Section
from hopforge.model.config.failures import FailureConfig

Load = Annotated[float, Field(gt=0, le=1)]


class LoadStep(Section):
    """A change of the offered load in the middle of a run."""

    bin: Annotated[int, Field(ge=1)]
    """First bin of `hopforge series` with this load."""
    load: Load
    """Offered load from then on."""


class SimulationConfig(Section):
    """How long and how often the network is simulated."""

    load: Load = 0.1
    """Offered load of `hopforge net` in flits per host and cycle."""
    loads: Annotated[tuple[Load, ...], Field(min_length=1)] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
    """Offered loads of `hopforge sweep`."""
    variants: dict[str, dict[str, Any]] = {}
    """`hopforge sweep`: name of a curve and what it changes in this file, `router.vcs: 2`; without: the file itself."""
    seeds: Annotated[int, Field(ge=1, le=1000)] = 1
    """`hopforge sweep`: runs per load, with seeds `seed`, `seed` + 1, …"""
    precision: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """The run ends when the 95 % interval of the mean latency is within this share of the mean, both sides."""
    warmup_cycles: Annotated[int, Field(ge=0)] = 0
    """Cycles before the measurement; 0 = found by MSER-5."""
    min_cycles: Annotated[int, Field(ge=1000)] = 10000
    """Least cycles of measurement."""
    max_cycles: Annotated[int, Field(ge=1000)] = 100000
    """Most cycles of measurement."""
    warmup_us: Annotated[float, Field(gt=0)] | None = None
    """Fixed time before the measurement, for routers with times in ns."""
    measure_us: Annotated[float, Field(gt=0)] | None = None
    """Fixed time of measurement, for routers with times in ns."""
    series_bins: Annotated[int, Field(ge=8, le=10000)] = 80
    """`hopforge series`: bins in which the run (`measure_us`, else `max_cycles`) is cut."""
    series_routers: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """`hopforge series`: routers of which the learned times are written, bin by bin."""
    load_steps: tuple[LoadStep, ...] = ()
    """`hopforge series`: changes of the offered load during the run."""
    failures: tuple[FailureConfig, ...] = ()
    """Links and switches that fail in the middle of the run, which then goes on to `max_cycles`."""
    failure_series_cycles: Annotated[int, Field(ge=1)] = 100
    """With `failures`: bin of the time series."""
    deadlock_cycles: Annotated[int, Field(ge=100)] = 10000
    """No flit has moved for so long with flits in flight: the run ends with the cycle of waiting channels."""

    def problems(self) -> Iterator[Problem]:
        """Check the names of the variants, and the limits that are given."""
        given = self.min_cycles != type(self).model_fields["min_cycles"].default
        if given and self.min_cycles > self.max_cycles:
            yield Problem("min_cycles", f"must be at most max_cycles={self.max_cycles}, not {self.min_cycles}")
        for name in self.variants:
            if not re.fullmatch(r"\w{1,40}", name):
                yield Problem("variants", f"a name must be up to 40 letters, digits and _, not {name!r}")
        for k, step in enumerate(self.load_steps):
            if step.bin >= self.series_bins:
                yield Problem(f"load_steps[{k}].bin", f"must be below series_bins={self.series_bins}, not {step.bin}")
