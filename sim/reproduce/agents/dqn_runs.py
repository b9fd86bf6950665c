"""Runs of DQN-Routing's 4×4 torus (seed 000, chapter 4), which several figures share."""

from pathlib import Path
from typing import Any

from hopforge.model.config import Config

#: name in the document → algorithm, virtual channels
ALGORITHMS = {"DOR": ("dor", 2), "star-channel": ("star_channel", 3), "DQN": ("dqn", 3)}
SOURCE = "seed 000"
CYCLE_US = 0.00521
#: of a hop without load
HOP_CYCLES = 77
ASSUMPTIONS = (
    "input-queued routers, virtual cut-through, 1032 flits per VC: with 258 DOR saturates at 59, not 78 %",
    "an even ring has two shortest ways: drawn at random; 77 cycles of 5.21 ns per hop without load",
    "DQN: 4 agents, one for each row; agent, schedule, rewards and acknowledges of definitions/dqn.md, its defaults",
)


def torus_config(
    algorithm: str, *, traffic: dict[str, Any], dqn: dict[str, Any] | None = None, **sections: dict[str, Any]
) -> Config:
    """Return the configuration of one run.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    traffic : dict
        Section `traffic`; DQN adds the acknowledges.
    dqn : dict, optional
        Keys of section `routing.dqn`.
    sections : dict
        Further sections.
    """
    name, vcs = ALGORITHMS[algorithm]
    routing: dict[str, Any] = {"algorithm": name, "ties": "random"}
    if algorithm == "DQN":
        routing["dqn"] = {"agents": "row"} | (dqn or {})
        traffic = {"acknowledge": {}} | traffic
    return Config.model_validate(
        {
            "name": "dqn",
            "topology": {"kind": "torus", "radices": (4, 4)},
            "router": {"vcs": vcs, "switching": "vct", "buffer_flits": 1032, "link_latency_cycles": 72},
            "routing": routing,
            "traffic": traffic,
            **sections,
        }
    )


def spikes_config(
    algorithm: str, rate_hz: float, steps: int, *, exploration: str = "configuration", weights: Path | None = None
) -> Config:
    """Return the configuration of DPSNN on 16 processes, one for each router.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    rate_hz : float
        Mean firing rate of a neuron.
    steps : int
        Milliseconds of simulated time.
    exploration : str
        Of the agents.
    weights : Path, optional
        What the agents begin with.
    """
    dqn: dict[str, Any] = {"exploration": exploration}
    if weights is not None:
        dqn["weights"] = weights
    return torus_config(
        algorithm,
        traffic={"source": "program", "flit_bytes": 16},
        dqn=dqn,
        workload={"kind": "dpsnn", "rate_hz": rate_hz, "steps": steps, "mtu_bytes": 4096},
    )
