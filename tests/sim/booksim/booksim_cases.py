"""Configurations of BookSim for the tests beside, and a run of one."""

from pathlib import Path
from typing import Any

from hopforge.model.config import load_config
from hopforge.sim.booksim.translate import translate
from hopforge.sim.run.simulation import Simulation

#: the router of our reference runs
ROUTER = """num_vcs = 4; vc_buf_size = 8; vc_allocator = islip; sw_allocator = islip; routing_delay = 0;
credit_delay = 2; injection_rate_uses_flits = 1; injection_rate = 0.1; sample_period = 2500;
"""
MESH = f"topology = mesh; k = 8; n = 2; routing_function = dor; {ROUTER}"
FOUR = f"{MESH} use_noc_latency = 0; packet_size = 4;"
BUTTERFLY = f"topology = flatfly; k = 4; n = 2; c = 4; x = 4; y = 4; xr = 2; yr = 2; use_noc_latency = 0; {ROUTER}"


def sections(folder: Path, text: str, *parameters: str) -> dict[str, Any]:
    (folder / "case.cfg").write_text(text)
    return translate([str(folder / "case.cfg"), *parameters]).sections


def run(folder: Path, text: str, load: float, *parameters: str, cycles: int = 6000) -> Any:
    (folder / "case.cfg").write_text(text)
    found = translate([str(folder / "case.cfg"), *parameters])
    found.write(folder / "case.yml")
    limits = {"warmup_cycles": 2000, "min_cycles": cycles, "max_cycles": cycles}
    config = load_config(folder / "case.yml", keys=False)
    config = config.model_copy(update={"simulation": config.simulation.model_copy(update=limits)})
    return Simulation(config, load, 1).run()
