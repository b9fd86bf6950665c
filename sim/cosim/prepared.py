"""What `hopforge cosim` makes of a file before anything is generated or simulated: one function for each part."""

from hopforge.gen.design.configured import engine_parameters
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.program import engine_registers
from hopforge.sim.benches.network_setup import NetworkSetup, network_setup

__all__ = ["engine_setup", "prepare_engine", "prepare_network"]


def prepare_engine(config: Config) -> tuple[LookupParams, tuple[tuple[str, int], ...]]:
    """Return the lookup engine of a configuration, and its registers (`engine_setup`).

    Raises
    ------
    UserError
        An engine that the hardware cannot be.
    """
    params = engine_parameters(config)
    return params, engine_setup(config, params)


def engine_setup(config: Config, params: LookupParams) -> tuple[tuple[str, int], ...]:
    """Return the configuration registers of a switch in the middle of the network, as (register, word).

    Without node reduction, and in a network given as an edge list, keys are whole addresses.
    """
    reduction = configured_reduction(config)
    return tuple(engine_registers(config, params, reduction, reduction.routers // 2).items())


def prepare_network(
    config: Config,
    *,
    simulator: str | None = None,
    load: float | None = None,
    cycles: int | None = None,
    seed: int | None = None,
) -> NetworkSetup:
    """Return routers and packets of a configuration; what is not given is the file's.

    Raises
    ------
    UserError
        Routers that the hardware or the simulator cannot be, or nothing to compare.
    """
    reorder = config.traffic.reorder
    if reorder is not None and reorder.buffer_packets is not None:
        raise UserError(
            "traffic.reorder.buffer_packets must be null for --part network, whose hosts have no reorder buffer, not "
            f"{reorder.buffer_packets}"
        )
    return network_setup(
        config,
        config.simulation.load if load is None else load,
        config.seed if seed is None else seed,
        config.cosim.cycles if cycles is None else cycles,
    )
