"""The router models by name (``router.model``): which commands each can run, and what runs them.

The commands ask here and know no model. To add one, write a `sim.run.model_runs.ModelRuns` and name it in
`ROUTER_MODELS`; what is behind a name is loaded when it is used.
"""

from dataclasses import dataclass

from hopforge.model.config import Config, TiersConfig
from hopforge.model.errors import UserError


@dataclass(frozen=True)
class RouterModel:
    """A router model.

    Attributes
    ----------
    name : str
        Value of ``router.model``.
    place : str
        Module and name of its `ModelRuns`.
    able : tuple of str
        Commands that it can run.
    reason : str
        Why it cannot run others.
    """

    name: str
    place: str
    able: tuple[str, ...]
    reason: str = ""


_FLITS = "hopforge.sim.run.flit_runs:FLIT_RUNS"
_ALL = ("net", "series", "sweep", "trace", "app")
ROUTER_MODELS = {
    model.name: model
    for model in (
        RouterModel("input_queued", _FLITS, _ALL),
        RouterModel("input_output_queued", _FLITS, _ALL),
        RouterModel(
            "packet", "hopforge.sim.packet.runs:PACKET_RUNS", ("net", "series", "sweep", "app"), "it has no flits"
        ),
    )
}


def refuse(model: RouterModel, what: str) -> UserError:
    """Return the mistake of asking a model for what it cannot do."""
    *others, last = model.able
    return UserError(
        f"router.model {model.name} cannot run {what}, because {model.reason}; it runs hopforge {', '.join(others)} "
        f"and {last}"
    )


def router_model(config: Config, command: str) -> RouterModel:
    """Return the router model of a configuration, for a command.

    Raises
    ------
    UserError
        The model cannot run it.
    """
    model = ROUTER_MODELS[config.router.model]
    if command not in model.able:
        raise refuse(model, f"hopforge {command}")
    if model.name != "input_queued" and not config.degraded.none:
        raise UserError(f"degraded: router.model {model.name} takes all links as alike")
    tiers = config.topology.tiers if isinstance(config.topology, TiersConfig) else ()
    if model.name != "input_queued" and any(tier.gbps or tier.latency_ns is not None for tier in tiers):
        what = f"router.model {model.name}"
        raise UserError(f"topology.tiers: {what} takes all links as alike; remove gbps and latency_ns")
    return model
