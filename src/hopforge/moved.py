"""Where modules were before the layout of 2026-11: an import from an old place is refused in one line."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

#: old place of a module or package -> its place now, both below ``hopforge.``
MODULES = {
    "gen.clock_gate_module": "gen.verilog.clock_gate",
    "gen.formal_allocators": "gen.formal.allocators",
    "gen.formal_buses": "gen.formal.buses",
    "gen.formal_classes": "gen.formal.classes",
    "gen.formal_deep_lookup": "gen.formal.deep_lookup",
    "gen.formal_engines": "gen.formal.engines",
    "gen.formal_expression": "gen.formal.expression",
    "gen.formal_lookup": "gen.formal.lookup",
    "gen.formal_next_lookup": "gen.formal.next_lookup",
    "gen.formal_protection": "gen.formal.protection",
    "gen.formal_q_table": "gen.formal.q_table",
    "gen.formal_reduction": "gen.formal.reduction",
    "gen.formal_router": "gen.formal.router",
    "gen.formal_rule_cache": "gen.formal.rule_cache",
    "gen.formal_rule_sets": "gen.formal.rule_sets",
    "gen.formal_second_level": "gen.formal.second_level",
    "gen.formal_shared_lookup": "gen.formal.shared_lookup",
    "gen.formal_streams": "gen.formal.streams",
    "gen.fpga_boards": "gen.fpga.boards",
    "gen.fpga_pll": "gen.fpga.pll",
    "gen.fpga_tools": "gen.fpga.tools",
    "gen.fpga_top": "gen.fpga.top",
    "gen.fpga_vivado": "gen.fpga.vivado",
    "gen.memory_modules": "gen.verilog.memories",
    "gen.modules": "gen.verilog.shared_modules",
    "gen.prove": "gen.formal.all_proofs",
    "gen.register_map": "gen.registers.maps",
    "gen.register_space": "gen.registers.space",
    "gen.synth_blocks": "gen.design.blocks",
    "gen.synth_cells": "gen.synth.cells",
    "gen.synth_inference": "gen.design.inference_blocks",
    "gen.synth_power": "gen.synth.power",
    "gen.synth_q_table": "gen.design.q_table_blocks",
    "gen.synth_recipes": "gen.tools.abc_recipes",
    "gen.synth_result": "gen.synth.result",
    "gen.synth_router": "gen.design.router_blocks",
    "gen.synth_stages": "gen.synth.stages",
    "gen.synth_timing": "gen.synth.timing",
    "gen.timing": "gen.synth.package_timing",
    "gen.verilog_header": "gen.verilog.header",
    "gen.verilog_module": "gen.verilog.module",
    "gen.verilog_names": "gen.verilog.names",
    "gen.verilog_tidy": "gen.verilog.tidy",
    "hw.cache_arrays": "hw.cache.arrays",
    "hw.collective_network": "hw.collectives.network",
    "hw.collective_unit": "hw.collectives.unit",
    "hw.controlled_router": "hw.router.controlled",
    "hw.deep_lookup": "hw.lookup.deep",
    "hw.engine_on_board": "hw.boards.engine",
    "hw.key_expression": "hw.keys.expression",
    "hw.key_maker": "hw.keys.maker",
    "hw.key_pipeline": "hw.keys.pipeline",
    "hw.key_stage": "hw.keys.stage",
    "hw.lookup_base": "hw.lookup.base",
    "hw.lookup_engine": "hw.lookup.engine",
    "hw.lookup_on_bus": "hw.lookup.on_bus",
    "hw.network_interface": "hw.network.interface",
    "hw.network_on_board": "hw.boards.network",
    "hw.router_core": "hw.router.core",
    "hw.router_csr": "hw.router.csr",
    "hw.router_on_bus": "hw.router.on_bus",
    "hw.stream_receiver": "hw.streams.receiver",
    "hw.stream_sender": "hw.streams.sender",
    "hw.streamed_router": "hw.router.streamed",
    "model.address": "model.numbers.address",
    "model.allocators": "model.router.allocators",
    "model.analytic": "sim.hits.analytic",
    "model.app_sweep": "sim.programs.app_sweep",
    "model.application": "sim.programs.application",
    "model.cache_delays": "sim.programs.cache_delays",
    "model.channel_loads": "sim.hits.channel_loads",
    "model.collectives": "model.workload.collectives",
    "model.config.choice_keys": "model.config.unread_keys",
    "model.config.class_keys": "model.config.unread_keys",
    "model.config.csr": "model.config.base",
    "model.config.dqn": "model.config.routing",
    "model.config.explain": "model.config.source",
    "model.config.failures": "model.config.simulation",
    "model.config.key_help": "model.config.reference",
    "model.config.packet": "model.config.router",
    "model.config.packet_keys": "model.config.unread_keys",
    "model.config.paths": "model.config.base",
    "model.config.quality": "model.config.traffic",
    "model.config.route_computation": "model.config.limits",
    "model.config.router_model": "model.config.limits",
    "model.config.routing_keys": "model.config.unread_keys",
    "model.config.rule_cache": "model.config.lookup",
    "model.config.spraying": "model.config.traffic",
    "model.config.traffic_classes": "model.config.traffic",
    "model.config.variants": "model.config.source",
    "model.config.wavelengths": "model.config.lookup",
    "model.controlled_router": "model.router.controlled",
    "model.crc": "model.numbers.crc",
    "model.csr": "model.lookup.csr",
    "model.deadlock": "model.routing.proof.deadlock",
    "model.energy": "sim.hits.energy",
    "model.failures": "sim.failures",
    "model.flow": "sim.programs",
    "model.galois_field": "model.numbers.galois_field",
    "model.hit_page": "sim.pages.hit_page",
    "model.hit_rates": "sim.hits.hit_rates",
    "model.input_output_queued": "sim.queued",
    "model.irregular.large": "sim.pages.route_large",
    "model.irregular.load": "sim.pages.route_load",
    "model.irregular.write": "sim.pages.route_write",
    "model.kept_runs": "sim.run.kept_results",
    "model.kernel_cache": "model.kernel.program_cache",
    "model.key_ports": "model.lookup.key_ports",
    "model.link_frames": "sim.run.link_frames",
    "model.link_times": "model.topology.link_times",
    "model.links": "model.router.links",
    "model.lookup_kernel": "model.lookup.fast",
    "model.lookup_measures": "sim.run.lookup_measures",
    "model.lookup_params": "model.lookup.params",
    "model.lookup_routing": "sim.run.lookup_routing",
    "model.measurement": "sim.run.measurement",
    "model.network.arena": "model.kernel.arena",
    "model.network.bits": "model.kernel.bits",
    "model.network.cache": "model.kernel.compile",
    "model.network.candidates": "model.network.core.candidates",
    "model.network.constant_record": "model.kernel.constant_record",
    "model.network.event_log": "model.network.core.event_log",
    "model.network.events": "model.network.core.events",
    "model.network.feedback": "model.network.parts.feedback",
    "model.network.hooks": "model.network.core.hooks",
    "model.network.lookup_build": "model.network.parts.lookup_build",
    "model.network.lookup_state": "model.network.core.lookup_state",
    "model.network.memory": "model.kernel.memory",
    "model.network.messages": "model.network.parts.messages",
    "model.network.packet_ends": "model.network.core.packet_ends",
    "model.network.part_compiler": "model.kernel.part_compiler",
    "model.network.program_arrays": "model.network.parts.program_arrays",
    "model.network.programs": "model.network.parts.programs",
    "model.network.progress": "model.network.core.progress",
    "model.network.records": "model.network.core.records",
    "model.network.rng": "model.kernel.rng",
    "model.network.route_lookup": "model.network.parts.route_lookup",
    "model.network.shared_switch": "model.network.parts.shared_switch",
    "model.network.sources": "model.network.core.sources",
    "model.network.speculation": "model.network.parts.speculation",
    "model.network.switch_allocation": "model.network.core.switch_allocation",
    "model.network.switch_match": "model.network.parts.switch_match",
    "model.network.vc_allocation": "model.network.core.vc_allocation",
    "model.network.wavefront": "model.network.parts.wavefront",
    "model.network_parameters": "sim.run.sources",
    "model.network_topology": "model.topology.configured",
    "model.node_reduction": "model.lookup.node_reduction",
    "model.packet": "sim.packet",
    "model.packet_script": "sim.run.packet_script",
    "model.packet_trace": "sim.run.packet_trace",
    "model.plots": "model.output.plots",
    "model.program": "model.workload.program",
    "model.program_calls": "model.workload.calls",
    "model.program_run": "sim.run.program_run",
    "model.program_traffic": "sim.traffic.program_traffic",
    "model.q_table": "model.router.q_table",
    "model.rank_times": "sim.programs.rank_times",
    "model.reference_stack": "model.lookup.reference_stack",
    "model.replay": "sim.hits.replay",
    "model.report": "sim.pages.report",
    "model.report_data": "sim.pages.report_data",
    "model.result_page": "sim.pages",
    "model.results": "model.output.results",
    "model.router_csr": "model.router.csr",
    "model.router_models": "sim.run.router_models",
    "model.router_network": "model.router.network",
    "model.router_params": "model.router.params",
    "model.router_program": "model.router.program",
    "model.router_tables": "model.router.tables",
    "model.routes": "model.lookup.routes",
    "model.routing.agent_parameters": "model.routing.agents.parameters",
    "model.routing.agents_around": "model.routing.agents.around",
    "model.routing.dragonfly_adaptive": "model.routing.dragonflies.adaptive",
    "model.routing.dragonfly_agents": "model.routing.agents.dragonfly",
    "model.routing.dragonfly_learning": "model.routing.dragonflies.learning",
    "model.routing.dragonfly_ways": "model.routing.dragonflies.ways",
    "model.routing.graph_detours": "model.routing.graphs.detours",
    "model.routing.grid_agents": "model.routing.agents.grid",
    "model.routing.ways_survey": "model.routing.ways.survey",
    "model.routing.ways_table": "model.routing.ways.table",
    "model.routing_cache": "model.lookup.routing_cache",
    "model.routing_table": "model.topology.routing_table",
    "model.run_statistics": "sim.run.run_statistics",
    "model.simulation": "sim.run.simulation",
    "model.single_router": "sim.drive.single_router",
    "model.smpi": "sim.programs",
    "model.summary": "sim.start.summary",
    "model.sweep": "sim.run.sweep",
    "model.tcam": "model.lookup.tcam",
    "model.time_series": "sim.run.time_series",
    "model.topology.export": "sim.pages.export",
    "model.topology.simgrid": "sim.programs.simgrid",
    "model.trace": "model.workload.trace",
    "model.traffic": "sim.traffic",
    "sim.bench": "sim.start.bench",
    "sim.bench_app": "sim.start.bench_app",
    "sim.bench_net": "sim.start.bench_net",
    "sim.bench_results": "sim.start.bench_results",
    "sim.bench_route": "sim.start.bench_route",
    "sim.cosim_parts": "sim.cosim.parts",
    "sim.cosim_run": "sim.cosim.run",
    "sim.crc_hash": "sim.benches.crc_hash",
    "sim.demo": "sim.start.demo",
    "sim.demo_network": "sim.start.demo_network",
    "sim.doctor": "sim.start.doctor",
    "sim.lookup": "sim.benches.lookup",
    "sim.mutate": "sim.cosim.mutate",
    "sim.network": "sim.benches.network",
    "sim.network_cosim": "sim.cosim.network",
    "sim.node_reduction": "sim.benches.node_reduction",
    "sim.q_table": "sim.benches.q_table",
    "sim.q_table_cosim": "sim.cosim.q_table",
    "sim.replay": "sim.drive.replay",
    "sim.replay_bench": "sim.drive.replay_bench",
    "sim.reproduce.booksim_diameter2": "sim.reproduce.booksim.diameter2",
    "sim.reproduce.booksim_reference": "sim.reproduce.booksim.reference",
    "sim.reproduce.dragonfly_runs": "sim.reproduce.dragonflies.runs",
    "sim.reproduce.lookup_cache_cost": "sim.reproduce.lookup.cache_cost",
    "sim.reproduce.lookup_conflicts": "sim.reproduce.lookup.conflicts",
    "sim.reproduce.lookup_conflicts_256": "sim.reproduce.lookup.conflicts_256",
    "sim.reproduce.lookup_direct_mapping": "sim.reproduce.lookup.direct_mapping",
    "sim.reproduce.lookup_faulty_ring": "sim.reproduce.lookup.faulty_ring",
    "sim.reproduce.lookup_help": "sim.reproduce.lookup.help",
    "sim.reproduce.lookup_model": "sim.reproduce.lookup.model",
    "sim.reproduce.lookup_parallel_tcams": "sim.reproduce.lookup.parallel_tcams",
    "sim.reproduce.lookup_reduction_cost": "sim.reproduce.lookup.reduction_cost",
    "sim.reproduce.lookup_wavelengths": "sim.reproduce.lookup.wavelengths",
    "sim.reproduce.routing_load": "sim.reproduce.routing.load",
    "sim.reproduce.routing_methods": "sim.reproduce.routing.methods",
    "sim.reproduce.routing_networks": "sim.reproduce.routing.networks",
    "sim.reproduce.routing_qos": "sim.reproduce.routing.qos",
    "sim.router": "sim.drive.router",
    "sim.router_cosim": "sim.cosim.router",
    "sim.router_packets": "sim.drive.router_packets",
    "sim.router_stimulus": "sim.drive.router_stimulus",
    "sim.router_variants": "sim.drive.router_variants",
    "sim.routing_cache": "sim.benches.routing_cache",
    "sim.runner": "sim.drive.runner",
    "sim.stimulus": "sim.drive.stimulus",
    "sim.tcam": "sim.benches.tcam",
}
#: room -> modules that lay loose beside it and have kept their names
_INTO_ROOMS = {
    "gen.design": "service_host",
    "gen.fpga": "board_design",
    "gen.mutation": "and_graph mutate unreachable_fault",
    "gen.packages": (
        "collectives constraints lint_config litex_module lookup network package q_table register_bus router "
        "rule_cache smoke_bench stream_ports tables"
    ),
    "gen.registers": "c_header svd systemrdl",
    "gen.synth": "gate_cells gate_energy",
    "gen.tools": "abc process_group processor_time slang verilated_runtime verilator yosys",
    "gen.verilog": "lint",
    "hw.agents": "dqn_inference q_table",
    "hw.allocation": (
        "allocator class_filter crossbar foreseen_request free_queue switch_allocator switch_request "
        "vc_allocator vc_request vc_turn"
    ),
    "hw.boards": "board on_board",
    "hw.buses": "apb axi4_lite interrupts on_bus register_access uart uart_bus wishbone",
    "hw.cache": (
        "epoch pipelined_cache protected_line registered_epoch replacement routing_cache second_level "
        "tag_select"
    ),
    "hw.collectives": "word_combiner",
    "hw.keys": (
        "compare_tree direct_mapping lag_member node_reduction reduction_compare reduction_parameters "
        "reduction_select reduction_setup"
    ),
    "hw.lookup": "csr mshr mshr_entries parallel_tcams pipelined_mshr registered_csr row_write_watch tcam",
    "hw.network": "acknowledge_port host_vcs packet_sender path_choice routed_table service_host traffic_host",
    "hw.parts": (
        "and_or arbiter clock_gate code_word crc_hash event_counter plus_one response_queue round_robin "
        "shared sliced_counter sram xorshift"
    ),
    "hw.ports": (
        "engine_ports flit_buffer input_ports input_queues input_requests input_routes input_unit next_lookup "
        "next_route output_unit protected_buffer route_table shared_lookup spread_choice"
    ),
    "hw.rules": "cube_lines cube_sets cube_sweep prefix_rules rule_cache",
    "model.routing.combined": "aggregation configured message_classes parallel_links traffic_classes",
    "model.routing.contract": (
        "around_failures detour_rules fields_read guard lookahead occupancy plan unknown_inputs user"
    ),
    "model.routing.dragonflies": "dragonfly group_learning group_ways learned_times",
    "model.routing.graphs": "booksim_min graph random_minimal several_paths tables",
    "model.routing.grids": "grid hyperx hyperx_adaptive intermediate line_order lines torus_detours",
    "model.routing.layered": "butterfly tree",
    "model.routing.proof": (
        "acknowledge_channels deadlock every_answer interpreted_reachable machine_numbers message_dependence "
        "plane_kinds random_ways reachable reachable_kernel regular_networks short_proof"
    ),
    "model.routing.ways": "channel_classes detours rising_channels",
    "sim.reproduce.agents": (
        "dqn_beyond dqn_dragonfly dqn_failures dqn_hardware dqn_runs dqn_search dqn_spikes dqn_uniform"
    ),
    "sim.reproduce.costs": "cacti gate_cost",
    "sim.reproduce.dragonflies": (
        "qadaptive qadaptive_beyond qadaptive_cost qadaptive_groups qadaptive_loads qadaptive_maxq "
        "qadaptive_outage"
    ),
    "sim.reproduce.irregular": (
        "acro acro_methods loren_degree loren_entries loren_judged loren_load loren_networks loren_paths "
        "loren_quality loren_simulated"
    ),
    "sim.reproduce.lookup": "rule_figures rule_sets table_cache",
    "sim.reproduce.programs": (
        "apps_engines apps_figures apps_links apps_study job_figures job_interference network_collectives "
        "training unit_programs"
    ),
    "sim.reproduce.routing": "spraying",
    "sim.reproduce.tori": "outflank outflank_assumptions outflank_eta outflank_mesh",
}
MODULES |= {
    f"{room.rpartition('.')[0]}.{name}": f"{room}.{name}"
    for room, names in _INTO_ROOMS.items()
    for name in names.split()
}
#: a module that a room has taken the name of -> {name that was imported from it: its module now}
NAMES = {
    "gen.design": dict.fromkeys([
        "ROUTER_DEPTH", "engine_parameters", "NetworkDesign", "network_design", "stream_design", "network_streams",
        "router_design", "whole_network_design", "acknowledge_setup", "check_interfaces",
    ], "gen.design.configured"),
    "gen.verilog": dict.fromkeys(["tool_versions", "to_rtlil", "rtlil_text", "to_verilog"], "gen.verilog.writer"),
    "gen.formal": dict.fromkeys([
        "RUN_CYCLES", "at_most_one", "Proof", "planted", "prove", "refute", "prove_in_parts",
    ], "gen.formal.induction"),
    "gen.fpga": dict.fromkeys(["BuildOptions", "BuildReport", "build_for_board"], "gen.fpga.bitstream"),
    "gen.synth": dict.fromkeys([
        "SLOT_BITS", "BLOCK_SETS", "COPY", "synthesize", "map_with_memories", "synthesize_config",
    ], "gen.synth.area_and_delay"),
    "hw.lookup": {"Lookup": "hw.lookup.shallow"},
    "hw.router": {"Router": "hw.router.router"},
    "hw.network": dict.fromkeys(["RouterPart", "Network"], "hw.network.network"),
    "model.lookup": {
        **dict.fromkeys(["LookupInputs", "LookupOutputs"], "model.lookup.golden.ports"),
        **dict.fromkeys(["ActiveConfig", "KeyFunctions"], "model.lookup.golden.keys"),
        **dict.fromkeys(["TcamResult", "TcamRow", "InsideTcam"], "model.lookup.golden.tcam"),
        "LookupEngine": "model.lookup.golden.engine",
    },
    "model.router": {
        **dict.fromkeys(["Flit", "PortInputs", "PortOutputs"], "model.router.flit"),
        "RouterModel": "model.router.golden",
    },
    "model.routing.ways": dict.fromkeys([
        "MAX_ROUTERS", "MAX_LENGTH", "Ways", "mask_words", "find_ways", "groups_of", "ways_to_groups",
    ], "model.routing.ways.all_pairs"),
    "model.workload": {
        **dict.fromkeys(["WorkloadError", "PacketStream"], "sim.traffic.packet_stream"),
        **dict.fromkeys(["build_workload", "program_packets"], "sim.traffic.workload_packets"),
        **dict.fromkeys(["permutation", "neighbours"], "sim.traffic.synthetic"),
        **dict.fromkeys(["PlacedProgram", "place_program", "program_trace", "collective_trace"], "sim.traffic.placed"),
        "map_ranks": "sim.traffic.rank_hosts",
    },
    "sim.cosim": dict.fromkeys(["CosimReport", "cosim", "engine_traffic", "engine_setup"], "sim.cosim.lookup"),
    "sim.reproduce.booksim": dict.fromkeys([
        "CASES", "OVERLOAD_CYCLES", "PROMISED_SHARE", "measure_point", "own_reproductions", "refused_cases",
        "REPRODUCTIONS",
    ], "sim.reproduce.booksim.comparison"),
}  # fmt: skip

_ADVICE = "files of your own import from hopforge.model.routing or hopforge.sim.traffic only"


class _OldPlaces:
    """Asked last, when no module of that name was found (a meta path finder; their base class takes 20 ms)."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse an old place; know nothing of all others."""
        if fullname.startswith("hopforge."):
            now = new_place(fullname.removeprefix("hopforge."))
            if now is not None:
                raise ModuleNotFoundError(f"{fullname} is now hopforge.{now}; {_ADVICE}", name=fullname)
        return None


def new_place(old: str) -> str | None:
    """Return where a module is now, None for one that was never moved; both without ``hopforge.``.

    Examples
    --------
    >>> new_place("model.packet.kernel")
    'sim.packet.kernel'
    """
    package, rest = old, ""
    while package:
        if package in MODULES:
            return MODULES[package] + rest
        package, _, last = package.rpartition(".")
        rest = f".{last}{rest}"
    return None


def refuse_old_names(room: str) -> Callable[[str], Any]:
    """Return ``__getattr__`` of a room that has the name of an old module; `room` without ``hopforge.``."""
    names = NAMES[room]

    def refuse(name: str) -> NoReturn:
        if name in names:
            raise ImportError(f"hopforge.{room}.{name} is now hopforge.{names[name]}.{name}")
        raise AttributeError(f"module 'hopforge.{room}' has no attribute {name!r}")

    return refuse


def refuse_old_places() -> None:
    """Have imports from old places tell the new one."""
    if not any(isinstance(finder, _OldPlaces) for finder in sys.meta_path):
        sys.meta_path.append(_OldPlaces())
