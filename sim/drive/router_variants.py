"""Routers of all kinds, drawn at random: what the benches of the router run on."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from hopforge.model.config.limits import asker_bits
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, Behind, LookAhead, Route, RouterParams, Rule
from hopforge.model.router.quality import Quality

__all__ = ["draw_routes", "draw_rule", "router_variant"]

_ADDRESS_BITS = 12
_FREE_QUEUES = 0.25
_QUALITIES = 0.3
_ENGINES_AHEAD = 0.3
_SPREADS = 0.2
_AHEAD_BITS = 40  # of a head that brings its route along
_KINDS = ("input_first", "output_first", "wavefront")


def draw_rule(rng: np.random.Generator, classes: int, ports: int, vcs: int) -> Rule:
    """Draw a rule of VCs: two fifths of the masks are full, a few are empty."""
    full = (1 << vcs) - 1
    shape = classes, ports, vcs, ports
    masks = rng.integers(0, full + 1, shape) | full * (rng.random(shape) < 0.4)
    return tuple(tuple(tuple(tuple(row) for row in of_port) for of_port in of_class) for of_class in masks.tolist())


def draw_routes(
    rng: np.random.Generator, ports: int, classes: int, *, count: int, adaptive: bool, escape: bool
) -> tuple[Route, ...]:
    """Draw a table; one in ten destinations has no port, and many have several if `adaptive`."""
    routes = []
    for _ in range(count):
        mask = 1 << int(rng.integers(ports))
        if adaptive:
            mask |= int(rng.integers(1 << min(ports, 62))) & int(rng.integers(1 << min(ports, 62)))
        routes.append(
            Route(
                mask if rng.random() < 0.9 else 0,
                int(rng.integers(classes)),
                int(rng.integers(ports)) if escape and rng.random() < 0.7 else None,
            )
        )
    return tuple(routes)


def router_variant(seed: int, **given: Any) -> RouterParams:
    """Draw a router of 2 to 8 ports and 1 to 4 VCs.

    Parameters
    ----------
    seed : int
        The same seed gives the same router.
    **given
        Parameters of `RouterParams` that are not drawn; ``lookahead=True`` draws one, and a table that goes with it.
        Some routers with lookup engines have it anyway, unless it is False.
    """
    rng = np.random.default_rng((seed, 10))
    # from a generator of its own, so that all else is drawn as without it
    without_allocator = np.random.default_rng((seed, 11)).random() < _FREE_QUEUES

    storage = ("memory", "memory", "latches", "flip_flops")[int(np.random.default_rng((seed, 13)).integers(4))]

    def choose(name: str, *values: Any) -> Any:
        drawn = values[int(rng.integers(len(values)))]
        return given.get(name, drawn)

    ports, vcs = choose("ports", *range(2, 9)), choose("vcs", *range(1, 5))
    if ports * vcs > 20 and "ports" not in given:
        ports = 20 // vcs
    switching = choose("switching", "wormhole", "wormhole", "vct")
    vct = switching == "vct"
    buffer_flits = choose("buffer_flits", 1, 2, 3, 4, 5, 8)
    rc = choose("rc", "table", "table", "table", "lookup")
    adaptive, escape, rules = bool(rng.integers(2)), bool(rng.integers(2)), bool(rng.integers(2))
    # from a generator of its own, as above
    fits = not {"output_kind", "ports_per_engine"} & set(given) and given.get("width_bits", _AHEAD_BITS) >= _AHEAD_BITS
    ahead_drawn = rc == "lookup" and fits and np.random.default_rng((seed, 16)).random() < _ENGINES_AHEAD
    ahead = given.pop("lookahead", ahead_drawn)
    one_port = ahead or given.get("sa") == "input_ahead"
    adaptive, escape = adaptive and not one_port, escape and not one_port
    classes = int(rng.integers(1, 4)) if rules else 1
    drawn: dict[str, Any] = {
        "ports": ports,
        "vcs": vcs,
        "buffer_flits": buffer_flits,
        "switching": switching,
        "rc": rc,
        "rc_cycles": choose("rc_cycles", 0, 0, 1, 2, 3) if rc == "table" else 0,
        "va": choose("va", *_KINDS),
        "sa": choose("sa", *_KINDS),
        "arbiter": choose("arbiter", "round_robin", "matrix"),
        "speculation": choose("speculation", False, True),
        "vc_release": choose("vc_release", "tail", "credits"),
        "credit_delay_cycles": choose("credit_delay_cycles", 0, 0, 1, 2, 5),
        "address_bits": _ADDRESS_BITS,
        "tag_bits": 2,
        "length_bits": 4,
        "width_bits": choose("width_bits", 32, 40, 64, 100),
        "flit_buffers": storage,
    }
    if without_allocator and "va" not in given and not given.get("speculation", False):
        drawn |= {"va": "free_queue", "speculation": False}
    of_va = int(np.random.default_rng((seed, 20)).integers(3))  # as above
    drawn["va_arbiter"] = (None, "round_robin", "matrix")[of_va]
    if rng.random() < 0.5:
        drawn["neighbour_flits"] = tuple(int(depth) for depth in rng.integers(1 + 2 * vct, 9, ports))
    if rules:
        drawn["vc_rule"] = draw_rule(rng, classes, ports, vcs)
    if rc == "table":
        drawn["routes"] = draw_routes(rng, ports, classes, count=11, adaptive=adaptive, escape=escape)
        if rules and escape:
            drawn["escape_rule"] = draw_rule(rng, classes, ports, vcs)
    else:
        drawn["output_kind"] = "port_set" if adaptive and not rules else "port"
        # from a generator of its own, as above
        sharing = (1, 2, 4)[int(np.random.default_rng((seed, 12)).integers(3))]
        drawn["ports_per_engine"] = sharing = given.get("ports_per_engine", 1 if ahead else sharing)
        tag_bits = asker_bits(ports * vcs, 1) if ahead else max(1, asker_bits(vcs, sharing))
        drawn["lookup"] = _engine(rng, max(ports, PORT_BITS + CLASS_BITS), tag_bits)
    if not ahead and np.random.default_rng((seed, 18)).random() < _SPREADS:  # as above
        drawn |= _spread(drawn | given, np.random.default_rng((seed, 19)))
    if not (drawn | given)["speculation"] and (drawn | given)["sa"] != "input_ahead":
        drawn["quality"] = _quality(np.random.default_rng((seed, 17)), (drawn | given)["vcs"])  # as above
    if not ahead:
        return RouterParams(**(drawn | given))
    if rc == "lookup":
        drawn["width_bits"] = max(drawn["width_bits"], _AHEAD_BITS)
        params = RouterParams(**(drawn | {"lookahead": LookAhead(int(rng.integers(1, 1 << ports)))} | given))
        spreads = np.random.default_rng((seed, 18)).random() < _SPREADS and params.classes == 1  # as above
        return _spread_engines_ahead(params, np.random.default_rng((seed, 19))) if spreads else params
    at_once = (drawn | given)["va"] == "free_queue" or (drawn | given)["speculation"]
    drawn |= {"rc_cycles": 1 if at_once else int(rng.integers(1, 3)), "lookahead": LookAhead()}
    params = RouterParams(**(drawn | given))
    fields = rng.integers(0, 1 << params.route_bits, int(rng.integers(6, 12)))
    params = replace(params, lookahead=LookAhead(int(rng.integers(1, 1 << params.ports)), tuple(fields.tolist())))
    spreads = np.random.default_rng((seed, 18)).random() < _SPREADS and not {"routes", "sa"} & set(given)  # as above
    return _spread_ahead(params, np.random.default_rng((seed, 19))) if spreads else params


def _spread(parameters: dict[str, Any], rng: np.random.Generator) -> dict[str, int]:
    """Draw how a router takes one of several ports, if it can."""
    if parameters["rc"] == "table":
        if any(route.escape is not None for route in parameters["routes"]):
            return {}
    elif parameters["output_kind"] != "port_set":
        return {}
    number = int(rng.integers(1 << 32))
    used = 2 * parameters["address_bits"] + parameters["tag_bits"] + parameters["length_bits"]
    room = max(0, min(8, parameters["width_bits"] - used))
    return {"spread_router": number, "entropy_bits": int(rng.integers(0, room + 1))}


def _spread_engines_ahead(params: RouterParams, rng: np.random.Generator) -> RouterParams:
    """Let the engines of a router with look-ahead answer sets of ports, and draw the routers behind it."""
    assert params.lookahead is not None
    behind = tuple(Behind(int(rng.integers(1 << 32)), ()) if params.carries(o) else None for o in range(params.ports))
    room = max(0, min(8, params.width_bits - params.header_bits))
    return replace(
        params, output_kind="port_set", lookahead=replace(params.lookahead, behind=behind),
        spread_router=int(rng.integers(1 << 32)), entropy_bits=int(rng.integers(0, room + 1)),
    )  # fmt: skip


def _spread_ahead(params: RouterParams, rng: np.random.Generator) -> RouterParams:
    """Let a router with look-ahead take one of several ports, and draw the routers behind it."""
    assert params.lookahead is not None

    def routes() -> tuple[Route, ...]:
        return draw_routes(rng, params.ports, params.classes, count=11, adaptive=True, escape=False)

    own, behind = routes(), [Behind(int(rng.integers(1 << 32)), routes()) for _ in range(params.ports)]
    there = [each if rng.random() < 0.8 else None for each in behind]
    lookahead = replace(params.lookahead, next_routes=(), behind=tuple(there))
    return replace(params, routes=own, spread_router=int(rng.integers(1 << 32)), lookahead=lookahead)


def _quality(rng: np.random.Generator, vcs: int) -> Quality | None:
    """Draw what classes of traffic are due; in most routers nothing."""
    if rng.random() >= _QUALITIES:
        return None
    count = int(rng.integers(1, vcs + 1))
    return Quality(
        kind=("strict", "weighted")[int(rng.integers(2))],  # type: ignore[arg-type]
        of_vc=tuple(rng.integers(0, count, vcs).tolist()),
        priorities=tuple(rng.integers(0, 4, count).tolist()),
        weights=tuple(rng.integers(1, 5, count).tolist()),
    )


def _engine(rng: np.random.Generator, output_bits: int, request_tag_bits: int) -> LookupParams:
    tcam: Literal["external", "flops"] = "flops" if rng.random() < 1 / 3 else "external"
    return LookupParams(
        address_bits=_ADDRESS_BITS, functions=("arbitrary", "torus"), chunk_bits=(3,), comparators=2,
        entries=int(rng.choice([4, 8, 16])), ways=int(rng.choice([1, 2, 4])), tag_bits=16, output_bits=output_bits,
        epoch_bits=2, mshrs=int(rng.integers(1, 5)), request_tag_bits=request_tag_bits,
        pipeline_depth=int(rng.integers(1, 5)), tcam_kind=tcam, tcam_rows=4,
    )  # fmt: skip
