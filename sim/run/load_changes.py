"""Which sources can change their load during a run (`simulation.load_steps`)."""

from hopforge.model.config import Config
from hopforge.sim.traffic import TrafficError


def check_load_changes(config: Config, load: float) -> None:
    """Refuse a source whose load cannot change, and a change from a load of 0, whose next packet never comes.

    Raises
    ------
    TrafficError
        It is none of `bernoulli`, `interval` and `rounds`, or the load is 0.
    """
    if config.traffic.classes:
        raise TrafficError("simulation.load_steps are for traffic without classes")
    if config.traffic.source not in ("bernoulli", "interval", "rounds"):
        raise TrafficError(
            f"simulation.load_steps need traffic.source bernoulli, interval or rounds, not {config.traffic.source}"
        )
    if load == 0:
        raise TrafficError("simulation.load_steps: a load of 0 cannot change: no host has a next packet")
