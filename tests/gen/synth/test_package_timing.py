"""The constraints of every package, read by OpenSTA with a netlist in a small library of our own."""

import json
import re
import shutil

import pytest
from amaranth.hdl import Fragment

from hopforge.gen.packages.constraints import constraints_as_data, constraints_text
from hopforge.gen.packages.package import package_constraints
from hopforge.gen.packages.parts import PARTS, part_files
from hopforge.gen.synth.cells import Library
from hopforge.gen.synth.package_timing import check_timing
from hopforge.gen.tools.abc_recipes import RECIPES
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError

needs_sta = pytest.mark.skipif(
    shutil.which("sta") is None, reason="OpenSTA (sta) is not installed: make setup, or apt-get install opensta"
)
ROUTERS = (
    "name: small\ntopology: {kind: mesh, radices: [2]}\naddress: {width_bits: 12, chunk_bits: 4}\n"
    "lookup: {chunk_bits: [4], comparators: 3}\n"
    "router: {vcs: 1, buffer_flits: 2, flit_bits: 27, tag_bits: 0, flit_buffers: memory}\n"
)
CONFIGS = {
    "lookup": "name: small\ntopology: {kind: mesh, radices: [2]}\naddress: {width_bits: 12, chunk_bits: 4}\n"
    "lookup: {reduction: false, mshrs: 1, chunk_bits: [4], comparators: 3, tcam: {kind: external},\n"
    "  cache: {entries: 2, ways: 1, tag_bits: 16, output_bits: 4, epoch_bits: 1}}\n",
    "router": ROUTERS,
    "network": ROUTERS,
    "q_table": "name: small\ntopology: {kind: dragonfly, p: 1, a: 2, h: 1}\n",
    "collectives": "name: small\ntopology: {kind: mesh, radices: [2]}\n"
    "collective_plane: {width_bits: 8, buffer_flits: 1, max_groups: 1, sequence_bits: 1}\n",
    "rule_cache": "name: small\ntopology: {kind: mesh, radices: [2]}\n"
    "rule_cache: {entries: 2, rows: 3, address_bits: 4, output_bits: 2, id_bits: 1}\n",
}


def _cell(name: str, function: str, pins: str) -> str:
    inputs = "".join(f"pin ({pin}) {{ direction : input; capacitance : 1; }} " for pin in pins)
    output = f'pin (Z) {{ direction : output; function : "{function}"; {_arcs(pins)} }}'
    return f"cell ({name}) {{ area : 1; {inputs} {output} }}"


def _arcs(pins: str, kind: str = "", delay: float = 0.001) -> str:
    row = ", ".join([str(delay)] * 3)
    table = f'(t) {{ values ("{row}", "{row}", "{row}"); }}'
    kinds = ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    tables = " ".join(f"{each} {table}" for each in kinds)
    return " ".join(f'timing () {{ related_pin : "{pin}"; timing_sense : non_unate; {kind} {tables} }}' for pin in pins)


def library(delay: float = 0.001) -> Library:
    """A library of gates of `delay` ns."""
    scalar = '(scalar) { values ("0.01"); }'
    text = f"""library (tiny) {{
  delay_model : table_lookup; time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1mA";
  capacitive_load_unit (1, ff); nom_voltage : 1.1; nom_temperature : 25;
  lu_table_template (t) {{ variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1 ("0.001, 0.1, 1"); index_2 ("0, 5, 10"); }}
  {_cell("INV", "!A", "A")} {_cell("BUF", "A", "A")} {_cell("NAND2", "!(A&B)", "AB")}
  cell (DFF) {{ area : 4; ff (IQ, IQN) {{ next_state : "D"; clocked_on : "CK"; }}
    pin (D) {{ direction : input; capacitance : 1; timing () {{ related_pin : "CK"; timing_type : setup_rising;
      rise_constraint {scalar} fall_constraint {scalar} }} }}
    pin (CK) {{ direction : input; capacitance : 1; clock : true; }}
    pin (Q) {{ direction : output; function : "IQ"; {_arcs(["CK"], "timing_type : rising_edge;")} }} }}
}}
"""
    return Library("tiny", "", text.replace("0.001, 0.001, 0.001", ", ".join([str(delay)] * 3)))


@needs_sta
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=pytest.mark.study) if part in ("network", "lookup", "q_table") else part
        for part in CONFIGS
    ],
)
def test_every_name_is_there_and_every_end_constrained(part, tmp_path):
    report = check_timing(parse_config(CONFIGS[part]), part, library(), recipe="area", folder=tmp_path)
    assert report.warnings == ()
    assert report.unconstrained == ()
    assert report.through == report.declared
    assert report.slack_ns > 0
    assert report.problems == []
    assert not (tmp_path / "cells.lib").exists()


@needs_sta
def test_what_is_wrong_is_found(tmp_path, monkeypatch):
    """The constraints of before: bits of ports of one bit, half of the period on both sides; and a port left out."""

    def before(name, ports, period_ns, through=(), many_periods=()):
        text = constraints_text(name, ports, period_ns, ())
        return re.sub(r" csr_we ", " ", text.replace("0.35", "0.5").replace("resp_ready", "resp_ready resp_ready[*]"))

    monkeypatch.setattr("hopforge.gen.packages.package.constraints_text", before)
    report = check_timing(parse_config(CONFIGS["lookup"]), "lookup", library(), recipe="area")
    assert any("resp_ready[*]" in line and "not found" in line for line in report.warnings)
    assert "csr_we" in report.unconstrained
    assert report.slack_ns < 0
    assert report.path == ("resp_ready", "req_ready")
    assert report.problems[-1].startswith("resp_ready to req_ready: 0.")
    assert report.problems[-1].endswith(" ns too long for 1 ns")


@needs_sta
def test_a_recipe_that_does_not_end_gives_way_to_the_next(monkeypatch):
    """As with routers of 64 bits a flit, where abc ends without a result."""
    monkeypatch.setattr("hopforge.gen.synth.package_timing._RECIPES", ("broken", "area"))
    monkeypatch.setitem(RECIPES, "broken", "no_such_command_of_abc")
    config = parse_config(CONFIGS["rule_cache"])  # the smallest
    report = check_timing(config, "rule_cache", library())
    assert ("recipe", "area-0.9") in list(report.rows())
    with pytest.raises(UserError, match="no recipe came to an end: broken: "):
        check_timing(config, "rule_cache", library(), recipe="broken")


@needs_sta
@pytest.mark.study
def test_a_path_that_the_manifest_does_not_name(monkeypatch):
    monkeypatch.setattr("hopforge.gen.packages.lookup._THROUGH", ())
    report = check_timing(parse_config(CONFIGS["lookup"]), "lookup", library(), recipe="area")
    assert "resp_ready to req_ready: a path without a register that the manifest does not name" in report.problems


def test_the_manifest_says_what_the_constraints_say():
    periods = {"lookup": 1.0, "q_table": 1.3}
    for part in PARTS:
        period = periods.get(part, 1.5)
        package = PARTS[part](parse_config(CONFIGS[part]))
        assert f"create_clock -name clk -period {period:g} " in package_constraints(package)
        Fragment.get(package.component, None)  # only its ports are wanted, but Amaranth warns of what is not elaborated
    files = part_files(parse_config(CONFIGS["lookup"]), "lookup", period_ns=2.0)
    said = json.loads(files["small_lookup.json"])["constraints"]
    assert said == constraints_as_data(2.0, [("resp_ready", "req_ready")])
    (path,) = said["combinational"]
    assert 2 * path["outside_ns"] + path["inside_ns"] + said["uncertainty_ns"] == pytest.approx(2.0)
    assert "set_input_delay 0.6 -clock clk [get_ports {resp_ready}]" in files["small_lookup.sdc"]
    assert "set_output_delay 0.6 -clock clk [get_ports {req_ready}]" in files["small_lookup.sdc"]
    assert files["small_lookup.sdc"].count("resp_ready") == 2, "the comment, and one delay"
    assert said["reset_ns"] == pytest.approx(0.4)
    assert re.findall(r"^set_input_delay (\S+) .*\brst\b", files["small_lookup.sdc"], re.MULTILINE) == ["0.4"]


def test_parts_and_tools_have_names(monkeypatch, tmp_path):
    config = parse_config(CONFIGS["lookup"])
    parts = "lookup, router, network, q_table, collectives, rule_cache"
    with pytest.raises(UserError, match=f"part must be one of {parts}, not 'tcam'"):
        check_timing(config, "tcam", library())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"timing needs OpenSTA \(sta\), which is missing: apt-get install opensta"):
        check_timing(config, "lookup", library())
