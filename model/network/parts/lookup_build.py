"""State of the lookup engines of a network at cycle 0."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.limits import AHEAD_ASKERS_MAX
from hopforge.model.config.lookup import POLICIES
from hopforge.model.errors import UserError
from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.reference_stack import ReferenceStacks
from hopforge.model.network.core.kinds import AHEAD_ENGINES
from hopforge.model.network.core.lookup_state import (
    DEEP,
    ENGINE,
    LOOKUP_ARRAYS,
    MSHR,
    NO_VC,
    SECOND,
    LookupState,
    empty_deep,
)
from hopforge.model.network.core.state import NetState

SHALLOW_DEPTHS = 4
MAX_SLOTS = 1 << 31


class LookupBuildError(UserError, ValueError):
    """Engines that do not fit in memory."""


@dataclass(frozen=True, eq=False)
class RouteLookup:
    """Route computation by one lookup engine for every `ports_per_engine` input ports of a router.

    Attributes
    ----------
    params : LookupParams
        Every engine.
    enabled : bool
        The cache is in use; else every lookup asks the TCAM.
    tcam_latency_cycles : int
        From the TCAM's taking of a request, one per cycle and engine, to its answer; also of an external one.
    hosts : int
        Hosts of the network.
    key : ndarray, int32[router, address] or None
        Number of the key of an address at a router; None: keys are whole addresses, their numbers those of the
        addresses.
    key_row : ndarray, int32[key, way or 1]
        Row of the cache in which each key may lie; one column unless the association is skewed.
    row : ndarray, uint8[router, address], optional
        Whether the TCAM of a router has a row for an address; by default all have all.
    ports_per_engine : int
        Input ports that share an engine: 1, 2 or 4 (docs/definitions/router.md, Shared engines).
    second_row : ndarray, int32[key], optional
        Row of the second level in which each key may lie, if there is one.
    next_router : ndarray, int32[router, port], optional
        Look-ahead: the router for which the engine of an output port answers; -1: the engine is at the input.
    paths, layers : int
        Addresses of a host, number host · paths + path; a packet's path is its phase div `layers` (several-paths.md).
    """

    params: LookupParams
    enabled: bool
    tcam_latency_cycles: int
    hosts: int
    key: NDArray[np.int32] | None
    key_row: NDArray[np.int32]
    row: NDArray[np.uint8] | None = None
    ports_per_engine: int = 1
    second_row: NDArray[np.int32] | None = None
    next_router: NDArray[np.int32] | None = None
    paths: int = 1
    layers: int = 1

    @property
    def deep(self) -> bool:
        """Whether engines have more stages than the shallow ones."""
        return self.params.pipeline_depth > SHALLOW_DEPTHS

    @property
    def entries(self) -> int:
        """Lines of a cache that is in use."""
        return self.params.entries if self.enabled else 0

    @property
    def stacked(self) -> bool:
        """Whether the causes of misses need a stack of references: some keys do not find room."""
        return 0 < self.entries < len(self.key_row)

    @property
    def wheel(self) -> int:
        """Cycles of the wheel of answers; that of a deep engine's TCAM passes a register."""
        return 1 << (self.tcam_latency_cycles + self.deep).bit_length()

    def of_router(self, ports: int) -> int:
        """Engines of a router."""
        return -(-ports // self.ports_per_engine)

    def engines(self, routers: int, ports: int) -> int:
        """Engines of a network."""
        return routers * self.of_router(ports)


def attach_lookup(state: NetState, routers: int, ports: int, vcs: int, lookup: RouteLookup) -> None:
    """Give the input ports of a network their engines, with empty caches.

    Raises
    ------
    LookupBuildError
        More than 2³¹ pairs of an engine and a key; look-ahead: more VCs than an engine serves.
    """
    _check_room(routers, ports, vcs, lookup)
    found = LookupState()
    for name, value in _settings(routers, ports, lookup).items():
        found.record[name] = value
    arrays = {"engine": _engines(routers, ports, vcs, lookup), **_tables(routers, ports, lookup)}
    for name, array in arrays.items():
        found.put(name, np.ascontiguousarray(array, LOOKUP_ARRAYS[name]))
    for name, size in _sizes(routers, ports, vcs, lookup).items():
        found.put(name, np.zeros(size, LOOKUP_ARRAYS[name]))
    if lookup.second_row is not None:
        found.second = _second_level(lookup.params, lookup.engines(routers, ports), lookup.second_row)
        found.record["second"] = found.second.record.ctypes.data
    state.lookup = found
    if lookup.next_router is not None:
        state.record["lookahead"] = AHEAD_ENGINES
    state.record["lookup"] = found.record.ctypes.data
    state.record["lookup_step"] = _step_address(lookup.deep)


def _check_room(routers: int, ports: int, vcs: int, lookup: RouteLookup) -> None:
    """Refuse what engines cannot serve, and more pairs of an engine and a key than can be numbered."""
    if lookup.next_router is not None and lookup.ports_per_engine > 1:
        raise LookupBuildError(
            f"lookup.ports_per_engine: must be 1 with router.lookahead, not {lookup.ports_per_engine}"
        )
    if lookup.next_router is not None and ports * vcs > AHEAD_ASKERS_MAX:
        raise LookupBuildError(
            f"router.lookahead: lookup engines of outputs serve at most {AHEAD_ASKERS_MAX} virtual channels, not "
            f"{ports} ports · {vcs} = {ports * vcs}"
        )
    engines, keys = lookup.engines(routers, ports), len(lookup.key_row)
    if lookup.stacked and engines * keys >= MAX_SLOTS:
        raise LookupBuildError(
            f"router.route_computation: lookup: {engines} engines and {keys} keys are {engines * keys} pairs, "
            f"more than {MAX_SLOTS - 1}; lookup.reduction: true needs fewer keys"
        )


def _settings(routers: int, ports: int, lookup: RouteLookup) -> dict[str, int]:
    """Return what all engines have in common."""
    params = lookup.params
    return {
        "engines": lookup.engines(routers, ports),
        "members": lookup.ports_per_engine,
        "depth": params.pipeline_depth,
        "memory_stage": params.memory_stage,
        "mshrs": params.mshrs,
        "sets": params.sets,
        "ways": params.ways,
        "policy": POLICIES.index(params.policy),
        "skewed": params.skewed,
        "enabled": lookup.enabled,
        "tcam_latency": lookup.tcam_latency_cycles,
        "wake_mask": lookup.wheel - 1,
        "keys": len(lookup.key_row),
        "addresses": lookup.hosts * lookup.paths,
        "paths": lookup.paths,
        "layers": lookup.layers,
        "limited": lookup.row is not None,
        "entries": lookup.entries,
        "stacked": lookup.stacked,
        "reduced": lookup.key is not None,
    }


def _engines(routers: int, ports: int, vcs: int, lookup: RouteLookup) -> NDArray[Any]:
    """Return the engines: nothing is under way."""
    engine = np.zeros(lookup.engines(routers, ports), ENGINE)
    engine["in_c"] = engine["wake"] = -1
    engine["a0"] = engine["a1"] = NO_VC
    engine["lfsr"] = lookup.params.random_seed
    router, number = np.divmod(np.arange(len(engine)), lookup.of_router(ports))
    engine["router"], engine["first_vc"] = router, (router * ports + number * lookup.ports_per_engine) * vcs
    if lookup.next_router is not None:
        behind = lookup.next_router.reshape(-1)
        engine["router"] = np.where(behind < 0, router, behind)
        engine["first_vc"] = np.where(behind < 0, engine["first_vc"], router * ports * vcs)
    return engine


def _tables(routers: int, ports: int, lookup: RouteLookup) -> dict[str, NDArray[Any]]:
    """Return the arrays that are not all zeros, and those that are small."""
    engines = lookup.engines(routers, ports)
    engine_of = np.arange(routers)[:, None] * lookup.of_router(ports) + np.arange(ports) // lookup.ports_per_engine
    stacks = ReferenceStacks(engines if lookup.stacked else 1, lookup.entries).arrays
    return {
        "engine_of": engine_of.reshape(-1),
        "deep": _deep_engines(engines if lookup.deep else 1),
        "mshr": np.zeros(engines * lookup.params.mshrs, MSHR),
        "stack_head": stacks.head,
        "stack_tail": stacks.tail,
        "stack_held": stacks.held,
        "key_row": np.ascontiguousarray(lookup.key_row).reshape(-1),
        "key": np.zeros(1, np.int32) if lookup.key is None else lookup.key.reshape(-1),
        "row": np.zeros(1, np.uint8) if lookup.row is None else lookup.row.reshape(-1),
    }


def _sizes(routers: int, ports: int, vcs: int, lookup: RouteLookup) -> dict[str, int]:
    """Return the sizes of arrays of zeros, which the machine gives when they are first used."""
    engines, keys = lookup.engines(routers, ports), len(lookup.key_row)
    return {
        "active": (engines + 63) // 64,
        "line": engines * lookup.params.entries,
        "vc_key": routers * ports * vcs,
        "wake_event": lookup.wheel * engines,
        "wake_events": lookup.wheel,
        "stack_newer": engines * keys if lookup.stacked else 1,
        "stack_older": engines * keys if lookup.stacked else 1,
        "stack_status": engines * keys,
    }


def _second_level(params: LookupParams, engines: int, row: NDArray[np.int32]) -> LookupState:
    """Return lines and stages of the second level of all engines: empty, nothing is under way."""
    second = params.second_level
    assert second is not None
    found = LookupState()
    values = {
        "engines": engines, "mshrs": params.mshrs, "sets": second.sets, "ways": second.ways,
        "policy": POLICIES.index(second.policy), "entries": second.entries, "keys": len(row),
        "registers": second.request_registers,
    }  # fmt: skip
    for name, value in values.items():
        found.record[name] = value
    engine = np.zeros(engines, ENGINE)
    engine["lfsr"] = params.random_seed
    arrays: dict[str, NDArray[Any]] = {
        "engine": engine,
        "stages": np.zeros(engines, SECOND),
        "requests": np.zeros(engines * second.request_registers, np.uint8),
        "results": np.zeros(engines * params.mshrs, np.uint8),
        "key_row": row,
        "line": np.zeros(engines * second.entries, LOOKUP_ARRAYS["line"]),
    }
    for name, array in arrays.items():
        found.put(name, np.ascontiguousarray(array, LOOKUP_ARRAYS[name]))
    found.empty_stages()
    return found


def _deep_engines(count: int) -> NDArray[Any]:
    """Return what deep engines have besides: nothing is under way."""
    engines = np.zeros(count, DEEP)
    empty_deep(engines)
    return engines


def _step_address(deep: bool) -> int:
    """Address of the function that moves the engines on; compiles, therefore only for networks with engines."""
    if deep:
        from hopforge.model.network.parts.deep_lookup import step as deep_step  # noqa: PLC0415

        return int(deep_step.address)
    from hopforge.model.network.parts.route_lookup import step  # noqa: PLC0415

    return int(step.address)
