"""A small cell library of our own, for tests of what reads one."""

_POWER = (
    'internal_power () {{ {more} rise_power (table) {{ values ("{rise}"); }} '
    'fall_power (table) {{ values ("{fall}"); }} }}'
)


def _output(function: str, inputs: str, rise: float, fall: float) -> str:
    powers = " ".join(_POWER.format(more=f'related_pin : "{pin}";', rise=rise, fall=fall) for pin in inputs.split())
    return f'pin (Z) {{ direction : output; function : "{function}"; max_capacitance : 100; {powers} }}'


def _input(name: str, capacitance: float, more: str = "") -> str:
    return f"pin ({name}) {{ direction : input; capacitance : {capacitance}; {more} }}"


def _gate(name: str, inputs: str, function: str) -> str:
    pins = " ".join(_input(pin, 2.0) for pin in inputs.split())
    return f"cell ({name}) {{ area : 1; cell_leakage_power : 10; {pins} {_output(function, inputs, 1.0, 3.0)} }}"


_CLOCK_POWERS = "".join(
    _POWER.format(more=f'when : "{when}";', rise=energy, fall=energy) for when, energy in (("!D", 2.0), ("D", 6.0))
)

LIBRARY = f"""
library (small) {{
  nom_voltage : 2.0; capacitive_load_unit (1, ff); leakage_power_unit : "1nW"; time_unit : "1ns";
  {_gate("INV", "A", "!A")}
  {_gate("BUF", "A", "A")}
  {_gate("NAND2", "A B", "!(A & B)")}
  {_gate("NOR2", "A B", "!(A | B)")}
  {_gate("XOR2", "A B", "(A ^ B)")}
  cell (DFF) {{ area : 4; cell_leakage_power : 20;
    ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; }}
    {_input("D", 1.0)} {_input("CK", 0.5, "clock : true; " + _CLOCK_POWERS)}
    {_output("IQ", "CK", 4.0, 4.0).replace("pin (Z)", "pin (Q)")} }}
  cell (GATE) {{ area : 2; cell_leakage_power : 0; clock_gating_integrated_cell : "latch_posedge";
    pin (CK) {{ direction : input; capacitance : 1; clock_gate_clock_pin : true; }}
    pin (E) {{ direction : input; capacitance : 1; clock_gate_enable_pin : true; }}
    pin (IQ) {{ direction : internal; }}
    pin (GCK) {{ direction : output; state_function : "CK & IQ"; clock_gate_out_pin : true; }} }}
}}
"""
