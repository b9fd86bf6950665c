"""Sections `failed`, `degraded` and `simulation`: loads, seeds, precision, limits, and what fails or is slow."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from hopforge.model.config.base import Problem, Section
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.traffic import TrafficConfig
from hopforge.model.errors import UserError

Number = Annotated[int, Field(ge=0)]
_MOST = 10**15  # cycles: a cycle of a router with times in ns is cut into hundreds, and their sums stay below 2**63
Cycles = Annotated[int, Field(ge=0, le=_MOST)]
SomeCycles = Annotated[int, Field(ge=1, le=_MOST)]
Microseconds = Annotated[float, Field(gt=0, le=1e9)]


class FailedConfig(Section):
    """Links and switches that do not work; `hopforge route`, `net` and `sweep` use the network without them."""

    links: tuple[tuple[Number, Number], ...] = ()
    """Pairs of routers: all links between the two."""
    ports: tuple[tuple[Number, Number], ...] = ()
    """Pairs of a router and one of its ports: the link there (one of several between the same two routers)."""
    switches: tuple[Number, ...] = ()
    """Routers, with all their links and hosts."""

    @property
    def none(self) -> bool:
        """Nothing has failed."""
        return not (self.links or self.ports or self.switches)

    def __add__(self, other: "FailedConfig") -> "FailedConfig":
        """Both together."""
        return FailedConfig(
            links=self.links + other.links, ports=self.ports + other.ports, switches=self.switches + other.switches
        )


class DegradedConfig(Section):
    """Links that are slower than they should be, both ways: from the start of a run to its end, or for some time."""

    links: tuple[tuple[Number, Number], ...] = ()
    """Pairs of routers: all links between the two."""
    ports: tuple[tuple[Number, Number], ...] = ()
    """Pairs of a router and one of its ports: the link there (one of several between the same two routers)."""
    random_links: Number = 0
    """So many links between routers, drawn with `seed`; more are the same ones and others."""
    factor: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Part of its rate that such a link has left."""
    from_us: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """`hopforge app`: they are slow from here on ..."""
    until_us: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """... until here (default: the end)."""
    from_cycle: Cycles = 0
    """The same for `hopforge net`, `series`, `sweep` and `trace`, in cycles from the start (with warm-up)."""
    until_cycle: SomeCycles | None = None
    """As `until_us`."""

    @property
    def none(self) -> bool:
        """All links are as they should be."""
        return self.factor == 1 or not (self.links or self.ports or self.random_links)

    @property
    def timed(self) -> str:
        """The first key that says that links are slow for some time only; empty: they are all the time."""
        if self.none:
            return ""
        given = {"from_us": self.from_us, "until_us": self.until_us, "from_cycle": self.from_cycle,
                 "until_cycle": self.until_cycle}  # fmt: skip
        return next((key for key, value in given.items() if value), "")

    def problems(self) -> Iterator[Problem]:
        """Check that times are of one kind, and in order."""
        for begin, end in (("from_us", "until_us"), ("from_cycle", "until_cycle")):
            until = getattr(self, end)
            if until is not None and until <= getattr(self, begin):
                yield Problem(end, f"must be more than {begin}={getattr(self, begin):g}, not {until:g}")
        if (self.from_us or self.until_us) and (self.from_cycle or self.until_cycle):
            yield Problem("from_cycle", "from_us and until_us are for hopforge app, from_cycle and until_cycle for net")


class FailureConfig(FailedConfig):
    """Links and switches that fail in one cycle of a run (`input_output_queued`, `packet`: cycles are packet times)."""

    cycle: Cycles
    """In which they fail, counted from the start of the run with its warm-up."""
    detection_cycles: Cycles = 100
    """From then until the hosts stop sending new packets."""
    reprogram_cycles: Cycles = 1000
    """From then until the new tables are in force; later, if the network takes longer to become empty."""
    repair_cycles: SomeCycles | None = None
    """From the failure until the parts work again (default: never)."""

    def problems(self) -> Iterator[Problem]:
        """Check that something fails, and that it is known before it is repaired."""
        if self.none:
            yield Problem("links", "missing; a failure needs links, ports or switches")
        if self.repair_cycles is not None and self.repair_cycles <= self.detection_cycles + self.reprogram_cycles:
            least = self.detection_cycles + self.reprogram_cycles
            yield Problem(
                "repair_cycles",
                f"must be more than detection_cycles + reprogram_cycles = {least}, not {self.repair_cycles}",
            )


def describe_failed(failed: FailedConfig) -> str:
    """Say what is down: ``link 3–7, switch 12``."""
    words = [f"link {a}–{b}" for a, b in failed.links]
    words += [f"link at port {port} of router {router}" for router, port in failed.ports]
    words += [f"switch {router}" for router in failed.switches]
    return ", ".join(words) or "nothing"


def failure_problems(
    failures: tuple[FailureConfig, ...], deadlock_cycles: int, router: RouterConfig, traffic: TrafficConfig
) -> Iterator[Problem]:
    """Return what of ``simulation.failures`` does not fit the other sections; keys are from the root of the file."""
    if not failures:
        return
    if router.lookahead:
        yield Problem("simulation.failures", "need router.lookahead=false: heads on links bring routes of before along")
    if traffic.reply is not None:
        yield Problem("simulation.failures", "need traffic.reply=null: a lost request has no reply")
    if traffic.classes:
        yield Problem("simulation.failures", "need traffic without classes: what is lost is sent again by one source")
    for number, failure in enumerate(failures):
        if failure.detection_cycles >= deadlock_cycles and router.model != "packet":
            yield Problem(
                f"simulation.failures[{number}].detection_cycles",
                f"must be below simulation.deadlock_cycles={deadlock_cycles}, not {failure.detection_cycles}",
            )


def parse_failed(links: list[str], switches: list[str]) -> FailedConfig:
    """Read what the command line says: links ``3-7`` (routers) or ``3.2`` (router and port), switches ``12``.

    Each word may hold several, with commas between them.

    Raises
    ------
    UserError
        A word of another form.

    Examples
    --------
    >>> parse_failed(["3-7,9.2"], ["12"])
    FailedConfig(links=((3, 7),), ports=((9, 2),), switches=(12,))
    """
    pairs: dict[str, list[tuple[int, int]]] = {"-": [], ".": []}
    for word in (part.strip() for text in links for part in text.split(",")):
        found = re.fullmatch(r"(\d{1,9})([-.])(\d{1,9})", word)
        if found is None:
            raise UserError(f"--fail: must be routers as 3-7 or router and port as 3.2, not {word!r}")
        pairs[found[2]].append((int(found[1]), int(found[3])))
    numbers = [part.strip() for text in switches for part in text.split(",")]
    for word in numbers:
        if not re.fullmatch(r"\d{1,9}", word):
            raise UserError(f"--fail-switch: must be a router number, not {word!r}")
    return FailedConfig(links=tuple(pairs["-"]), ports=tuple(pairs["."]), switches=tuple(map(int, numbers)))


Load = Annotated[float, Field(gt=0, le=1)]
#: of a sweep whose file names no loads
_LOADS, _KNEE_PERCENT = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5), 2.0


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
    loads: Annotated[tuple[Load, ...], Field(min_length=1)] | None = None
    """Offered loads of `hopforge sweep`; without: 0.05 to 0.5 in steps of 0.05, and `knee_percent` 2."""
    knee_percent: Annotated[float, Field(ge=0.1, le=50)] | None = None
    """`hopforge sweep` adds loads by bisection until the knee lies between two loads that differ by this or less."""
    variants: dict[str, dict[str, Any]] = {}
    """`hopforge sweep`: name of a curve and what it changes in this file, `router.vcs: 2`; without: the file itself."""
    seeds: Annotated[int, Field(ge=1, le=1000)] = 1
    """`hopforge sweep`: runs per load, with seeds `seed`, `seed` + 1, …"""
    precision: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """The run ends when the 95 % interval of the mean latency is within this share of the mean, both sides."""
    warmup_cycles: Cycles = 0
    """Cycles before the measurement; 0 = found by MSER-5."""
    min_cycles: Annotated[Cycles, Field(ge=1000)] = 10000
    """Least cycles of measurement."""
    max_cycles: Annotated[Cycles, Field(ge=1000)] = 100000
    """Most cycles of measurement."""
    warmup_us: Microseconds | None = None
    """Fixed time before the measurement, for routers with times in ns."""
    measure_us: Microseconds | None = None
    """Fixed time of measurement, for routers with times in ns."""
    series_bins: Annotated[int, Field(ge=8, le=10000)] = 80
    """`hopforge series`: bins in which the run (`measure_us`, else `max_cycles`) is cut."""
    series_routers: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """`hopforge series`: routers of which the learned times are written, bin by bin."""
    load_steps: tuple[LoadStep, ...] = ()
    """`hopforge series`: changes of the offered load during the run."""
    failures: tuple[FailureConfig, ...] = ()
    """Links and switches that fail in the middle of the run, which then goes on to `max_cycles`."""
    failure_series_cycles: SomeCycles = 100
    """With `failures`: bin of the time series."""
    deadlock_cycles: Annotated[Cycles, Field(ge=100)] = 10000
    """No flit has moved for so long with flits in flight: the run ends with the cycle of waiting channels."""

    @property
    def first_loads(self) -> tuple[float, ...]:
        """Loads that a sweep begins with."""
        return _LOADS if self.loads is None else self.loads

    @property
    def knee_within(self) -> float | None:
        """Share of the load within which a sweep finds the knee; None: it adds no loads."""
        percent = _KNEE_PERCENT if self.loads is None and self.knee_percent is None else self.knee_percent
        return None if percent is None else percent / 100

    def problems(self) -> Iterator[Problem]:
        """Check the names of the variants, and the limits that are given."""
        given = self.min_cycles != type(self).model_fields["min_cycles"].default
        if given and self.min_cycles > self.max_cycles:
            yield Problem("min_cycles", f"must be at most max_cycles={self.max_cycles}, not {self.min_cycles}")
        for name in self.variants:
            if not re.fullmatch(r"\w{1,40}", name):
                yield Problem("variants", f"a name must be up to 40 letters, digits and _, not {name!r}")
        for k, load in enumerate(self.loads or ()):
            if load in (self.loads or ())[:k]:  # its runs would count as those of other seeds
                yield Problem(f"loads[{k}]", f"must differ from those before, not {load} again")
        for k, step in enumerate(self.load_steps):
            if step.bin >= self.series_bins:
                yield Problem(f"load_steps[{k}].bin", f"must be below series_bins={self.series_bins}, not {step.bin}")
            if step.bin in [earlier.bin for earlier in self.load_steps[:k]]:
                yield Problem(f"load_steps[{k}].bin", f"must differ from those before, not {step.bin} again")
