"""Programs of text, as recorded ones are, and their runs."""

from pathlib import Path

from hopforge.model.config import Config, parse_config
from hopforge.sim.run.program_run import ProgramMeasurement, run_program
from hopforge.sim.run.simulation import Simulation

ROW = "topology: {kind: mesh, radices: [6]}"
SWITCH = "topology: {kind: mesh, radices: [1], hosts_per_router: 8}"
FLIT_BYTES, MTU = 10, 40


def base(routers: int, rc: int = 0, link: int = 1) -> int:
    """Cycles from sending a flit to its arrival without load (docs/definitions/router.md): the formula for one flit."""
    return (3 + rc) * routers + link * (routers - 1) + 3


def write(folder: Path, ranks: list[list[str]]) -> Path:
    path = folder / "program"
    path.mkdir(exist_ok=True)
    for rank, lines in enumerate(ranks):
        (path / f"rank-{rank}.txt").write_text("".join(f"{rank} {line}\n" for line in ["init", *lines]))
    return path


def traced(
    folder: Path, ranks: list[list[str]], *lines: str, topology: str = ROW, workload: str = "", more: str = ""
) -> Config:
    path = write(folder, ranks)
    text = f"name: test\n{topology}\nworkload: {{kind: trace, file: {path}, mtu_bytes: {MTU}{workload}}}\n"
    text += f"traffic: {{source: program, flit_bytes: {FLIT_BYTES}{more}}}\n"
    return parse_config(text + "\n".join(lines or ["router: {buffer_flits: 32}"]))


def finish(checked: Config, **options: int) -> tuple[Simulation, ProgramMeasurement]:
    run = Simulation(checked, 0.1, 1, **options)
    return run, run_program(run)
