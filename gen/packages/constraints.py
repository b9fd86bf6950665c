"""Synopsys design constraints of a generated package: one clock, and what lies outside of the ports."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

__all__ = ["constraints_as_data", "constraints_text"]

OUTSIDE = 0.35
"""Share of the period for what lies outside of a port: before an input, behind an output."""

OUTSIDE_THROUGH = 0.3
"""The same for a port on a combinational path from an input to an output: outside, inside and outside again share one
period."""

OUTSIDE_RESET = 0.2
"""The same for the reset, which comes from a flip-flop and nothing else; what it drives is inside."""

UNCERTAINTY = 0.05
"""Share of the period for skew and jitter of the clock."""


def constraints_text(
    name: str,
    ports: Sequence[Mapping[str, Any]],
    period_ns: float,
    through: Sequence[tuple[str, str]] = (),
    many_periods: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """Return the constraints of a package; each port and each bus is named once, as it is there.

    Parameters
    ----------
    name : str
        Of the top module.
    ports : sequence of mapping
        As in the manifest; the first one is the clock.
    period_ns : float
        Of the clock.
    through : sequence of (str, str)
        Inputs and outputs with a combinational path from one to the other.
    many_periods : mapping of str to int
        Instances in the top module through which a path may take several periods, and how many.
    """
    figures = constraints_as_data(period_ns, through)
    ends = {port for path in through for port in path}
    lines = [
        f"# {name}: one clock; {OUTSIDE:.0%} of the period is left to what lies outside of a port",
        f"create_clock -name clk -period {period_ns:g} [get_ports clk]",
        f"set_clock_uncertainty {figures['uncertainty_ns']:g} [get_clocks clk]",
    ]
    for direction in ("input", "output"):
        plain = [port for port in ports[1:] if port["direction"] == direction and port["name"] not in {*ends, "rst"}]
        if plain:
            lines.append(_delay(direction, figures["outside_ns"], plain))
    reset = [port for port in ports if port["name"] == "rst"]
    if reset:
        lines += [
            f"# rst comes straight from a register: {OUTSIDE_RESET:.0%} of the period",
            _delay("input", figures["reset_ns"], reset),
        ]
    for start, end in through:
        lines.append(
            f"# no register from {start} to {end}: {OUTSIDE_THROUGH:.0%} of the period outside on either side, "
            f"{figures['combinational'][0]['inside_ns']:g} ns inside"
        )
    for direction in ("input", "output"):
        crossed = [port for port in ports if port["direction"] == direction and port["name"] in ends]
        if crossed:
            lines.append(_delay(direction, figures["combinational"][0]["outside_ns"], crossed))
    for instance, periods in many_periods.items():
        lines += [
            f"# what {instance} reads has not changed for {periods} periods when its results are taken",
            f"set_multicycle_path -setup {periods} -through [get_cells {instance}]",
            f"set_multicycle_path -hold {periods - 1} -through [get_cells {instance}]",
        ]
    return "\n".join([*lines, ""])


def constraints_as_data(period_ns: float, through: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return what the constraints say, for the manifest, in ns.

    Examples
    --------
    >>> constraints_as_data(1.0, [("resp_ready", "req_ready")])["combinational"]
    [{'from': 'resp_ready', 'to': 'req_ready', 'outside_ns': 0.3, 'inside_ns': 0.35}]
    """
    outside = round(period_ns * OUTSIDE_THROUGH, 6)
    inside = round(period_ns * (1 - 2 * OUTSIDE_THROUGH - UNCERTAINTY), 6)
    return {
        "period_ns": period_ns,
        "uncertainty_ns": round(period_ns * UNCERTAINTY, 6),
        "outside_ns": round(period_ns * OUTSIDE, 6),
        "reset_ns": round(period_ns * OUTSIDE_RESET, 6),
        "combinational": [
            {"from": start, "to": end, "outside_ns": outside, "inside_ns": inside} for start, end in through
        ],
    }


def _delay(direction: str, delay_ns: float, ports: Iterable[Mapping[str, Any]]) -> str:
    names = " ".join(port["name"] + ("[*]" if port["width_bits"] > 1 else "") for port in ports)
    return f"set_{direction}_delay {delay_ns:g} -clock clk [get_ports {{{names}}}]"
