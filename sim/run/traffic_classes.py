"""Classes of traffic in a run: their sources, and what came of each (docs/definitions/traffic-classes.md)."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.traffic import TrafficConfig
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.class_arrays import ClassTraffic, TrafficClasses, silence_class
from hopforge.model.routing.combined.configured import class_inject_masks, class_vcs
from hopforge.model.routing.combined.traffic_classes import vc_ranges
from hopforge.model.topology import Topology
from hopforge.sim.run.class_latencies import ClassLatency, latency_of
from hopforge.sim.traffic import TrafficError, prepare_traffic

#: growth of the delay of its source queues, cycles per cycle, beyond which a class counts as saturated
SATURATED_GROWTH = 0.005


@dataclass(frozen=True)
class ClassResult(ClassLatency):
    """What came of a class of traffic; rates in flits per host and cycle.

    Attributes
    ----------
    offered, accepted : float
        What its sources are to create, and what arrived.
    saturated : bool
        Its source queues grow.
    """

    offered: float
    accepted: float
    saturated: bool

    def columns(self) -> dict[str, Any]:
        """As columns of a table of runs."""
        rates = ("offered", "accepted", "saturated")
        return super().columns() | {f"{self.message}_{key}": getattr(self, key) for key in rates}

    @property
    def plural(self) -> str:
        """What was counted."""
        return f"class {self.message}"

    def words(self) -> str:
        """As people read it."""
        rates = f"offered {self.offered:.4g}, accepted {self.accepted:.4g}"
        if self.offered and not self.packets:
            return f"{rates}: STARVED, no packet arrived in the cycles measured"
        return f"{rates}{', SATURATED' if self.saturated else ''}; {super().words()}"


@dataclass(frozen=True, eq=False)
class RunClasses:
    """The classes of a run.

    Attributes
    ----------
    kernel : TrafficClasses
        What the kernel gets.
    names : tuple of str
        Of the file.
    offered : tuple of float
        Flits per host and cycle.
    silent : tuple
        Hosts that send nothing of each class, or None.
    first_delays : ndarray, float64[class]
        Ages of the source queues when a measurement began.
    """

    kernel: TrafficClasses
    names: tuple[str, ...]
    offered: tuple[float, ...]
    silent: tuple[NDArray[np.bool_] | None, ...]
    first_delays: NDArray[np.float64]

    def silence(self, state: NetState, failed: NDArray[np.bool_]) -> None:
        """Let hosts send nothing that have failed, or are not to."""
        for c, silent in enumerate(self.silent):
            silence_class(state, c, failed if silent is None else failed | silent)

    def _delays(self, state: NetState) -> NDArray[np.float64]:
        """Mean age in cycles of the packets at the heads of the source queues of every class."""
        source, now = state["class_source"].reshape(-1, len(self.names)), int(state["cycle"])
        created = state["packet"]["created"][np.maximum(source["packet"], 0)]
        ages = np.where(source["packet"] >= 0, now - created, now - source["next_time"])
        return np.asarray(np.maximum(ages, 0).mean(axis=0))

    def growth(self, state: NetState, cycles: int) -> NDArray[np.float64]:
        """Growth of the age of the packets at the heads of the source queues of each class since `reset`.

        In cycles per cycle: float64[class]. Each class by itself: one that grows is not hidden by an older one.
        """
        return (self._delays(state) - self.first_delays) / cycles

    def reset(self, state: NetState) -> None:
        """Count from zero."""
        state["traffic_class"]["flits_arrived"] = 0
        self.first_delays[:] = self._delays(state)

    def results(self, state: NetState, cycles: int) -> tuple[ClassResult, ...]:
        """Return what came of every class in `cycles` cycles since `reset`."""
        growth = self.growth(state, cycles)
        arrived = state["traffic_class"]["flits_arrived"] / (cycles * max(int(state["hosts"]), 1))
        return tuple(
            ClassResult(
                **asdict(latency_of(state, c, name)),
                offered=self.offered[c], accepted=float(arrived[c]), saturated=bool(growth[c] > SATURATED_GROWTH),
            )
            for c, name in enumerate(self.names)
        )  # fmt: skip


def pattern_of(traffic: TrafficConfig) -> str:
    """Return the pattern of section `traffic`, or its file; where every class has one of its own nothing reads it."""
    if traffic.file is not None:
        return str(traffic.file)
    own = bool(traffic.classes) and all(each.pattern is not None for each in traffic.classes)
    return "uniform" if own else traffic.pattern


def class_traffic(
    config: Config, topology: Topology, load: float, seed: int, script_class: NDArray[np.int64] | None
) -> RunClasses | None:
    """Section `traffic.classes` at a load; None: there are none.

    Raises
    ------
    TrafficError
        A class that offers more than a flit per cycle, a pattern that does not fit the network.
    """
    traffic = config.traffic
    if not traffic.classes:
        return None
    counts = class_vcs(config)
    ranges = vc_ranges(counts) if counts else [range(0)] * len(traffic.classes)
    masks = class_inject_masks(config, topology)
    classes, offered, silent = [], [], []
    for c, each in enumerate(traffic.classes):
        generator = np.random.default_rng((seed, 3, c))
        try:
            plan = prepare_traffic(topology, each.pattern or traffic.pattern, traffic.model_dump(), generator)
        except TrafficError as error:
            if each.pattern is None:
                raise
            raise TrafficError(str(error).replace("traffic.pattern", f"traffic.classes[{c}].pattern", 1)) from error
        flits = each.packet_flits or traffic.packet_flits
        rate = load * each.share if each.share is not None else float(each.load or 0)
        if rate > flits:
            raise TrafficError(
                f"traffic.classes[{c}]: {each.name} must offer at most a packet of {flits} flits per host and cycle, "
                f"not {rate:g} flits"
            )
        offered.append(rate)
        silent.append(plan.silent)
        classes.append(
            ClassTraffic(rate / flits, flits, masks[c], plan.pattern, plan.table, ranges[c], each.priority, each.weight)
        )
    kernel = TrafficClasses(tuple(classes), config.router.qos, script_class)
    return RunClasses(
        kernel, tuple(each.name for each in traffic.classes), tuple(offered), tuple(silent), np.zeros(len(classes))
    )
