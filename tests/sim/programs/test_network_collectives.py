"""`hopforge collectives`: times in the network by the closed form, times by hosts as `hopforge app` has them."""

from pathlib import Path

import pandas as pd
import pytest

from hopforge.commands.applications import collectives
from hopforge.model.config import parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.network_collectives import plane_cycles, prepare_collectives

PLANE_FILE = Path(__file__).parents[3] / "configs" / "collective_plane.yml"

CHIP = """
router: {vcs: 2, buffer_flits: 4}
traffic: {flit_bytes: 8}
timing: {link_gbps: 64, switch_base_ns: 3, cable_ns: 1}
"""


def plane(topology: str, section: str, latency: int) -> PlaneDesign:
    return configured_plane(
        parse_config(
            f"name: x\ntopology: {topology}\nrouter: {{link_latency_cycles: {latency}}}\n"
            f"collective_plane: {{{section}}}\n"
        )
    )


@pytest.mark.parametrize(
    ("topology", "depth", "latency", "host_cycles"),
    [
        ("{kind: mesh, radices: [3, 3]}", 2, 1, 1), ("{kind: mesh, radices: [5, 2]}", 3, 4, 3),
        ("{kind: fully_connected, routers: 4}", 1, 2, 1), ("{kind: mesh, radices: [1, 1]}", 0, 1, 2),
    ],
)  # fmt: skip
def test_times_are_those_of_the_definition(topology: str, depth: int, latency: int, host_cycles: int) -> None:
    design = plane(topology, "buffer_flits: 64", latency)
    assert design.trees[0].depth == depth
    one = 4 * (depth + 1) + 2 * depth + 2 * depth * (latency - 1) + 2 * (host_cycles - 1) + 1
    for operation, words in (("barrier", 1), ("sum", 1), ("sum", 30)):
        assert plane_cycles(design, 0, operation, words, host_cycles) == one + words - 1


@pytest.mark.parametrize(
    ("topology", "latency", "flits", "cycles_per_word"),
    [
        # from a host's flit to its next one with the same credit: queue, taken, credit
        ("{kind: mesh, radices: [1, 1]}", 1, 1, 2), ("{kind: mesh, radices: [1, 1]}", 1, 2, 1),
        # between units: the counter of credits and the output besides, and the links: 2 L + 2
        ("{kind: mesh, radices: [2, 1]}", 1, 2, 2), ("{kind: mesh, radices: [2, 1]}", 1, 4, 1),
        ("{kind: mesh, radices: [2, 1]}", 3, 4, 2), ("{kind: mesh, radices: [2, 1]}", 3, 8, 1),
    ],
)  # fmt: skip
def test_credits_of_a_round_trip(topology: str, latency: int, flits: int, cycles_per_word: int) -> None:
    design = plane(topology, f"buffer_flits: {flits}", latency)
    fewer, more = (plane_cycles(design, 0, "sum", words) for words in (32, 64))
    assert more - fewer == 32 * cycles_per_word


def test_the_command_times_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.yml"
    network = "name: small\ntopology: {kind: mesh, radices: [2, 2]}\n" + CHIP
    file.write_text(network + "collective_plane: {groups: [{hosts: [0, 3]}], words: [4], width_bits: 16}\n")
    collectives(file, output=tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "collectives.csv")
    assert table.groupby("operation").size().to_dict() == {"allreduce": 5, "barrier": 4, "bcast": 4}
    own = table[table["by"] == "network"]
    # the root is router 1, a link away from both: 4 · 2 + 2 + 1, a broadcast from router 0 the same
    assert own["cycles"].tolist() == [11, 11 + 3, 11 + 3]
    assert own["bytes"].tolist() == [0, 8, 8]
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("0\n3\n")
    app = run_app(
        parse_config(
            f"{network}app: {{engine: packet}}\nworkload: {{kind: collective, operation: allreduce, bytes: 8, "
            f"ranks: 2, collectives: {{allreduce: ring}}, mapping: {{kind: file, file: {hosts}}}}}\n"
        )
    )
    ring = table[(table["operation"] == "allreduce") & (table["by"] == "ring")]
    assert ring["ns"].tolist() == pytest.approx([app.found.makespan_s * 1e9])
    assert "in the network" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("collective_plane: {words: [65536]}\ntopology: {kind: mesh, radices: [20, 20]}\naddress: {chunk_bits: 8}",
         "^collective_plane.words: 65536 words in the 400 units of group 0 are 26,214,400 steps, more than 20"),
        ("topology: {kind: clos, leaves: 4, middles: 2, hosts_per_router: 2, host_links: 2}",
         "host_links must be 1 for hopforge collectives, not 2"),
        ("topology: {kind: mesh, radices: [2, 2]}\ncollective_plane: {groups: [{hosts: [4]}]}", "host 4 does not"),
    ],
)  # fmt: skip
def test_what_cannot_be_timed(rest: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        prepare_collectives(parse_config(f"name: x\n{rest}\n", keys=False))


def test_what_decides_the_times_is_not_called_unused() -> None:
    """Flits of the routers decide how long the same takes by hosts."""
    text = PLANE_FILE.read_text(encoding="utf-8")
    assert "flit_bytes" in text
    assert unused_sections(parse_config(text), ["collectives"]) == []
