"""The two configurations that the demo makes of one: keys of node reduction, and whole addresses."""

from dataclasses import dataclass

from hopforge.gen.design.configured import packaged_engine_parameters
from hopforge.model.config import Config, ConfigError
from hopforge.model.config.load import suited
from hopforge.sim.cosim.prepared import prepare_engine
from hopforge.sim.hits.prepared import HitsSetup, prepare_hits

__all__ = ["KeysSetup", "prepare_demo"]


@dataclass(frozen=True, eq=False)
class KeysSetup:
    """One of the two, ready.

    Attributes
    ----------
    config : Config
        Complete configuration.
    hits : HitsSetup
        Its replay at its start.
    """

    config: Config
    hits: HitsSetup


def prepare_demo(config: Config) -> tuple[KeysSetup, KeysSetup]:
    """Make both kinds of keys ready, those of node reduction first; both must fit the network and the hardware.

    A network that the simulator refuses is no mistake here.

    Raises
    ------
    UserError
        A mistake; one of the kind that the file does not ask for says so.
    """
    reduced, whole = (_with_keys(config, reduction=reduction) for reduction in (True, False))
    return _ready(reduced), _ready(whole)


def _with_keys(config: Config, *, reduction: bool) -> Config:
    lookup = config.lookup.model_copy(update={"reduction": reduction})
    name = config.name if reduction else f"{config.name}_whole_address"
    variant = config.model_copy(update={"name": name, "lookup": lookup})
    try:
        return suited(variant, hardware=True, keys=True)
    except ConfigError as error:
        if reduction == config.lookup.reduction:
            raise
        why = f" (the demo makes keys with lookup.reduction: {str(reduction).lower()}, too)"
        raise ConfigError("\n".join(line + why for line in str(error).split("\n"))) from error


def _ready(config: Config) -> KeysSetup:
    prepare_engine(config)
    packaged_engine_parameters(config)
    return KeysSetup(config, prepare_hits(config))
