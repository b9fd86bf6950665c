"""A small cell library of our own whose cells take time, for tests that map designs to cells."""


def _table(kind: str, unloaded: float, loaded: float) -> str:
    """Table of three slopes and loads (abc divides by zero in one of two); slopes have no influence."""
    row = f'"{unloaded}, {(unloaded + loaded) / 2}, {loaded}"'
    return f"{kind} (t) {{ values ({row}, {row}, {row}); }}"


def _arc(pin: str, delay: float, sense: str) -> str:
    """Timing of a path: the delay, and 1 ps for each fF."""
    kinds = ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    tables = " ".join(_table(kind, delay, delay + 0.01) for kind in kinds)
    return f'timing () {{ related_pin : "{pin}"; timing_sense : {sense}; {tables} }}'


def _gate(name: str, area: float, function: str, pins: str, delay: float) -> str:
    inputs = "".join(f"pin ({pin}) {{ direction : input; capacitance : 1; }} " for pin in pins)
    arcs = " ".join(_arc(pin, delay, "negative_unate" if "!" in function else "positive_unate") for pin in pins)
    output = f'pin (ZN) {{ direction : output; max_capacitance : 100; function : "{function}"; {arcs} }}'
    return f"cell ({name}) {{ area : {area}; {inputs} {output} }}"


LIBERTY = f"""library (tiny) {{
  delay_model : table_lookup; time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1mA";
  capacitive_load_unit (1, ff); nom_voltage : 1.1; nom_temperature : 25; default_operating_conditions : typical;
  operating_conditions (typical) {{ process : 1; voltage : 1.1; temperature : 25; }}
  lu_table_template (t) {{ variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1 ("0.001, 0.1, 1"); index_2 ("0, 5, 10"); }}
  {_gate("INV_X1", 1, "!A", "A", 0.01)}
  {_gate("BUF_X1", 1.5, "A", "A", 0.02)}
  {_gate("NAND2_X1", 2, "!(A&B)", "AB", 0.02)}
  cell (DFF_X1) {{ area : 8; ff (IQ, IQN) {{ next_state : "D"; clocked_on : "CK"; }}
    pin (D) {{ direction : input; capacitance : 1; timing () {{ related_pin : "CK"; timing_type : setup_rising;
      rise_constraint (scalar) {{ values ("0.03"); }} fall_constraint (scalar) {{ values ("0.03"); }} }} }}
    pin (CK) {{ direction : input; capacitance : 1; clock : true; }}
    pin (Q) {{ direction : output; max_capacitance : 100; function : "IQ";
      timing () {{ related_pin : "CK"; timing_type : rising_edge; timing_sense : non_unate;
        {_table("cell_rise", 0.05, 0.05)} {_table("cell_fall", 0.05, 0.05)}
        {_table("rise_transition", 0.01, 0.01)} {_table("fall_transition", 0.01, 0.01)} }} }} }}
}}
"""


def clock_gate(name: str, area: float, max_load: float, scan: bool = False) -> str:
    return f"""cell ({name}) {{ area : {area}; clock_gating_integrated_cell : latch_posedge;
    {"pin (SE) { direction : input; capacitance : 1; }" if scan else ""}
    pin (CK) {{ direction : input; capacitance : 1; clock_gate_clock_pin : true; }}
    pin (E) {{ direction : input; capacitance : 1; clock_gate_enable_pin : true; timing () {{ related_pin : "CK";
      timing_type : setup_rising; rise_constraint (scalar) {{ values ("0.02"); }}
      fall_constraint (scalar) {{ values ("0.02"); }} }} }}
    pin (GCK) {{ direction : output; max_capacitance : {max_load}; clock_gate_out_pin : true;
      state_function : "CK&IQ"; {_arc("CK", 0.03, "positive_unate")} }} }}
"""


LATCH = f"""cell (LATCH_X1) {{ area : 5; latch ("IQ", "IQN") {{ data_in : "D"; enable : "G"; }}
  pin (D) {{ direction : input; capacitance : 1; timing () {{ related_pin : "G"; timing_type : setup_falling;
    rise_constraint (scalar) {{ values ("0.01"); }} fall_constraint (scalar) {{ values ("0.01"); }} }} }}
  pin (G) {{ direction : input; capacitance : 2; clock : true; }}
  pin (Q) {{ direction : output; max_capacitance : 100; function : "IQ"; {_arc("D", 0.04, "positive_unate")}
    timing () {{ related_pin : "G"; timing_type : rising_edge; timing_sense : non_unate;
      {_table("cell_rise", 0.04, 0.04)} {_table("cell_fall", 0.04, 0.04)}
      {_table("rise_transition", 0.01, 0.01)} {_table("fall_transition", 0.01, 0.01)} }} }} }}
"""
GATED = LIBERTY.rstrip().removesuffix("}") + LATCH + clock_gate("GATE_X1", 3, 8) + clock_gate("GATE_X2", 4, 16) + "}"
