"""What each command makes of a file before it runs: the commands and `hopforge check` ask here.

To add a command, name its function in `COMMANDS`, and its sections in `model.config.uses`.
"""

from importlib import import_module
from typing import Any, NamedTuple

from hopforge.model.config import Config
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.load import suited
from hopforge.model.config.topology import EdgeListConfig
from hopforge.model.config.uses import unused_sections, uses_keys
from hopforge.model.config.workload import ChakraWorkload, TraceWorkload
from hopforge.model.errors import UserError
from hopforge.model.topology.configured import configured_network

__all__ = ["COMMANDS", "Command", "for_command", "prepare"]


class Command(NamedTuple):
    """A command that reads a file.

    Attributes
    ----------
    place : str
        Module and name of the function that prepares it.
    hardware : bool
        What the functional model can do and the hardware cannot is a mistake.
    asked_by : str
        Section without which `hopforge check` does not prepare it, unless it is asked to.
    """

    place: str
    hardware: bool = False
    asked_by: str = ""


_DESIGN = "hopforge.gen.design.configured"
_COSIM = "hopforge.sim.cosim.prepared"
#: commands whose links have latencies in cycles, unless the model of their routers has ns
_IN_CYCLES = {"net", "series", "sweep", "trace", "demo"}
_PLANE = "hopforge.model.router.collective_plane"
_RULES = "hopforge.model.lookup.rules.rule_cache_params:RuleCacheParams.from_config"
_RUN = "hopforge.sim.run.prepared"
COMMANDS: dict[str, Command] = {
    "topology": Command("hopforge.model.topology.configured:configured_network"),
    "bounds": Command("hopforge.sim.bounds.prepared:prepare_bounds", asked_by="traffic"),
    "route": Command("hopforge.model.irregular.configured:prepare_route", asked_by="tables"),
    "net": Command(f"{_RUN}:prepare_net"),
    "series": Command(f"{_RUN}:prepare_series"),
    "sweep": Command("hopforge.sim.start.preparation:prepare_sweep"),
    "trace": Command(f"{_RUN}:prepare_trace"),
    "hits": Command("hopforge.sim.hits.prepared:prepare_hits", asked_by="workload"),
    "wavelengths": Command("hopforge.sim.hits.wavelengths:prepare_wavelengths", asked_by="wavelengths"),
    "app": Command("hopforge.sim.programs.app_setup:prepare_app", asked_by="workload"),
    "workload": Command("hopforge.sim.programs.app_setup:checked_program", asked_by="workload"),
    "collectives": Command(
        "hopforge.sim.programs.network_collectives:prepare_collectives", asked_by="collective_plane"
    ),
    "gen lookup": Command(f"{_DESIGN}:packaged_engine_parameters", hardware=True),
    "gen router": Command(f"{_DESIGN}:router_design"),
    "gen network": Command(f"{_DESIGN}:whole_network_design"),
    "gen tables": Command("hopforge.gen.packages.tables:prepare_tables", asked_by="tables"),
    "gen q-table": Command("hopforge.model.router.q_table:QTableParams.from_config"),
    "gen collectives": Command(f"{_PLANE}:configured_plane", asked_by="collective_plane"),
    "gen rule-cache": Command(_RULES, asked_by="rule_cache"),
    "cosim --part lookup": Command(f"{_COSIM}:prepare_engine", hardware=True),
    "cosim --part router": Command(f"{_DESIGN}:network_design", hardware=True),
    "cosim --part network": Command(f"{_COSIM}:prepare_network", hardware=True),
    "cosim --part service_host": Command("hopforge.gen.design.service_host:service_host_design", hardware=True),
    "cosim --part collectives": Command(f"{_PLANE}:configured_plane", asked_by="collective_plane"),
    "cosim --part rule_cache": Command(_RULES, asked_by="rule_cache"),
    "cosim --part q_table": Command("hopforge.model.router.q_table:QTableParams.from_config", hardware=True),
    "energy --part lookup": Command(f"{_COSIM}:prepare_engine", hardware=True),
    "energy --part router": Command(f"{_DESIGN}:network_design", hardware=True),
    "lint": Command("hopforge.sim.start.preparation:prepare_lint"),
    "prove": Command("hopforge.gen.formal.all_proofs:configured_tasks", asked_by="lookup"),
    "mutate": Command(f"{_DESIGN}:engine_parameters", hardware=True),
    "synth": Command(f"{_DESIGN}:engine_parameters", hardware=True),
    "timing": Command(f"{_DESIGN}:packaged_engine_parameters", hardware=True),
    "fpga --design engine": Command("hopforge.gen.fpga.board_design:engine_on_board_parameters", hardware=True),
    "fpga --design network": Command("hopforge.gen.fpga.board_design:network_on_board_design", hardware=True),
    "demo": Command("hopforge.sim.start.demo_variants:prepare_demo", hardware=True, asked_by="workload"),
}
"""Command, with its part → what prepares it."""


def for_command(command: str, config: Config) -> Config:
    """Return a configuration, read by ``load_config(path, keys=False)``, as a command uses it.

    Raises
    ------
    ConfigError
        Addresses, engine or hardware that are no good for it.
    """
    entry = COMMANDS[command]
    config = suited(config, hardware=entry.hardware, keys=uses_keys(config, command)).model_copy()
    config._unused = (
        *unused_sections(config, [command]), *_unread_of_program(command, config), *_unread_of_network(command, config)
    )  # fmt: skip
    return config


def _unread_of_program(command: str, config: Config) -> list[str]:
    """Return the keys that are not read with the program of a file; only traces have to be looked at."""
    variants = (config, *config.variants.values())
    if not _runs_program(command, config):
        return []
    if not any(isinstance(each.workload, (TraceWorkload, ChakraWorkload, JobsWorkload)) for each in variants):
        return []
    from hopforge.sim.programs.schedule_keys import unread_program_keys  # noqa: PLC0415 - loads kernels

    return unread_program_keys(variants)


def _runs_program(command: str, config: Config) -> bool:
    return command == "app" or (command == "sweep" and "app" in config.written)


def _unread_of_network(command: str, config: Config) -> list[str]:
    """Return what is not read of a file that holds a network: the latencies of its links, in cycles.

    Programs, hit rates and collectives have the times of section `timing`, other routers than those of
    docs/definitions/router.md have ns.
    """
    in_ns = _runs_program(command, config) or command in ("hits", "collectives")
    for each in (config, *config.variants.values()):
        if not isinstance(each.topology, EdgeListConfig):
            continue
        if in_ns or (command in _IN_CYCLES and each.router.model == "input_output_queued"):
            try:
                timed = configured_network(each).link_cycles is not None
            except (UserError, OSError):  # said where the network is built
                continue
            if timed:
                return ["topology.file (latencies of its links)"]
    return []


def prepare(command: str, config: Config, **options: Any) -> Any:
    """Return what a command makes of a configuration (of `for_command`) before it runs.

    Parameters
    ----------
    command : str
        A name of `COMMANDS`.
    config : Config
        The file.
    **options
        Of the command, for the function that prepares it.

    Raises
    ------
    UserError
        Why it is no good for the command.
    """
    module, names = COMMANDS[command].place.split(":")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found(config, **options)


def prepare_sweep(config: Config) -> None:
    """Make the first run of every variant ready."""
    from hopforge.sim.run.model_runs import runs_programs  # noqa: PLC0415 - each command loads its own

    if runs_programs(config):
        from hopforge.sim.programs.app_setup import prepare_programs  # noqa: PLC0415
        from hopforge.sim.run.jobs import program_jobs  # noqa: PLC0415

        prepare_programs(program_jobs(config))
    else:
        from hopforge.sim.run.prepared import prepare_network_sweep  # noqa: PLC0415

        prepare_network_sweep(config)


def prepare_lint(config: Config) -> None:
    """Make what `hopforge lint` looks at ready: lookup engine and router."""
    from hopforge.gen.design.configured import packaged_engine_parameters, router_design  # noqa: PLC0415

    packaged_engine_parameters(config)
    router_design(config)
