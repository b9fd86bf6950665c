"""Keys that packet routers (``router.model: packet``) do not read: of other sources, and of other routing."""

from collections.abc import Iterable

from hopforge.model.config.choice_keys import never_read
from hopforge.model.config.root import Config
from hopforge.model.config.workload import ProgramWorkload

#: of section `packet`: about sources with a load
_OF_SOURCES = ("feed", "process", "phase", "messages")
#: of section `packet`: about intermediate destinations beside the minimal way
_OF_OUTFLANK = ("outflank_distance", "outflank_share")
#: of section `packet`: about heads that are sent on before the rest
_OF_HEADS = ("head_bytes",)
#: commands that run a network
_NETWORKS = {"net", "series", "sweep"}
#: others that may read them, with other routers
_OTHERS = {"demo", "trace", "collectives"}


def unread_packet_keys(configs: Iterable[Config], commands: set[str]) -> list[str]:
    """Return the keys that the files give and that none of the commands reads with packet routers, in order.

    Parameters
    ----------
    configs : iterable of Config
        A configuration and its variants; a key that is read in one of them is read.
    commands : set of str
        The commands.
    """
    return never_read(
        (key, any(_reads(config, command, key) for command in commands))
        for config in configs
        for key in _written(config)
    )


def _written(config: Config) -> list[str]:
    """Return the keys in question that a file gives."""
    keys = (*_OF_SOURCES, *_OF_OUTFLANK, *_OF_HEADS)
    found = [f"packet.{key}" for key in keys if key in config.packet.model_fields_set]
    if isinstance(config.workload, ProgramWorkload) and "mtu_bytes" in config.workload.model_fields_set:
        found.append("workload.mtu_bytes")
    if "flit_bytes" in config.traffic.model_fields_set:
        found.append("traffic.flit_bytes")
    return found


def _reads(config: Config, command: str, key: str) -> bool:
    """Tell whether a command reads a key; commands that run no network are not judged."""
    of_app = command == "app" or (command == "sweep" and "app" in config.written)
    if not (of_app or command in _NETWORKS):
        return command in _OTHERS or key == "workload.mtu_bytes"
    if config.router.model != "packet":
        return not key.startswith("packet.")
    if key.removeprefix("packet.") in _OF_OUTFLANK:
        return config.routing.algorithm == "ofr" and (not of_app or config.app.engine == "packet")
    if key.removeprefix("packet.") in _OF_HEADS:
        return config.packet.switching == "vct" and (not of_app or config.app.engine == "packet")
    if of_app:
        return config.app.engine != "packet" or key == "traffic.flit_bytes"
    return config.traffic.source != "program"
