"""Keys of classes of traffic that a file gives and that nothing reads."""

from collections.abc import Iterable

from hopforge.model.config.root import Config
from hopforge.model.config.traffic_classes import TrafficClassConfig

_READ_BY = {"priority": "strict", "weight": "weighted"}
_DEFAULTS = ("packet_flits", "pattern")


def unread_class_keys(configs: Iterable[Config], *, loads: bool) -> list[str]:
    """Return the keys that nothing reads because of classes of traffic, in their order.

    Parameters
    ----------
    configs : iterable of Config
        A configuration and its variants; a key that is read in one of them is read.
    loads : bool
        The command reads the load of the file.
    """
    given: dict[str, bool] = {}
    for config in configs:
        traffic, classes = config.traffic, config.traffic.classes
        if not classes:
            given |= dict.fromkeys((*(f"traffic.{key}" for key in _DEFAULTS), "simulation.load"), True)
            continue
        for key, kind in _READ_BY.items():
            if any(getattr(each, key) != TrafficClassConfig.model_fields[key].default for each in classes):
                name = f"traffic.classes.{key}"
                given[name] = given.get(name, False) or config.router.qos == kind
        for key in _DEFAULTS:
            if key in traffic.model_fields_set:
                name = f"traffic.{key}"
                given[name] = given.get(name, False) or any(getattr(each, key) is None for each in classes)
        if loads and "load" in config.simulation.model_fields_set:
            shares = any(each.share is not None for each in classes)
            given["simulation.load"] = given.get("simulation.load", False) or shares
    return [key for key, read in given.items() if not read]
