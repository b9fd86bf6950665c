"""Which keys of section `routing` an algorithm reads: others in a file change nothing, and are told.

`tests/model/config/test_routing_keys.py` holds each algorithm to it: a key that it does not read changes no plan, one
that it reads changes one.
"""

from collections.abc import Iterable

from hopforge.model.config.root import Config
from hopforge.model.config.routing import DECIDE_AHEAD, DECIDE_AT_SOURCE

_LEARNING = {"q_adaptive", "q_routing"}
_UGAL = {"ugal", "ugal_global"}
_DETOURS = {"minimal", "valiant", "valiant_compact", "ugal_compact", *_UGAL}

ROUTING_KEYS: dict[str, set[str]] = {
    "vc_rule": {"dor", "valiant"},
    "ties": {"dor", "valiant", "dqn", "nca"},
    "ejection": {"dragonfly_min"},
    "class_vcs": {"dragonfly_min"},
    "bias": {"ugal_group", "ugal_node", "par", *_UGAL, "dimwar", "omniwar", "dal"},
    "deroutes": {"omniwar"},
    "ways": _DETOURS,
    "spread": {"minimal", "valiant", "tables"},
    "classes": _DETOURS,
    "candidates": _UGAL,
    "over": {"valiant", *_UGAL},
    "rule": {"ugal"},
    "decision": {*DECIDE_AT_SOURCE, *DECIDE_AHEAD},
    "alpha": _LEARNING,
    "beta": {"q_adaptive"},
    "epsilon": _LEARNING,
    "q_thld1": {"q_adaptive"},
    "q_thld2": {"q_adaptive"},
    "max_q": {"q_routing"},
    "estimate_bits": _LEARNING,
    "estimate_fraction_bits": _LEARNING,
    "estimate_rounding": _LEARNING,
    "root": {"up_down", "shortest_escape", *_DETOURS},
    "eta": {"por", "ofr"},
    "outflank_distance": {"ofr"},
    "dqn": {"dqn"},
}
"""Key of section `routing` → the algorithms that read it. Keys that are not here are read for every algorithm."""


#: keys of POR and OutFlank on routers of flits
_OF_DETOURS = {"eta", "outflank_distance"}
#: keys that dimension order and its kin read for rings only
_OF_RINGS = {"vc_rule", "ties"}


def unread_routing_keys(configs: Iterable[Config]) -> list[str]:
    """Return the keys that a file gives section `routing` and that its algorithm does not read, in their order.

    Parameters
    ----------
    configs : iterable of Config
        A configuration and its variants; a key that is read in one of them is read.
    """
    given: dict[str, bool] = {}
    for config in configs:
        for key in type(config.routing).model_fields:
            if key in config.routing.model_fields_set:
                given[key] = given.get(key, False) or _reads(config, key)
    return [f"routing.{key}" for key, read in given.items() if not read]


def _reads(config: Config, key: str) -> bool:
    algorithm = config.routing.algorithm
    if key == "proof_limit_s":  # routers of packets have another proof
        return config.routing.check and config.router.model != "packet"
    if key in _OF_DETOURS and config.router.model == "packet":  # it has its own in section `packet`
        return False
    if algorithm == "file":  # of one's own: it may read every key
        return True
    if key in _OF_RINGS and algorithm != "nca" and config.topology.kind != "torus":
        return False
    if algorithm == "valiant" and key in {"root", *_OF_RINGS}:
        return (key == "root") == _is_valiant_of_ways(config)
    return algorithm in ROUTING_KEYS.get(key, {algorithm})


def _is_valiant_of_ways(config: Config) -> bool:
    """Tell whether `valiant` is that of any network; on meshes and tori it is that of dimension order if it can be."""
    routing = config.routing
    asked = routing.ways or routing.classes or routing.spread or routing.over != "routers"
    return bool(asked) or config.topology.kind not in ("mesh", "torus")
