"""The hardware that a file describes, as parameters: engine, routers, network. What is generated starts here."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hopforge.hw.network.acknowledge_port import AcknowledgeSetup
from hopforge.hw.network.interface import NetworkInterface
from hopforge.model.config import Config
from hopforge.model.config.lookup import DEEP_LEAST
from hopforge.model.config.simulation import DegradedConfig, FailedConfig
from hopforge.model.errors import UserError
from hopforge.model.irregular.table_routes import known_routes
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.lookup.key_validity import check_expression
from hopforge.model.lookup.params import LookupParams
from hopforge.model.network.service_ports import with_service_ports
from hopforge.model.router.acknowledging_host import HardwareRules
from hopforge.model.router.configured import iterations, network_params
from hopforge.model.router.factor import compile_tables
from hopforge.model.router.links import topology_hosts
from hopforge.model.router.params import CYCLES_PER_FLIT_MAX, RouterParams, check_input_vcs
from hopforge.model.router.path_rules import PathRules, path_rules
from hopforge.model.router.program import RouterProgram, router_program
from hopforge.model.router.reply_rules import reply_rules
from hopforge.model.router.service_host import tables_with_service
from hopforge.model.router.stream_params import StreamParams
from hopforge.model.router.tables import RouterTables
from hopforge.model.routing.combined.configured import routing_network, routing_plan
from hopforge.model.routing.combined.message_classes import acknowledge_mask
from hopforge.model.routing.contract.around_failures import check_algorithm
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan
from hopforge.model.shared import once
from hopforge.model.topology import Topology, build
from hopforge.model.topology.configured import network_topology
from hopforge.model.topology.degraded import with_degraded
from hopforge.model.topology.failed import without_failed
from hopforge.model.topology.link_times import in_cycles

__all__ = [
    "NetworkDesign",
    "check_interfaces",
    "engine_parameters",
    "network_design",
    "network_streams",
    "packaged_engine_parameters",
    "router_design",
    "stream_design",
    "whole_network_design",
]

ROUTER_DEPTH = 4
"""Deepest engine in a router: its register bus shows what an engine reads in the following cycle."""


def engine_parameters(config: Config) -> LookupParams:
    """Parameters of the engine that a configuration describes.

    Raises
    ------
    UserError
        If the hardware cannot do what the configuration wants, or keys of an expression do not fit the network.
    """
    if config.lookup.expression is not None:
        topology = routing_network(build(config.topology, config.address))
        check_expression(config, configured_reduction(config, topology), known_routes(config, topology))
    return _engine_parameters(config)


def packaged_engine_parameters(config: Config) -> LookupParams:
    """Parameters of the engine that `hopforge gen lookup` writes, with the bus of the file before its registers.

    Raises
    ------
    UserError
        As `engine_parameters`, or a bus that engines of this depth do not have.
    """
    params = engine_parameters(config)
    if params.pipeline_depth >= DEEP_LEAST and config.csr.bus != "native":
        raise UserError(
            f"csr.bus must be native with lookup.pipeline_depth={params.pipeline_depth} (others: up to "
            f"{DEEP_LEAST - 1}), not {config.csr.bus}"
        )
    return params


def _engine_parameters(config: Config) -> LookupParams:
    try:
        return LookupParams.from_config(config)
    except ValueError as error:
        raise UserError(f"{config.name}: {error}") from None


@dataclass(frozen=True, eq=False)
class NetworkDesign:
    """The routers of a configured network.

    Attributes
    ----------
    config : Config
        What it comes from.
    topology : Topology
        The network.
    tables : RouterTables
        Its routing.
    params : tuple of RouterParams
        Every router.
    paths : PathRules, optional
        Which path the hosts' packets take, where there are several.
    """

    config: Config
    topology: Topology
    tables: RouterTables
    params: tuple[RouterParams, ...]
    paths: PathRules | None = None

    @property
    def plain_topology(self) -> Topology | None:
        """The network for a simulator, which adds service ports and takes failed parts away; None: build it anew."""
        whole = self.config.traffic.acknowledge is None and not self.topology.damaged
        return self.topology if whole else None

    @cached_property
    def programs(self) -> tuple[RouterProgram, ...]:
        """What software writes into all routers; none without lookup engines."""
        looked_up = self.params[0].lookup is not None
        return tuple(self.program(router) for router in range(len(self.params))) if looked_up else ()

    def program(self, router: int) -> RouterProgram:
        """Return what software writes into a router with lookup engines."""
        return router_program(self.config, self.topology, self.tables, self.params[router], router)


def network_design(config: Config, *, service_ports: bool = False, failed: bool = False) -> NetworkDesign:
    """Compile the routing of a configuration into parameters of routers; once for all commands that are prepared.

    Parameters
    ----------
    config : Config
        Checked configuration.
    service_ports : bool
        Routers may have ports for acknowledges.
    failed : bool
        Leave out the links of section `failed`, and route around them; those of `degraded` are slow. False: the
        sections are not read.

    Raises
    ------
    UserError
        A network, routing or router that the hardware cannot be.
    """
    sections = (
        config.name, config.topology, config.address, config.lookup, config.router, config.routing, config.tables,
        config.seed, config.traffic.reply, config.traffic.acknowledge, config.traffic.classes, config.traffic.entropy,
    )  # fmt: skip
    if config.traffic.acknowledge is not None and not service_ports:
        raise UserError(
            "traffic.acknowledge must be null for hardware other than a whole network (hopforge gen network): a router "
            "by itself has no service host"
        )
    broken, slow = (config.failed, config.degraded) if failed else (FailedConfig(), DegradedConfig())
    return once(("design", *sections, broken, slow), lambda: _network_design(config, broken, slow))


def _network_design(config: Config, broken: FailedConfig, slow: DegradedConfig) -> NetworkDesign:
    lookup = None
    if config.router.model != "input_queued":
        raise UserError(f"router.model must be input_queued for hardware, not {config.router.model}")
    if config.router.route_computation == "lookup":
        lookup = _engine_parameters(config)  # keys are checked against the routing, in `program`
        if lookup.pipeline_depth > ROUTER_DEPTH:
            raise UserError(
                f"lookup.pipeline_depth must be at most {ROUTER_DEPTH} for engines in routers in "
                f"hardware, not {lookup.pipeline_depth}"
            )
    _check_slow(config, slow)
    topology, vcs = with_degraded(network_topology(config), slow, config.seed), config.router.vcs
    if config.traffic.acknowledge is not None:
        topology = with_service_ports(topology)
    topology = _without(config, topology, broken)
    try:
        router = config.router
        check_input_vcs(
            topology.max_ports, vcs, router.va, router.vc_arbiter, router.vc_arbiter_key, iterations(router)["va"]
        )
    except ValueError as error:
        raise UserError(f"router.{error}") from error
    paths = path_rules(config, topology)
    plan = routing_plan(config, topology)
    _check_ties(config, topology, plan)
    tables = compile_tables(topology, plan, vcs, config.routing.algorithm)
    if config.traffic.acknowledge is not None:
        tables = tables_with_service(topology, tables, vcs, acknowledge_mask(plan, vcs))
    return NetworkDesign(config, topology, tables, network_params(config, topology, tables, lookup=lookup), paths)


def _check_ties(config: Config, topology: Topology, plan: RoutingPlan) -> None:
    """Refuse ties that draw random numbers where that is all that no table can do."""
    if plan.random and config.routing.ties == "random":
        plain = config.model_copy(update={"routing": config.routing.model_copy(update={"ties": "plus"})})
        if not routing_plan(plain, topology).random:
            raise RoutingError("routing.ties random draws numbers, which no table of a router can: take plus or key")


def _check_slow(config: Config, slow: DegradedConfig) -> None:
    """Refuse slow links that routers in hardware cannot have."""
    if slow.none:
        return
    if slow.factor * CYCLES_PER_FLIT_MAX < 1:
        raise UserError(f"degraded.factor must be at least 1/{CYCLES_PER_FLIT_MAX} in hardware, not {slow.factor:g}")
    if config.router.sa == "input_ahead":
        raise UserError(
            "router.sa must be another than input_ahead for hardware with degraded links: its inputs choose before an "
            "output says that it waits"
        )


def _without(config: Config, topology: Topology, broken: FailedConfig) -> Topology:
    """Take away what has failed, if routing goes around it and nobody waits for an answer of a failed switch."""
    if broken.none:
        return topology
    check_algorithm(config.routing)
    for key in ("reply", "acknowledge") if broken.switches else ():
        if getattr(config.traffic, key) is not None:
            raise UserError(
                f"failed.switches must be empty for hardware with traffic.{key}: hosts of a failed switch do not answer"
            )
    return without_failed(topology, broken)


def stream_design(config: Config, design: NetworkDesign, router: int) -> tuple[StreamParams, ...]:
    """Return the AXI-Stream adapters of a router, one at each of its hosts; none where hosts have flits.

    Raises
    ------
    UserError
        A router that they do not fit, or without a host.
    """
    if config.router.host_ports == "flits":
        return ()
    ends = enumerate(design.topology.host_at[router].tolist())
    found = [_stream(design, router, port, host) for port, host in ends if host >= 0]
    if not found:
        raise UserError(f"router.host_ports must be flits for --router {router}, which has no host, not axi_stream")
    return tuple(found)


def network_streams(design: NetworkDesign) -> tuple[StreamParams, ...]:
    """Return the AXI-Stream adapters of a network, one for each host in order; none where hosts have flits.

    Raises
    ------
    UserError
        A router that they do not fit, or hosts whose flits something else makes or sees.
    """
    config = design.config
    if config.router.host_ports == "flits":
        return ()
    for key, made in (("reply", config.traffic.reply), ("acknowledge", config.traffic.acknowledge)):
        if made is not None:
            raise UserError(f"traffic.{key} must be null for hopforge gen network with router.host_ports=axi_stream")
    ends = topology_hosts(design.topology)
    return tuple(_stream(design, end.router, end.port, host) for host, end in enumerate(ends))


def _stream(design: NetworkDesign, router: int, port: int, host: int) -> StreamParams:
    """Return the adapter of a host."""
    if design.config.traffic.classes:
        raise UserError(
            "traffic.classes must be empty with router.host_ports=axi_stream: an adapter does not know the class of a "
            "packet"
        )
    params = design.params[router]
    if params.entropy_bits:
        raise UserError("traffic.entropy must be null with router.host_ports=axi_stream: an adapter writes none")
    own = host if params.rc == "table" else int(design.topology.host_address[host])
    try:
        return StreamParams(
            router=params, port=port, own=own, beats=design.config.router.stream_beats,
            vcs_at_injection=int(design.tables.inject_mask[host]),
        )  # fmt: skip
    except ValueError as error:
        raise UserError(f"router: {str(error).replace('width_bits', 'flit_bits', 1)}") from error


def router_design(config: Config, *, router: int = 0) -> NetworkDesign:
    """Return the routers of a configuration, of which one is wanted.

    Raises
    ------
    UserError
        As `network_design`, or no such router.
    """
    design = network_design(config)
    if not 0 <= router < len(design.params):
        raise UserError(f"--router must be below {len(design.params)}, the routers of the network, not {router}")
    if design.params[router].lookup is not None:
        design.program(router)  # keys that do not fit the routes are found here
    stream_design(config, design, router)
    return design


def whole_network_design(config: Config) -> NetworkDesign:
    """Return the routers of a configuration that are generated with all their links.

    Raises
    ------
    UserError
        As `network_design`, or a bus that networks do not have.
    """
    if config.csr.bus != "native":
        raise UserError(f"csr.bus must be native for hopforge gen network, not {config.csr.bus}")
    design = network_design(config, service_ports=True, failed=True)
    check_interfaces(design)
    network_streams(design)
    _ = design.programs
    return design


def acknowledge_setup(design: NetworkDesign) -> AcknowledgeSetup | None:
    """Return what serves acknowledges at the routers of a network; None: they have none.

    Raises
    ------
    UserError
        Acknowledges that hardware cannot give.
    """
    config, topology = design.config, design.topology
    found, vcs = config.traffic.acknowledge, config.router.vcs
    if found is None:
        return None
    hosts = np.bincount(topology.host_router, minlength=topology.routers)
    if (hosts != 1).any():
        router = int(np.flatnonzero(hosts != 1)[0])
        raise UserError(
            f"traffic.acknowledge must be null for hardware with other than one host at a router (router {router} has "
            f"{hosts[router]})"
        )
    for router, behind in enumerate(topology.peer_router.tolist()):
        several = [other for other in behind if other >= 0 and behind.count(other) > 1]
        if several:
            raise UserError(
                "traffic.acknowledge must be null for hardware with several links between two routers, which tables do "
                f"not tell apart (router {router} has {behind.count(several[0])} to router {several[0]})"
            )
    if topology.hosts + topology.routers > 1 << config.address.width_bits:
        raise UserError(
            f"address.width_bits must have room for {topology.hosts} hosts and {topology.routers} service hosts, not "
            f"{config.address.width_bits}"
        )
    if found.skew_cycles:
        raise UserError(f"traffic.acknowledge.skew_cycles must be 0 in hardware, not {found.skew_cycles}")
    settings = found.model_dump(exclude={"vcs", "skew_cycles"})
    rules = HardwareRules(**settings, arrivals=_arrivals(config, design.params[0]))
    try:
        rules.check(design.params[0])
    except ValueError as error:
        raise UserError(f"traffic.acknowledge: {error}") from error
    mask = acknowledge_mask(routing_plan(config, topology), vcs)
    return AcknowledgeSetup(rules, tuple(v for v in range(vcs) if mask >> v & 1))


def _arrivals(config: Config, params: RouterParams) -> int:
    """Return how many packets can be between an input of their last router and their host: in buffers and its link."""
    in_buffer = params.buffer_flits // config.traffic.shortest_packet + 1  # the last one may be on its way out
    return params.vcs * ((params.ports - 1) * in_buffer + 1) + in_cycles(config.router, "host_latency_cycles")


def check_interfaces(design: NetworkDesign) -> None:
    """Refuse replies and acknowledges that hardware cannot give.

    Raises
    ------
    UserError
        Naming the key.
    """
    acknowledge_setup(design)
    params, acknowledge = design.params[0], design.config.traffic.acknowledge
    if acknowledge is not None and acknowledge.flits > params.longest_packet:
        raise UserError(
            f"traffic.acknowledge.flits must be at most {params.longest_packet} in hardware (router.length_bits), not "
            f"{acknowledge.flits}"
        )
    rules = reply_rules(design.config)
    if rules is None:
        return
    try:
        NetworkInterface(params=params, rules=rules)
    except ValueError as error:
        raise UserError(f"traffic.reply.{error}") from error
