"""Classes of traffic as arrays for the kernel (docs/definitions/traffic-classes.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import CKernel
from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.kernel.rng import seed_streams
from hopforge.model.network.core.kinds import CLASS_BITS, NO_QUALITY, STRICT, WEIGHTED
from hopforge.model.network.core.layouts import CLASS_COUNT, CLASS_SOURCE, TRAFFIC_CLASS
from hopforge.model.network.core.net_record import PATTERN_SIGNATURE
from hopforge.model.network.core.sources import NEVER
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.class_sources import count_classes, schedule_classes, send_classes
from hopforge.model.network.parts.class_switch import class_match, class_match_words

QUALITIES = {"none": NO_QUALITY, "strict": STRICT, "weighted": WEIGHTED}


@dataclass(frozen=True, eq=False)
class ClassTraffic:
    """A class of traffic.

    Attributes
    ----------
    packet_rate : float
        Packets per host and cycle.
    flits : int
        Length of its packets.
    inject_mask : int or ndarray
        VCs that its sources may use; of every host.
    pattern, table
        Where its packets go: a jitted function of ours, and its data.
    vcs : range
        VCs of its own; empty: all classes share all of them.
    priority, weight : int
        As in section `traffic`.
    """

    packet_rate: float
    flits: int
    inject_mask: Any
    pattern: Any
    table: NDArray[np.int32]
    vcs: range = range(0)
    priority: int = 0
    weight: int = 1


@dataclass(frozen=True, eq=False)
class TrafficClasses:
    """All classes, and what they are due (``router.qos``).

    Attributes
    ----------
    classes : tuple of ClassTraffic
        In the order of the file.
    qos : str
        ``none``, ``strict`` or ``weighted``.
    script_class : ndarray, optional
        With listed packets: class of each.
    """

    classes: tuple[ClassTraffic, ...]
    qos: str = "none"
    script_class: NDArray[np.int64] | None = None


def class_script(
    script: tuple[NDArray[Any], ...], number: NDArray[np.int64], hosts: int, classes: int
) -> dict[str, NDArray[Any]]:
    """Return listed packets by host and class, in order of time, and where those of each source begin."""
    host, time, destination, length = (np.asarray(column, np.int64) for column in script)
    source = host * classes + number
    order = np.lexsort((np.arange(len(host)), time, source))
    first = np.searchsorted(source[order], np.arange(hosts * classes + 1)).astype(np.int64)
    filled: dict[str, NDArray[Any]] = {
        "script_time": time[order].copy(),
        "script_destination": destination[order].astype(np.int32),
        "script_length": length[order].astype(np.int32),
    }
    if not len(host):
        filled = {name: np.zeros(1, column.dtype) for name, column in filled.items()}
    return filled | {"script_first": first, "script_next": first[:-1].copy()}


def put_classes(state: NetState, traffic: TrafficClasses, script: Any, seed: int) -> None:
    """Give the hosts of a network a source for each class, and its switches what classes are due."""
    hosts, count, s = int(state["hosts"]), len(traffic.classes), state.record
    streams = seed_streams(seed, 2, hosts * count).reshape(count, -1)
    state.put("class_streams", np.ascontiguousarray(streams))
    tables = [np.ascontiguousarray(each.table, np.int32).reshape(-1) for each in traffic.classes]
    state.put("class_tables", np.concatenate(tables))
    begins = np.cumsum([0, *(len(table) for table in tables)])
    source = np.zeros((max(hosts, 1), count), CLASS_SOURCE)
    source["packet"] = -1
    kind: Any = np.zeros(count, TRAFFIC_CLASS)
    for c, each in enumerate(traffic.classes):
        pattern = CKernel(each.pattern.py_func, PATTERN_SIGNATURE)
        state.functions.append(pattern)
        with np.errstate(divide="ignore"):
            kind["log_failure"][c] = np.log1p(-each.packet_rate)
        kind["pattern"][c], kind["flits"][c] = pattern.address, each.flits
        kind["table"][c] = state["class_tables"].ctypes.data + 4 * int(begins[c])
        kind["streams"][c] = state["class_streams"].ctypes.data + 8 * c * hosts
        source["mask"][:, c] = each.inject_mask
    of_vc = [c for c, each in enumerate(traffic.classes) for _ in each.vcs]
    priorities, weights = ([getattr(each, name) for each in traffic.classes] for name in ("priority", "weight"))
    put_quality(state, kind, traffic.qos, of_vc, priorities, weights)
    state.put("class_source", source.reshape(-1))
    state.put("host_quota", np.tile(kind["weight"].astype(np.int32), max(hosts, 1)))
    state.put("class_count", np.zeros(count, CLASS_COUNT))
    state.put("class_histogram", np.zeros(count * HISTOGRAM_BINS, np.int64))
    state.put_function("sources", send_classes)
    state.put_function("messages", count_classes)
    if script is not None:
        assert traffic.script_class is not None, "listed packets have classes"
        for name, array in class_script(script, traffic.script_class, hosts, count).items():
            state.put(name, array)
    state["host"]["next_time"] = NEVER  # of the one source that there is without classes
    schedule_classes(s[0])


def put_quality(
    state: NetState,
    kind: NDArray[Any],
    qos: str,
    of_vc: Sequence[int],
    priorities: Sequence[int],
    weights: Sequence[int],
) -> None:
    """Say what classes are due at the switches of a network.

    Parameters
    ----------
    kind : ndarray, TRAFFIC_CLASS[classes]
        The classes, completed and kept here.
    qos : str
        As `TrafficClasses.qos`.
    of_vc : sequence of int
        Class of every VC; empty: all classes share them.
    priorities, weights : sequence of int
        Of the classes.
    """
    s = state.record
    s["traffic_classes"], s["qos"] = len(kind), QUALITIES[qos]
    s["vc_class"] = sum(c << CLASS_BITS * v for v, c in enumerate(of_vc))
    kind["priority"], kind["weight"] = priorities, weights
    state.put("traffic_class", kind)
    state.put("quota", np.tile(kind["weight"].astype(np.int32), int(state["routers"]) * int(state["ports"])))
    state.put("best_level", np.zeros(int(state["ports"]), np.int64))
    if qos != "none":
        state.put_function("switch_match", class_match if state["port_words"] == 1 else class_match_words)


def silence_class(state: NetState, c: int, hosts: NDArray[np.bool_]) -> None:
    """Let these hosts send nothing of a class."""
    source = state["class_source"].reshape(-1, int(state["traffic_classes"]))
    source["next_time"][: len(hosts), c][hosts] = NEVER
