"""`hopforge check` means that it runs: what it accepts for a command, the command takes."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hopforge import cli
from hopforge.model.config import Config, ConfigError, load_config, parse_config
from hopforge.model.config.uses import USES, unused_sections
from hopforge.model.irregular import failure
from hopforge.model.topology import TOPOLOGIES
from hopforge.sim.cosim.parts import PARTS
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.start.checks import check_commands, verdict_rows
from hopforge.sim.start.preparation import COMMANDS, for_command

sys.path.insert(0, str(Path(__file__).parent))
import mutated_files

ROOT = Path(__file__).parents[3]
MESH = "name: x\ntopology: {kind: mesh, radices: [4, 4]}\n"
RUN = "simulation: {min_cycles: 1000, max_cycles: 1000, warmup_cycles: 100, loads: [0.1], load: 0.1}\n"
REFUSED = {
    "unknown algorithm": (f"{MESH}routing: {{algorithm: nonsense}}\n", "routing", "file: FILE.py), not nonsense"),
    "hyperx": (
        "name: x\ntopology: {kind: hyperx, sizes: [3, 3]}\nrouting: {algorithm: ugal_node}\n", "routing", "ugal_node",
    ),
    "slim fly": (
        "name: x\ntopology: {kind: slim_fly, q: 3}\nrouting: {algorithm: ugal_node}\n", "routing", "ugal_node",
    ),
    "520 ports": (
        "name: x\ntopology: {kind: fully_connected, routers: 520}\nrouting: {algorithm: shortest}\n",
        "routing", "at most 512 ports a router, not 520",
    ),
    "two layers": (
        "name: x\ntopology: {kind: torus, radices: [5, 5]}\nrouting: {algorithm: tables}\nrouter: {vcs: 1}\n"
        "tables: {layers: lash}\n",
        "routing", "router.vcs must be at least 3 for lash",
    ),
}  # fmt: skip


def run(folder: Path, text: str, *words: str) -> tuple[int, str]:
    """Run a command on a file; returns exit status, and what it says on both streams or raises."""
    path = folder / "c.yml"
    path.write_text(text)
    place = words.index("FILE")
    done = CliRunner().invoke(cli.app, [*words[:place], str(path), *words[place + 1 :]], env={"COLUMNS": "200"})
    error = "" if done.exception is None or isinstance(done.exception, SystemExit) else str(done.exception)
    return done.exit_code, " ".join(f"{done.output} {error}".split())


@pytest.mark.parametrize("name", REFUSED)
def test_check_refuses_what_net_refuses(tmp_path: Path, name: str) -> None:
    text, section, reason = REFUSED[name]
    status, said = run(tmp_path, text, "check", "FILE")
    assert status == 2
    assert reason in said
    (sections,) = re.findall(r"no command can use sections? ([a-z, ]+): ", said)
    assert section in sections.split(", ")
    status, said = run(tmp_path, text, "check", "FILE", "--for", "net")
    assert status != 0
    assert reason in said
    status, said = run(tmp_path, text, "net", "FILE", "-o", str(tmp_path / "out"))
    assert status != 0
    assert reason in said


def test_a_reason_for_several_sections_is_told_once(tmp_path: Path) -> None:
    text = (
        "name: x\ntopology: {kind: fully_connected, routers: 4}\nrouting: {algorithm: valiant}\nrouter: {vcs: 1}\n"
        "traffic: {pattern: uniform}\nsimulation: {load: 0.1}\n"
    )
    status, said = run(tmp_path, text, "check", "FILE")
    assert status == 2 and said.count("no command can use") == 1 and "router.vcs must be at least" in said
    assert set(said.partition("can use sections ")[2].partition(":")[0].split(", ")) == {
        "router", "routing", "traffic", "simulation"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "unread"),
    [
        (
            "router: {vcs: 4}\ntraffic: {classes: [{name: a, share: 0.5, vcs: 2, weight: 3}, {name: b, share: 0.5, "
            "vcs: 2}]}\n",
            "traffic.classes.weight",
        ),
        ("router: {vcs: 4}\nsimulation: {load: 0.1, measure_us: 2, precision: 0.1}\n", "simulation.precision"),
    ],
)  # fmt: skip
def test_keys_that_no_command_reads_are_no_mistake(tmp_path: Path, keys: str, unread: str) -> None:
    """A command that does not read their section at all, and that the file is no good for, gives no reason."""
    status, said = run(tmp_path, f"name: x\ntopology: {{kind: torus, radices: [4, 4]}}\n{keys}", "check", "FILE")
    assert (status, "not for gen q-table" in said, "no command can use" in said) == (0, True, False)
    assert f"not used {unread}" in said


def test_check_says_how_a_routing_was_proved(tmp_path: Path) -> None:
    text = "name: x\ntopology: {{kind: torus, radices: {}}}\nrouting: {{algorithm: dor{}}}\nrouter: {{vcs: 2}}\n"
    large = [13, 13, 13]  # 2197 routers
    _, said = run(tmp_path, text.format(large, ""), "check", "FILE", "--for", "net")
    assert "routing dor: proved free of deadlock by symmetry: every two of its 3 dimensions" in said
    _, said = run(tmp_path, text.format([4, 4, 4], ""), "check", "FILE")
    assert "routing dor: proved free of deadlock on the whole network: " in said
    _, said = run(tmp_path, text.format(large, ", check: false"), "check", "FILE", "--for", "net")
    assert "routing dor: not proved (routing.check: false) good for net" in said


def test_a_check_builds_network_and_tables_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary made both anew: minutes, on ten thousand switches."""
    path, made = tmp_path / "mine.yml", []
    real_tables, real_network = failure.build_tables, TOPOLOGIES["layout_random"]
    monkeypatch.setattr(failure, "build_tables", lambda *given: made.append("tables") or real_tables(*given))
    monkeypatch.setitem(TOPOLOGIES, "layout_random", lambda *given: made.append("network") or real_network(*given))
    path.write_text(
        "name: mine\ntopology: {kind: layout_random, n: 4, degree: 4, length: 3}\ntables: {scheme: loren}\n"
        "router: {vcs: 8}\nrouting: {algorithm: tables}\n"
    )
    done = CliRunner().invoke(cli.app, ["check", str(path)])
    assert done.exit_code == 0, done.output
    assert "virtual layers" in done.output and sorted(made) == ["network", "tables"]


def test_check_names_the_commands(tmp_path: Path) -> None:
    status, said = run(tmp_path, MESH, "check", "FILE")
    assert status == 0
    assert "good for topology, net, series, sweep, trace, gen lookup, gen router, gen network" in said
    assert "hits, app, workload, demo: no section workload asks for it" in said
    assert "topology.kind must be dragonfly" in said
    status, said = run(tmp_path, MESH, "check", "FILE", "--quick")
    assert (status, "commands none prepared" in said) == (0, True)
    assert run(tmp_path, MESH, "check", "FILE", "--for", "gen router") == (0, "name x good for gen router")
    assert "did you mean 'net'" in run(tmp_path, MESH, "check", "FILE", "--for", "nett")[1]
    status, said = run(tmp_path, MESH, "check", "FILE", "--quick", "--for", "net")
    assert (status != 0, "--quick prepares nothing" in said) == (True, True)


@pytest.mark.parametrize("bus", ["native", "axi4_lite", "apb", "wishbone"])
@pytest.mark.parametrize(("depth", "keys"), [(4, ""), (5, ""), (8, ", memory_stage: true"), (6, ", reduction: false")])
def test_a_bus_that_deep_engines_do_not_have_is_found(tmp_path: Path, bus: str, depth: int, keys: str) -> None:
    text = f"{MESH}csr: {{bus: {bus}}}\nlookup: {{pipeline_depth: {depth}{keys}}}\nworkload: {{kind: uniform}}\n"
    good = bus == "native" or depth == 4
    commands = {"gen lookup": good, "timing": good, "demo": good, "mutate": True, "cosim --part lookup": True}
    for command, accepted in commands.items():
        status, said = run(tmp_path, text, "check", "FILE", "--for", command)
        assert (status == 0, "csr.bus must be native" in said) == (accepted, not accepted), (command, said)
    if not good:
        status, said = run(tmp_path, text, "gen", "lookup", "FILE", "-o", str(tmp_path / "out"))
        assert status != 0
        assert f"csr.bus must be native with lookup.pipeline_depth={depth} (others: up to 4), not {bus}" in said


def test_every_command_that_reads_a_file_is_prepared() -> None:
    from typer.main import get_command

    found = set()
    for name, command in get_command(cli.app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        words = [(f"{name} {word}", one) for word, one in inner.items()] if inner else [(name, command)]
        found |= {one for one, each in words if any(param.name in ("config", "configs") for param in each.params)}
    found -= {"check", "cosim", "energy", "reproduce", "fpga build", "fpga run"}
    parts = {f"cosim --part {part}" for part in PARTS}
    parts |= {"energy --part lookup", "energy --part router", "fpga --design engine", "fpga --design network"}
    assert found | parts == set(COMMANDS)
    assert set(USES) == set(COMMANDS)


def test_sections_that_a_command_does_not_use_are_named(tmp_path: Path) -> None:
    text = f"{MESH}{RUN}workload: {{kind: uniform}}\ntiming: {{cache_ns: 1.0}}\nrouting: {{algorithm: dor}}\n"
    status, said = run(tmp_path, text, "net", "FILE", "-o", str(tmp_path / "out"))
    assert status == 0
    assert "traffic uniform, source bernoulli, packets of 1 flit routing dor, 4 virtual channels" in said
    assert "hopforge net does not use workload, timing" in said
    assert json.loads((tmp_path / "out/metadata.json").read_text())["not_used"] == ["workload", "timing"]
    variants = "simulation: {min_cycles: 1000, max_cycles: 1000, loads: [0.1], variants: {a: {}, b: {router.vcs: 2}}}\n"
    text = f"{MESH}{variants}workload: {{kind: uniform}}\n"
    status, said = run(tmp_path, text, "sweep", "FILE", "-o", str(tmp_path / "s"), "--workers", "1")
    assert status == 0
    assert "routing a: dor, 4 virtual channels; b: dor, 2 virtual channels" in said
    assert "hopforge sweep does not use workload" in said
    status, said = run(tmp_path, f"{MESH}{RUN}", "net", "FILE", "-o", str(tmp_path / "all"))
    assert "does not use" not in said
    assert "not_used" not in json.loads((tmp_path / "all/metadata.json").read_text())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("net", "router.protection"),
        ("hits", "lookup.cache.protection"),
        ("gen router", "workload"),
        ("gen lookup", "router, workload"),
    ],
)
def test_keys_of_hardware_alone_that_a_command_does_not_use_are_named(command: str, said: str, tmp_path: Path) -> None:
    text = f"{MESH}lookup: {{cache: {{protection: secded}}}}\nrouter: {{protection: parity}}\n"
    text += "workload: {kind: uniform}\n"
    status, output = run(tmp_path, text, "check", "FILE", "--for", command)
    assert status == 0
    named = re.search(rf"hopforge {command} does not use (.*)", output)
    assert named is not None
    assert said in named[1]
    assert ("protection" in said) == ("protection" in named[1])


@pytest.mark.parametrize(("engine", "told"), [("flow", True), ("packet", False)])
def test_acknowledges_are_named_where_no_router_is_simulated(engine: str, told: bool, tmp_path: Path) -> None:
    text = f"{MESH}traffic: {{acknowledge: {{}}}}\napp: {{engine: {engine}}}\n"
    text += "workload: {kind: collective, operation: allreduce}\n"
    status, said = run(tmp_path, text, "check", "FILE", "--for", "app")
    assert ("hopforge app does not use traffic.acknowledge" in said) == told, said
    assert status == 0


@pytest.mark.parametrize(
    ("command", "programs", "told"), [("sweep", True, True), ("sweep", False, False), ("net", True, False)]
)
def test_loads_are_named_where_programs_are_counted(command: str, programs: bool, told: bool, tmp_path: Path) -> None:
    text = f"{MESH}simulation: {{loads: [0.1], knee_percent: 3}}\n"
    text += "app: {}\nworkload: {kind: collective, operation: allreduce}\n" if programs else ""
    status, said = run(tmp_path, text, "check", "FILE", "--for", command)
    for key in ("simulation.loads", "simulation.knee_percent"):
        assert (key in said) == told, said
    assert status == 0


def test_a_load_of_0_that_changes_is_refused(tmp_path: Path) -> None:
    """No host has a next packet whose time could change: nothing would ever be sent."""
    text = f"{MESH}simulation: {{series_bins: 8, load_steps: [{{bin: 2, load: 0.2}}]}}\n"
    status, said = run(tmp_path, text, "series", "FILE", "--load", "0", "-o", str(tmp_path / "out"))
    assert status != 0
    assert "simulation.load_steps: a load of 0 cannot change" in said


class Poison:
    """A section that must not be looked at."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is used")


EVERYTHING = (
    f"{MESH}{RUN}seed: 2\nfailed: {{}}\naddress: {{}}\nlookup: {{cache: {{entries: 64}}}}\ntiming: {{}}\nenergy: {{}}\n"
    "workload: {kind: collective, operation: allreduce}\nrouter: {}\nrouting: {}\npacket: {}\ntables: {patterns: 2}\n"
    "traffic: {}\napp: {}\ncosim: {cycles: 20}\n"
)


@pytest.mark.parametrize("changes", ["", "routing: {algorithm: tables}\n", "router: {route_computation: lookup}\n",
                                     "app: {engine: packet}\n", "traffic: {source: program}\n"])  # fmt: skip
def test_what_is_called_unused_is_not_looked_at(changes: str) -> None:
    key = changes.split(":", maxsplit=1)[0]
    lines = [line for line in EVERYTHING.splitlines() if not changes or not line.startswith(f"{key}:")]
    config = parse_config("\n".join(lines) + f"\n{changes}", keys=False)
    looked = 0
    for verdict in check_commands(config):
        case = mutated_files.SHORT.get(verdict.command)
        if verdict.good and case is not None:
            used = for_command(verdict.command, config)
            hidden = set(unused_sections(used, [verdict.command])) - {"address"}  # every host has one
            short = mutated_files.shortened(used)
            case(short.model_copy(update=dict.fromkeys(hidden, Poison())))
            looked += len(hidden)
    assert looked > 20


LATENCIES = "name: x\ntopology: {kind: edge_list, file: ring.anynet, format: anynet}\nrouting: {algorithm: shortest}\n"


PROGRAM = "workload: {kind: npb, benchmark: is, class: S, ranks: 2}\n"


@pytest.mark.parametrize(("text", "told"), [
    (f"{LATENCIES}{PROGRAM}", "topology.file (latencies of its links): not read by hits, app"),
    (f"{MESH}traffic: {{packet_range: [2, 4]}}\napp: {{}}\n{PROGRAM}", "traffic.packet_range: not read by sweep, app"),
    (f"{MESH}simulation: {{load_steps: [{{bin: 3, load: 0.1}}]}}\n", "simulation.load_steps: read only by series"),
    (f"{MESH}workload: {{kind: all_to_all, rounds: 3}}\n", ""),
])  # fmt: skip
def test_keys_that_only_some_commands_read_are_told(text: str, told: str, tmp_path: Path) -> None:
    """What a command leaves unread of the sections that it reads stands in one of two rows."""
    ring = "".join(f"router {k} node {k} router {(k + 1) % 3} 3\n" for k in range(3))
    (tmp_path / "ring.anynet").write_text(ring)
    path = tmp_path / "c.yml"
    path.write_text(text)
    config = load_config(path, keys=False)
    verdicts = check_commands(config)
    rows = [(name, words) for name, words in verdict_rows(config, verdicts) if name in ("not used", "used in part")]
    said = " ".join(words for _, words in rows)
    assert told in said
    for verdict in verdicts:
        if verdict.good and verdict.command not in ("demo", "topology", "bounds"):
            unread = for_command(verdict.command, config).unused
            assert {key for key in unread if "." in key} <= {key for key in unread if key in said}, verdict.command
    assert bool(told) == bool(rows)
    assert len(said) < 300


def test_addresses_matter_where_keys_are_used(tmp_path: Path) -> None:
    text = "name: x\ntopology: {kind: mesh, radices: [32, 32]}\naddress: {chunk_bits: 4}\nworkload: {kind: neighbour}\n"
    config = load_config_text(tmp_path, text)
    assert for_command("net", config).address.chunk_bits == 6
    cure = r"32 is more than the 16 values of a chunk of address.chunk_bits=4; with address.chunk_bits: 6 it fits"
    for command in ("hits", "gen lookup"):
        with pytest.raises(ConfigError, match=cure):
            for_command(command, config)
    status, said = run(tmp_path, text, "check", "FILE", "--for", "hits")
    assert status != 0
    assert cure in said
    looked_up = "router: {route_computation: lookup}\n"
    with pytest.raises(ConfigError, match=cure):
        load_config_text(tmp_path, text + looked_up)


def load_config_text(folder: Path, text: str) -> Config:
    (folder / "a.yml").write_text(text)
    return load_config(folder / "a.yml", keys=False)


def test_no_address_is_wide_enough() -> None:
    radices = ", ".join(["17", *["1"] * 11])
    with pytest.raises(ConfigError, match="no address of at most 48 bits holds it"):
        parse_config(f"name: x\ntopology: {{kind: mesh, radices: [{radices}]}}\n")


def test_keys_that_cannot_be_reduced_are_told(tmp_path: Path) -> None:
    hyperx = "name: x\ntopology: {kind: hyperx, sizes: [3, 3]}\nlookup: {reduction: true}\n"
    words = "keys whole address, for there are no reduced ones of topology.kind=hyperx"
    assert words in run(tmp_path, hyperx, "check", "FILE", "--quick")[1]
    text = f"{hyperx}workload: {{kind: uniform, packets_per_host: 9}}\n"
    status, said = run(tmp_path, text, "hits", "FILE", "-o", str(tmp_path / "h"))
    assert (status, words in said) == (0, True)


def test_sources_of_the_packet_router_are_named() -> None:
    text = "name: x\ntopology: {kind: torus, radices: [4, 4]}\nrouter: {model: packet}\nrouting: {algorithm: ofr}\n"
    for source, others in (("on_off", "the other models"), ("rounds", "input_output_queued")):
        expected = f"traffic.source: must be bernoulli or program with router.model=packet, not {source}, which is for "
        with pytest.raises(ConfigError, match=expected + others):
            parse_config(f"{text}traffic: {{source: {source}}}\n")


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "configs").glob("*.yml")))
def test_shipped_files_name_sections_for_some_command(name: str) -> None:
    config = load_config(ROOT / "configs" / name, keys=False)
    assert config.written
    assert unused_sections(config, list(USES)) == []


def broken(seed: int, count: int, every: int, *, one: bool) -> str:
    """Change files; returns those found good for a command of which a short case did not run.

    All short cases that the file is good for, or `one`; every so many files those that generate hardware, too.
    """
    read, wrong = 0, []
    for number, (data, _) in enumerate(mutated_files.files(seed, count)):
        read += mutated_files.read(data) is not None
        for command, reason in mutated_files.broken(data, sampled=number % every == 0, turn=number if one else None):
            wrong.append(f"{command}: {reason}: {json.dumps(data)}")
    assert read > count // 3
    return "\n".join(wrong)


def test_what_check_accepts_runs() -> None:
    assert broken(1, 100, 1000, one=True) == ""


@pytest.mark.study
def test_what_check_accepts_runs_in_many_files() -> None:
    assert broken(2, 3000, 50, one=False) == ""


LIMITS = [("measure_us: 5", 500), ("measure_us: 33", 3300), ("max_cycles: 1234", 1234)]


@pytest.mark.parametrize(("limit", "cycles"), LIMITS)
def test_what_was_asked_is_measured(limit: str, cycles: int) -> None:
    runs = f"simulation: {{warmup_cycles: 100, min_cycles: 1000, precision: 0.0001, {limit}}}"
    text = f"{MESH}router: {{cycle_ns: 10}}\n{runs}\n"
    assert Simulation(parse_config(text), 0.1, 1).run().cycles == cycles
