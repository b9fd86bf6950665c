"""Energy and area of switches by hand."""

import csv
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.router import RouterConfig
from hopforge.sim.hits.energy import SwitchShape, Traffic, area_rows, shape_of, switch_areas, switch_energy
from hopforge.sim.programs.application import app_rows, run_app
from hopforge.sim.traffic.program_traffic import cut

ROUTER = "router: {vcs: 4, buffer_flits: 4, flit_bits: 64, flit_buffers: latches, va: input_first, sa: input_first}"
ROUND = """energy: {buffer_pj_per_bit: 2, crossbar_pj_per_bit: 3, vc_allocation_pj: 5, switch_allocation_pj: 7,
         logic_mw_per_mm2: 0, sram_mw_per_kib: 0}
timing: {cache_energy_nj: 0.039, cache_power_mw: 13, tcam_energy_nj: 42, tcam_power_mw: 36}
"""


def config_of(more="", topology="{kind: mesh, radices: [2]}"):
    return parse_config(f"name: x\ntopology: {topology}\n{more}")


#: ports, VCs → µm² as synthesized (docs/guides/synthesize.md, input_first)
VC_ALLOCATORS = {(5, 1): 663, (5, 2): 2783, (8, 1): 1701, (8, 2): 7079, (8, 4): 21_686, (16, 1): 7028, (16, 2): 25_644}
SWITCH_ALLOCATORS = {
    (5, 2): 908, (5, 4): 1277, (8, 1): 1094, (8, 2): 1911, (8, 4): 3133, (16, 1): 4468, (16, 2): 6765, (16, 4): 11_202,
}


@pytest.mark.parametrize(
    ("part", "measured", "most"),
    [
        ("VC allocator", VC_ALLOCATORS, 0.15),
        ("VC allocator", {(16, 4): 83_954}, 0.19),
        ("switch allocator", SWITCH_ALLOCATORS, 0.25),
        ("switch allocator", {(5, 1): 330}, 0.33),
    ],
)
def test_allocators_of_other_sizes_are_as_large_as_synthesized_ones(part, measured, most):
    """Within the deviations that docs/guides/energy.md states."""
    for (ports, vcs), area in measured.items():
        found = switch_areas(config_of(ROUTER), SwitchShape(ports, vcs, 4, 64), cached=False)[part]
        assert found == pytest.approx(area, rel=most), (ports, vcs)


DATA = Path(__file__).parents[3] / "docs" / "results" / "data"
#: part, keys, table of docs/results/synthesis.md, its rows, least and greatest deviation, how many sizes it has
OTHERS = [
    ("VC allocator", "va: wavefront", "va", {"allocator": "`wavefront`"}, (-0.15, 0.12), 6),
    ("VC allocator", "va: output_first", "va", {"allocator": "`output_first`"}, (-0.02, 0.17), 9),
    ("VC allocator", "va_iterations: 2", "iterations", {"allocator": "VA", "iterations": "2"}, (0.0, 0.12), 3),
    ("VC allocator", "allocator_iterations: 4", "iterations", {"allocator": "VA", "iterations": "4"},
     (-0.025, 0.26), 3),
    ("switch allocator", "sa: wavefront", "sa", {"allocator": "`wavefront`"}, (-0.22, 0.22), 9),
    ("switch allocator", "sa: output_first", "sa", {"allocator": "`output_first`"}, (-0.15, 0.11), 9),
    ("switch allocator", "allocator_iterations: 2", "iterations", {"allocator": "SA", "iterations": "2"},
     (-0.015, 0.06), 4),
    ("switch allocator", "allocator_iterations: 4", "iterations", {"allocator": "SA", "iterations": "4"},
     (-0.205, 0.065), 4),
]  # fmt: skip


@pytest.mark.parametrize(("part", "keys", "table", "rows", "bounds", "sizes"), OTHERS)
def test_allocators_of_other_kinds_are_as_large_as_synthesized_ones(part, keys, table, rows, bounds, sizes):
    """Within the deviations that docs/guides/energy.md states, to the percent."""
    config, seen = config_of(f"router: {{vcs: 4, {keys}}}"), []
    with (DATA / f"synthesis-{table}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if rows.items() <= row.items() and row["area"] != "–":
                ports, vcs = (int(each) for each in row["ports × VCs"].split(" × "))
                area = float(re.sub(r"\D", "", row["area"].removesuffix("µm²")))
                found = switch_areas(config, SwitchShape(ports, vcs, 4, 64), cached=False)[part]
                seen.append(found / area - 1)
    assert len(seen) == sizes
    assert bounds[0] <= min(seen) and max(seen) <= bounds[1], seen


@pytest.mark.parametrize(
    ("keys", "vc", "switch"),
    [
        ("va: wavefront, sa: islip, allocator_iterations: 4", 1.7, 1 + (16 + 66) / 47.5),
        ("sa: wavefront, allocator_iterations: 4", 4, 1 + 18.5 / 47.5),
        ("va: pim, sa: pim, allocator_iterations: 4", 1, 1),
        ("va_iterations: 2, allocator_iterations: 4", 2, 1 + (16 + 66) / 47.5),
        ("va: output_first, sa: output_first", 1, 1 + 16 / 47.5),
    ],
)
def test_iterations_count_where_they_are_made_whatever_the_technology(keys, vc, switch):
    for law in ("", "energy: {vc_allocator_um2: 0.2, switch_allocator_um2: 0.07, switch_allocator_vc_um2: 0.1}"):
        plain, found = (
            switch_areas(config_of(f"router: {{vcs: 4{more}}}\n{law}"), SwitchShape(5, 4, 4, 64), cached=False)
            for more in (", sa: input_first", f", {keys}")
        )
        assert found["VC allocator"] / plain["VC allocator"] == pytest.approx(vc)
        assert found["switch allocator"] / plain["switch allocator"] == pytest.approx(switch)


def test_larger_allocators_take_more_energy():
    """By as much as they are larger; heads that speculate have a switch allocator of their own."""
    shape, traffic = SwitchShape(5, 4, 4, 64), Traffic(1.0, 10, 50, 0)
    plain, changed = (
        switch_energy(config_of(f"router: {{vcs: 4{more}}}"), shape, 1, traffic, cached=False)
        for more in (", sa: input_first", ", va: wavefront, sa: wavefront, speculation: true")
    )
    assert changed["VC allocation"] / plain["VC allocation"] == pytest.approx(1.7)
    assert changed["switch allocation"] / plain["switch allocation"] == pytest.approx(2 * (47.5 + 18.5) / 47.5)
    assert changed["static, logic"] > plain["static, logic"]


@pytest.mark.parametrize("kind", get_args(RouterConfig.model_fields["flit_buffers"].annotation))
def test_every_kind_of_flit_buffer_has_an_area_of_its_own(kind):
    """Memories leak by their size, everything else by its area."""
    own = {"memory": "buffer", "latches": "latch", "flip_flops": "flip_flop"}
    areas = ", ".join(f"{name}_um2_per_bit: {k + 2}" for k, name in enumerate(own.values()))
    router = f"router: {{flit_buffers: {kind}}}\nenergy: {{logic_mw_per_mm2: 1000, sram_mw_per_kib: 1, {areas}}}"
    config, shape = config_of(router), SwitchShape(4, 2, 16, 60)  # 8192 bits
    found = switch_areas(config, shape, cached=False)
    assert found["buffers"] == 8192 * (list(own).index(kind) + 2)
    energy = switch_energy(config, shape, 1, Traffic(1.0, 0, 0, 0), cached=False)
    logic = sum(area for part, area in found.items() if part != "TCAM" and (part != "buffers" or kind != "memory"))
    assert energy["static, logic"] == pytest.approx(logic * 1e-6)
    assert energy["static, buffers"] == (1e-3 if kind == "memory" else 0)


@pytest.mark.parametrize(("kind", "measured"), [("latches", 45_780), ("flip_flops", 58_614)])
def test_a_router_is_as_large_as_a_synthesized_one(kind, measured):
    """Medians of docs/results/synthesis.md#schemes-of-the-router, 5 ports of 4 VCs of 4 flits of 64 bits."""
    config = config_of(f"router: {{flit_buffers: {kind}, sa: input_first}}\nlookup: {{tcam: {{kind: external}}}}")
    areas = switch_areas(config, SwitchShape(5, 4, 4, 64), cached=False)
    assert sum(areas.values()) == pytest.approx(measured, rel=0.03)


def test_caches_add_engines_and_memories():
    config = config_of("lookup: {tcam: {kind: external}}")
    shape = SwitchShape(7, 4, 8, 64)
    cached, conventional = (switch_areas(config, shape, cached=each) for each in (True, False))
    added = {part: cached[part] - conventional[part] for part in cached if cached[part] != conventional[part]}
    assert added == {"lookup engines": 7 * 22_901, "caches": pytest.approx(7 * 0.127e6, rel=0.005)}
    assert cached["TCAM"] == 0
    assert switch_areas(config_of(), shape, cached=True)["TCAM"] == pytest.approx(42_195, rel=0.001)


def test_lookups_are_those_of_the_papers_equation():
    """Eq. 4.5: a switch of 7 ports at 1400 Gbps for one second, 1 % misses: 1.083 W, conventional 87.54 W."""
    config, shape = config_of(ROUND), SwitchShape(7, 1, 1, 64)
    traffic = Traffic(seconds=1.0, packets=1400e9 / (84 * 8), flits=0, tcam_share=0.01)
    for cached, watt in ((True, 1.083), (False, 87.54)):
        found = switch_energy(config, shape, 1, traffic, cached=cached)
        assert found["lookup"] + found["static, caches and TCAM"] == pytest.approx(watt, rel=1e-3)


def test_what_a_flit_costs():
    """10 packets of 3 flits of 68 bits in switches of 5 ports with 2 VCs."""
    traffic = Traffic(seconds=2.0, packets=10, flits=30, tcam_share=0.5)
    config = config_of(ROUND + "router: {sa: input_first}")
    found = switch_energy(config, SwitchShape(5, 2, 4, 64), 3, traffic, cached=True)
    assert found == pytest.approx({
        "lookup": 10 * (0.039e-9 + 21e-9),
        "buffers": 30 * 68 * 2 * 2e-12,  # written and read
        "crossbar": 30 * 68 * 5 * 3e-12,
        "VC allocation": 10 * 10 * 5e-12,
        "switch allocation": 30 * 10 * 7e-12,
        "static, caches and TCAM": 3 * 2.0 * (5 * 0.013 + 0.036),
        "static, buffers": 0,
        "static, logic": 0,
    })


def test_static_power_of_the_rest():
    config = config_of("energy: {logic_mw_per_mm2: 1000, sram_mw_per_kib: 1}\nrouter: {vcs: 2}")
    shape = SwitchShape(4, 2, 16, 60)  # 4 · 2 · 16 flits of 64 bits: 1 KiB
    found = switch_energy(config, shape, 2, Traffic(1.0, 0, 0, 0), cached=True)
    areas = switch_areas(config, shape, cached=True)
    logic = sum(areas[part] for part in areas if part not in ("buffers", "caches", "TCAM"))
    assert found["static, buffers"] == pytest.approx(2 * 1e-3)
    assert found["static, logic"] == pytest.approx(2 * logic * 1e-6)


def test_packets_and_flits_of_messages():
    packets, flits = cut(np.array([0, 1, 64, 65, 2048, 2049]), 2048, 64)
    assert packets.tolist() == [1, 1, 1, 1, 1, 2]
    assert flits.tolist() == [1, 1, 1, 2, 32, 33]


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_energy_of_a_program(engine):
    """A broadcast along four switches in a row: 3 messages of 2 packets, of 32 and 1 flits, over 2 switches each."""
    config = parse_config(
        "name: x\ntopology: {kind: mesh, radices: [4]}\n" + ROUND
        + "workload: {kind: collective, operation: bcast, bytes: 2100, collectives: {bcast: ring}}\n"
        f"app: {{engine: {engine}, backend: embedded, lookup: miss}}\n"
        "traffic: {flit_bytes: 64}\nrouter: {vcs: 1, buffer_flits: 64}\n"
    )
    found = run_app(config)
    energy = found.energy.set_index("part")
    visits, flits, ports = 3 * 2 * 2, 3 * 2 * 33, 3
    assert energy.loc["lookup", "cache_j"] == pytest.approx(visits * 42.039e-9)
    assert energy.loc["lookup", "conventional_j"] == pytest.approx(visits * 42e-9)
    assert energy.loc["crossbar", "cache_j"] == pytest.approx(flits * (512 + 4) * ports * 3e-12)
    assert energy.loc["lookup", "cache_nj_per_packet"] == pytest.approx(42.039)
    static = 4 * found.found.makespan_s * (ports * 0.013 + 0.036)
    assert energy.loc["static, caches and TCAM", "cache_j"] == pytest.approx(static)
    assert found.found.energy_j == pytest.approx(energy.drop("all")["cache_j"].sum())


def test_a_switch_with_queues_at_inputs_and_outputs_by_hand():
    """A flit is stored twice, both queues have their size, and no VC is allocated."""
    text = ROUND.replace("sram_mw_per_kib: 0", "sram_mw_per_kib: 1")
    config = config_of(text + "router: {model: input_output_queued, vcs: 2, buffer_flits: 10, output_buffer_flits: 6}")
    shape = shape_of(config, 4, 60)
    areas = switch_areas(config, shape, cached=False)
    assert areas["VC allocator"] == 0
    assert areas["buffers"] == pytest.approx(4 * 2 * (10 + 6) * 64 * config.energy.buffer_um2_per_bit)
    found = switch_energy(config, shape, 1, Traffic(1.0, 10, 10, 0), cached=True)
    assert found["buffers"] == pytest.approx(10 * 64 * 2 * (2e-12 + 2e-12))  # written and read, twice
    assert found["VC allocation"] == 0
    assert found["static, buffers"] == pytest.approx(4 * 2 * 16 * 64 / 8192 * 1e-3)


def test_a_switch_of_packets_has_three_queues_of_whole_packets():
    router = "router: {model: packet}\nrouting: {algorithm: abr}\npacket: {packet_bytes: 100, queue_packets: 5}"
    config = config_of(router, "{kind: torus, radices: [4]}")
    shape = shape_of(config, 3, 8 * 64)  # a packet takes two flits of 64 bytes
    assert (shape.vcs, shape.stored) == (3, 3 * 3 * 5 * 2)


def test_a_switch_of_packets_allocates_no_vcs_and_the_switch_once_for_a_packet():
    """docs/definitions/torus-router.md: a packet enters a queue with space, and a free link sends a whole packet."""
    router = "router: {model: packet}\nrouting: {algorithm: abr}\npacket: {packet_bytes: 100, queue_packets: 5}\n"
    config = config_of(router + ROUND, "{kind: torus, radices: [4]}")
    shape = shape_of(config, 3, 8 * 64)
    assert switch_areas(config, shape, cached=False)["VC allocator"] == 0
    found = switch_energy(config, shape, 1, Traffic(1.0, 10, 20, 0), cached=True)
    assert found["VC allocation"] == 0
    assert found["switch allocation"] == pytest.approx(10 * 3 * 3 * 7e-12)  # 3 queues at each of 3 ports ask
    assert found["buffers"] == pytest.approx(20 * (512 + 4) * 2 * 2e-12)  # written and read


@pytest.mark.parametrize("lookup", ["hit", "cache"])
def test_a_program_visits_switches_of_packets_in_whole_packets(lookup):
    """300 bytes are 3 packets of 128 bytes, each of 2 flits of 64: 3 messages over 2 switches each."""
    config = config_of(
        "router: {model: packet}\nrouting: {algorithm: abr}\npacket: {packet_bytes: 128, queue_packets: 5}\n"
        "workload: {kind: collective, operation: bcast, bytes: 300, mtu_bytes: 4096, collectives: {bcast: ring}}\n"
        f"app: {{engine: flow, lookup: {lookup}}}\ntraffic: {{flit_bytes: 64}}\n" + ROUND,
        "{kind: torus, radices: [4]}",
    )
    energy = run_app(config).energy.set_index("part")
    packets = 3 * 3 * 2
    assert energy.loc["lookup", "conventional_j"] == pytest.approx(packets * 42e-9)
    assert energy.loc["buffers", "cache_j"] == pytest.approx(packets * 2 * (512 + 4) * 2 * 2e-12)
    assert energy.loc["switch allocation", "cache_j"] == pytest.approx(packets * 3 * 3 * 7e-12)


def test_energy_of_a_program_on_queues_at_inputs_and_outputs():
    """The broadcast of above in packets of one flit: 3 messages of 3 flits over 2 switches each."""
    config = parse_config(
        "name: x\ntopology: {kind: mesh, radices: [4]}\n" + ROUND
        + "workload: {kind: collective, operation: bcast, bytes: 300, mtu_bytes: 128,\n"
        "           collectives: {bcast: ring}}\n"
        "app: {engine: packet, lookup: hit}\ntraffic: {flit_bytes: 128}\n"
        "router: {model: input_output_queued, vcs: 2, buffer_flits: 4, output_buffer_flits: 3}\n"
    )  # fmt: skip
    found = run_app(config)
    energy, flits = found.energy.set_index("part"), 3 * 3 * 2
    assert energy.loc["buffers", "cache_j"] == pytest.approx(flits * (1024 + 4) * 2 * (2e-12 + 2e-12))
    assert energy.loc["crossbar", "cache_j"] == pytest.approx(flits * (1024 + 4) * 3 * 3e-12)
    assert energy.loc["VC allocation", "cache_j"] == 0
    assert found.found.energy_j == pytest.approx(energy.drop("all")["cache_j"].sum())


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("sa: pim", "sa=pim, not in hardware, counted as input_first"),
        ("va: max_size, sa: loa", "va=max_size and sa=loa, not in hardware, counted as input_first"),
        ("va: wavefront, sa: islip", ""),
    ],
)
@pytest.mark.parametrize("lookup", ["hit", "conventional"])
def test_energies_with_allocators_of_unknown_size_are_told(keys, said, lookup):
    """By `hopforge app`, with caches and without, as by `hopforge check`."""
    config = config_of(
        "workload: {kind: collective, operation: bcast, bytes: 300}\n"
        f"app: {{engine: flow, lookup: {lookup}}}\nrouter: {{{keys}}}\n"
    )
    told = dict(app_rows(run_app(config)))["energy"].partition("; ")
    assert told[2].endswith(said) and ("not in hardware" in told[2]) == bool(said)
    assert ("not in hardware" in dict(area_rows(config, 3))["its parts"]) == bool(said)
