"""The router of BookSim 2: buffers, allocators and delays as section `router`."""

from typing import Any

from hopforge.model.config.router import COUNTING
from hopforge.sim.booksim.keys import Settings, with_parameters

#: allocators of both, and whether BookSim's has arbiters of a kind of their own
_ALLOCATORS = {"islip": "islip", "separable_input_first": "input_first", "separable_output_first": "output_first",
               "wavefront": "wavefront", "rr_wavefront": "rr_wavefront", "max_size": "max_size", "loa": "loa",
               "pim": "pim", "select": "islip"}  # fmt: skip
#: switch allocators that have another name than in VA: inputs choose an output in turn, and a virtual channel for each
_OF_SWITCH = {"separable_input_first": "input_first_ports"}
_ARBITERS = ("round_robin", "matrix")
#: BookSim's allocators that treat requests of heads as all others
_WITHOUT_PRIORITIES = ("islip", "max_size", "loa", "pim")
_SEPARABLE = ("separable_input_first", "separable_output_first")
#: allocators with iterations in brackets; those without arbiters
_ITERATED, _BARE = ("islip", "select", "pim"), ("wavefront", "rr_wavefront", "max_size", "loa")
#: keys that the router iq does not pass to its allocators (`Allocator::NewAllocator` without a configuration)
_NOT_ASKED = ("arb_type", "alloc_iters")
#: networks whose routers have the host's port behind all others; ours is the first
_HOST_LAST = ("mesh", "torus")
#: networks whose routers differ in their number of ports, or, in ours, serve two stages
_UNLIKE = ("fly", "fattree", "tree4", "qtree", "anynet")
_MOST_CYCLES, _MOST_QUEUED = 1024, 65535
_MOST_ITERATIONS, _MOST_SPEEDUP, _MOST_STEPS, _MOST_CROSSBAR = 16, 16, 8, 16

#: key → its only value here, and what another one would need
_ONLY: dict[str, tuple[int | float | str, str]] = {
    "router": ("iq", "hopforge has BookSim's input-queued router only (iq)"),
    "subnets": (1, "hopforge has one physical network"),
    "buffer_policy": ("private", "hopforge has private buffers of virtual channels only"),
    "noq": (0, "hopforge has no queues by the next hop's output"),
    "vc_busy_when_full": (0, "hopforge takes a virtual channel for free although it has no credit"),
    "vc_prioritize_empty": (0, "hopforge does not prefer empty virtual channels"),
    "vc_shuffle_requests": (0, "hopforge does not shuffle requests"),
    "vc_alloc_delay": (1, "BookSim itself ends with a failed assertion unless it is 1"),
    "sw_alloc_delay": (1, "BookSim itself ends with a failed assertion unless it is 1"),
}


def translate_router(settings: Settings) -> dict[str, Any]:
    """Translate buffers, allocators and delays.

    Raises
    ------
    BooksimError
        What hopforge lacks, by its name.
    """
    for key, (value, why) in _ONLY.items():
        settings.must_be(key, value, why)
    settings.no_effect(
        "private buffers", "private_bufs", "private_buf_size", "private_buf_start_vc", "private_buf_end_vc",
        "max_held_slots", "feedback_aging_scale", "feedback_offset",
    )  # fmt: skip
    vcs = settings.at_least("num_vcs", 1, 16)
    router: dict[str, Any] = {"vcs": vcs, "buffer_flits": _buffer_flits(settings, vcs)}
    router |= _allocators(settings)
    router |= _speedups(settings, vcs)
    router |= _speculation(settings)
    router |= _stages(settings, router)
    router["credit_delay_cycles"] = settings.at_least("credit_delay", 0, _MOST_CYCLES)
    if router["sa"] == "max_size" and settings.text("topology") == "cmesh":
        why = "it serves outputs by their order, and a cmesh has another one in BookSim than in a network file"
        settings.refuse("sw_allocator", why)
    if router["sa"] == "max_size" and settings.text("topology") in _HOST_LAST:
        router["sa_first_output"] = 1
    router |= _own_ports(settings, router)
    if settings.at_least("hold_switch_for_packet", 0, 1):
        router["hold_switch"] = True
    _refuse_outputs_without_grants(settings)
    if settings.at_least("wait_for_tail_credit", 0, 1):
        router["vc_release"] = "credits"
    return router


def _own_ports(settings: Settings, router: dict[str, Any]) -> dict[str, Any]:
    """Return what allocators need that count the ports of a router, where routers have more or fewer of them."""
    topology = settings.text("topology")
    if topology not in _UNLIKE or (topology == "fly" and settings.whole("n") == 1):
        return {}
    for key, ours in (("vc_allocator", "va"), ("sw_allocator", "sa")) if topology == "fly" else ():
        if router[ours] == "rr_wavefront":
            settings.refuse(key, "hopforge's first and last stage of a fly share the pointer of rr_wavefront")
    counts = {router["va"], router["sa"]} & set(COUNTING)
    return {"allocator_ports": "own"} if counts else {}


def _stages(settings: Settings, router: dict[str, Any]) -> dict[str, Any]:
    """Return route computation, crossbar and what waits behind it.

    BookSim's loops over a stage of several cycles end at the first flit in it, so that the others of the router wait.
    """
    found: dict[str, Any] = {"rc_cycles": settings.at_least("routing_delay", 0, _MOST_CYCLES)}
    prepare = settings.at_least("st_prepare_delay", 0, _MOST_CROSSBAR)
    final = settings.at_least("st_final_delay", 0, _MOST_CROSSBAR)
    key = "st_prepare_delay" if prepare else "st_final_delay"
    if not 1 <= prepare + final <= _MOST_CROSSBAR:
        settings.refuse(key, f"st_prepare_delay and st_final_delay must be 1 to {_MOST_CROSSBAR} cycles together")
    if prepare + final > 1:
        found["crossbar_cycles"] = prepare + final
    if max(prepare + final, found["rc_cycles"]) > 1:
        found["stage_batches"] = True
    waiting = settings.whole("output_buffer_size")
    if waiting != -1:
        if not 1 <= waiting <= _MOST_QUEUED:
            settings.refuse("output_buffer_size", f"must be -1 or 1 to {_MOST_QUEUED}")
        if found.get("crossbar_cycles", 1) > 1 or {"output_speedup", "internal_speedup"} & set(router):
            found["output_queue_flits"] = waiting
        else:
            settings.no_effect("a flit leaves the output buffer in the cycle in which it comes", "output_buffer_size")
    return found


def _buffer_flits(settings: Settings, vcs: int) -> int:
    shared = settings.whole("buf_size")
    if shared >= 0:
        settings.no_effect("buf_size says the size of all buffers of a port", "vc_buf_size")
        if shared % vcs or not shared:
            settings.refuse("buf_size", f"must be a multiple of num_vcs = {vcs} above 0; BookSim drops the rest")
        return shared // vcs
    return settings.at_least("vc_buf_size", 1, 65535)


def _speedups(settings: Settings, vcs: int) -> dict[str, Any]:
    """Return the speedups other than 1."""
    found: dict[str, Any] = {
        "input_speedup": settings.at_least("input_speedup", 1, _MOST_SPEEDUP),
        "output_speedup": settings.at_least("output_speedup", 1, _MOST_SPEEDUP),
        "internal_speedup": settings.number("internal_speedup"),
    }
    found["input_speedup"] = min(found["input_speedup"], vcs)  # a crossbar port for each virtual channel
    if not 1 <= found["internal_speedup"] <= _MOST_STEPS:
        settings.refuse("internal_speedup", f"must be 1 to {_MOST_STEPS}")
    return {key: value for key, value in found.items() if value != 1}


def _refuse_outputs_without_grants(settings: Settings) -> None:
    """Refuse what BookSim's own `max_size` cannot do: it has room for as many crossbar outputs as inputs."""
    ins, outs = (settings.at_least(key, 1, _MOST_SPEEDUP) for key in ("input_speedup", "output_speedup"))
    if outs > ins and settings.text("sw_allocator").startswith("max_size"):
        why = f"BookSim's max_size never grants the outputs above input_speedup = {ins}; its runs stand still"
        settings.refuse("output_speedup", why)


def _allocators(settings: Settings) -> dict[str, Any]:
    """Return va, sa and, if they are others, their arbiter and the iterations of iSLIP."""
    found: dict[str, Any] = {}
    iterations: dict[str, int] = {}
    arbiters: dict[str, str] = {}
    for key, ours in (("vc_allocator", "va"), ("sw_allocator", "sa")):
        name, parameters = with_parameters(settings.text(key))
        if name not in _ALLOCATORS:
            settings.refuse(key, f"BookSim has no such allocator; it has {', '.join(_ALLOCATORS)}")
        found[ours] = (_ALLOCATORS | _OF_SWITCH)[name] if ours == "sa" else _ALLOCATORS[name]
        if name in _ITERATED:
            iterations[key] = _iterations(settings, key, name, parameters)
        if name in ("islip", "select"):
            arbiters[key] = "round_robin"
        elif name not in (*_BARE, "pim"):
            if name == "separable_output_first":  # else it is not our iterated allocator
                iterations[key] = 1
            arbiters[key] = parameters[0] if parameters else "round_robin"
            if arbiters[key] not in _ARBITERS:
                settings.refuse(key, f"hopforge has arbiters {', '.join(_ARBITERS)}")
    found |= _own_of_va(arbiters, "arbiter", "va_arbiter", "round_robin")
    found |= _own_of_va(iterations, "allocator_iterations", "va_iterations", 1)
    settings.no_effect("BookSim hands its allocators what stands in brackets behind their names only", *_NOT_ASKED)
    return found


def _own_of_va(values: dict[str, Any], both: str, own: str, default: Any) -> dict[str, Any]:
    """Return what says `values` of the allocators, by BookSim's keys: by key `both`, and `own` if VA has others."""
    of_va = values.get("vc_allocator", values.get("sw_allocator", default))
    of_sa = values.get("sw_allocator", of_va)
    found = {both: of_sa} if of_sa != default else {}
    return found | ({own: of_va} if of_va != of_sa else {})


def _iterations(settings: Settings, key: str, name: str, parameters: list[str]) -> int:
    """Return the iterations of ``islip(n)``, ``pim(n)``; ``select`` is iSLIP of one iteration that knows priorities."""
    if not parameters:
        return 1
    if name == "select" and parameters[0] != "1":
        settings.refuse(key, "hopforge has select with one iteration only; in further ones BookSim's keeps old grants")
    if not parameters[0].isdecimal() or not 1 <= int(parameters[0]) <= _MOST_ITERATIONS:
        settings.refuse(key, f"hopforge's {name} makes 1 to {_MOST_ITERATIONS} iterations")
    return int(parameters[0])


def _speculation(settings: Settings) -> dict[str, Any]:
    keys = ("spec_sw_allocator", "spec_check_elig", "spec_check_cred", "spec_mask_by_reqs")
    if settings.at_least("speculative", 0, 1) == 0:
        settings.no_effect("no speculation", *keys)
        return {}
    settings.must_be("spec_check_elig", 1, "hopforge drops speculative grants without a virtual channel")
    settings.must_be("spec_check_cred", 1, "hopforge drops speculative grants without a credit")
    (own, rest), (other, others) = (_allocator(settings, key) for key in ("sw_allocator", "spec_sw_allocator"))
    if other == "prio":
        if own == "select":
            settings.refuse("speculative", "hopforge's iSLIP knows no priorities, as select does")
        settings.no_effect("for a spec_sw_allocator of its own only", "spec_mask_by_reqs")
        return {"speculation": "shared" if own in _WITHOUT_PRIORITIES else "yielding" if own in _SEPARABLE else True}
    settings.must_be("spec_mask_by_reqs", 0, "hopforge masks by grants, not by requests")
    if (_ALLOCATORS.get(other), others) != (_ALLOCATORS[own], rest):
        settings.refuse("spec_sw_allocator", f"must be prio or the switch allocator {settings.text('sw_allocator')}")
    return {"speculation": True}


def _allocator(settings: Settings, key: str) -> tuple[str, list[str]]:
    """Return an allocator's name, and what stands in brackets without what is BookSim's default there."""
    name, parameters = with_parameters(settings.text(key))
    return name, [] if parameters in (["1"], ["round_robin"]) else parameters
