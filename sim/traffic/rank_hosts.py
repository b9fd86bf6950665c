"""Which host each rank of a program is on."""

from pathlib import Path

import numpy as np

from hopforge.model.config.workload import MappingConfig
from hopforge.model.input_file import read_input_text
from hopforge.model.topology import Topology
from hopforge.sim.traffic.packet_stream import Hosts, WorkloadError

__all__ = ["map_ranks"]


def map_ranks(config: MappingConfig, ranks: int, topology: Topology, seed: int) -> Hosts:
    """Place ranks on hosts.

    Returns
    -------
    ndarray, int32[rank]
        Host of each rank; of a machine with several links the first one. Only a file may put several ranks on one host.

    Raises
    ------
    WorkloadError
        More ranks than hosts, or a bad mapping file (with file and line).
    """
    links = topology.host_links
    machines = topology.hosts // links
    if config.kind == "file":
        assert config.file is not None, "checked by model.config"
        return _read_mapping(config.file, ranks, machines) * links
    if ranks > machines:
        raise WorkloadError(f"workload: {ranks} ranks are more than the {machines} hosts of the {topology.name}")
    if config.kind == "random":
        return np.random.default_rng([seed, 1]).permutation(machines)[:ranks].astype(np.int32) * links
    if config.kind == "spread":
        return (np.arange(ranks, dtype=np.int64) * machines // max(ranks, 1)).astype(np.int32) * links
    if config.first + ranks > machines:
        raise WorkloadError(
            f"workload.mapping.first: {ranks} ranks from host {config.first} on end beyond the last host"
            f" {machines - 1}"
        )
    return np.arange(config.first, config.first + ranks, dtype=np.int32) * links


def _read_mapping(path: Path, ranks: int, machines: int) -> Hosts:
    try:
        text = read_input_text(path)
    except OSError as error:
        raise WorkloadError(f"workload.mapping.file: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WorkloadError(f"workload.mapping.file: {path} is not a text") from error
    hosts = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.split("#", 1)[0].strip()
        if not word:
            continue
        if not (word.isascii() and word.isdigit() and len(word) < 20):
            raise WorkloadError(f"{path}:{number}: expected a host number, not {word!r}")
        if int(word) >= machines:
            raise WorkloadError(f"{path}:{number}: host {word} is beyond the last host {machines - 1}")
        hosts.append(int(word))
    if len(hosts) != ranks:
        raise WorkloadError(f"{path}: maps {len(hosts)} ranks, the program has {ranks}")
    return np.array(hosts, np.int32)
