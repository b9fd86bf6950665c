"""Input and output VCs, ports and hosts of a simulated network, and which of them are connected."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.kinds import HOST_VC_BITS
from hopforge.model.network.core.layouts import HOST, INPUT_PORT, OUTPUT_PORT, OUTPUT_VC, input_vc_type
from hopforge.model.network.settings import RouterParameters, Tables
from hopforge.model.topology import Topology


def link_latencies(topology: Topology, router: RouterParameters) -> NDArray[np.int64]:
    """Latency of the link at each output port: int64[router, port], cycles."""
    shape = (topology.routers, topology.max_ports)
    latency = np.broadcast_to(np.asarray(router.link_latency_cycles, np.int64), shape).copy()
    latency[topology.host_at >= 0] = router.host_latency_cycles
    return latency


def wired_records(
    topology: Topology, router: RouterParameters, tables: Tables, latency: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return the arrays ``input_vc``, ``output_vc``, ``input_port``, ``output_port``, ``host``, and a large ``fifo``.

    Parameters
    ----------
    topology, router, tables
        As for `build_net`.
    latency : ndarray
        As from `link_latencies`.
    """
    P, V, B = topology.max_ports, router.vcs, router.buffer_flits
    NP = topology.routers * P
    flat_latency, back = latency.reshape(-1), router.credit_delay_cycles
    records: dict[str, Any] = {
        "input_vc": np.zeros(NP * V, input_vc_type(B)),
        "output_vc": np.zeros(NP * V, OUTPUT_VC),
        "input_port": np.zeros(NP, INPUT_PORT),
        "output_port": np.zeros(NP, OUTPUT_PORT),
        "host": np.zeros(max(topology.hosts, 1), HOST),
    }
    input_vc, output_vc, input_port, output_port, host = records.values()
    if "fifo" not in (input_vc.dtype.fields or {}):
        records["fifo"] = np.zeros((NP * V, B), np.int32)
    output_vc["vc"] = np.tile(np.arange(V), NP)
    input_vc["port"] = np.arange(NP * V) // V
    input_vc["router"], input_vc["number"] = np.arange(NP * V) // (P * V), np.arange(NP * V) % (P * V)
    input_vc["credit_to"] = -1
    output_vc["owner"], output_vc["target"] = -1, -1
    output_vc["credits"] = output_vc["depth"] = B
    input_port["router"], input_port["port"] = np.arange(NP) // P, np.arange(NP) % P
    output_port["flit_time"] = 2 + flat_latency
    output_port["cycles_per_flit"] = np.broadcast_to(router.cycles_per_flit, latency.shape).reshape(-1)
    output_port["first"] = np.arange(NP) // P * P
    credit_time = np.zeros(NP, np.int64)
    _connect_routers(topology, records, V)
    here, there = _channels(topology)
    input_port["carried"][there] = router.lookahead
    credit_time[there] = 1 + flat_latency[here] + back
    if topology.hosts:
        ports = topology.host_router.astype(np.int64) * P + topology.host_port
        credit_time[ports] = 1 + flat_latency[ports]
        host["flit_time"], host["depth"], host["packet"] = 1 + flat_latency[ports], B, -1
        host["return_time"] = 1 + flat_latency[ports] + back
        host["free_mask"] = (1 << V) - 1
        host["inject_mask"] = (1 << V) - 1 if tables.inject_mask is None else tables.inject_mask
        host["reply_mask"] = 0 if tables.reply_mask is None else tables.reply_mask
        _connect_hosts(ports, records, V)
    input_port["credit_time"] = credit_time
    host["queue_first"] = host["queue_last"] = host["message"] = -1
    output_port["free_mask"] = np.where(output_port["connected"] == 1, (1 << V) - 1, 0)
    return records


def _channels(topology: Topology) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of the output port of every link between routers, and of the input port at its other end."""
    here = np.flatnonzero(topology.peer_router.reshape(-1) >= 0)
    peer = topology.peer_router.reshape(-1)[here].astype(np.int64)
    return here, peer * topology.max_ports + topology.peer_port.reshape(-1)[here]


def _connect_routers(topology: Topology, records: dict[str, NDArray[Any]], vcs: int) -> None:
    """Tell every output VC the input VC at its end, and every input VC where its credits go."""
    here, there = _channels(topology)
    for v in range(vcs):
        records["output_vc"]["target"][here * vcs + v] = there * vcs + v
        records["input_vc"]["credit_to"][there * vcs + v] = here * vcs + v
    records["output_port"]["connected"][here] = 1


def _connect_hosts(ports: NDArray[np.int64], records: dict[str, NDArray[Any]], vcs: int) -> None:
    """Connect host h with input and output port ``ports[h]``; its VCs come after those of all routers."""
    host, output_port = records["host"], records["output_port"]
    host["input_vc"] = host["output_vc"] = ports * vcs
    output_port["cycles_per_flit"][ports] = 1
    output_port["connected"][ports] = 1
    for v in range(vcs):
        host_vc = len(records["input_vc"]) + (np.arange(len(ports)) << HOST_VC_BITS) + v
        records["input_vc"]["credit_to"][ports * vcs + v] = host_vc
        records["output_vc"]["target"][ports * vcs + v] = host_vc
