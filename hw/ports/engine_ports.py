"""Groups of ports of a lookup engine inside a router."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.lookup.base import lookup_ports
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.params import RouterParams

__all__ = ["asking_signature", "control_signature"]


def control_signature(params: LookupParams) -> wiring.Signature:
    """Ports of a lookup engine that software and a TCAM outside use."""
    ports = lookup_ports(params)
    return wiring.Signature({name: port for name, port in ports.items() if not name.startswith(("req_", "resp_"))})


def asking_signature(params: RouterParams) -> wiring.Signature:
    """Return requests and responses of a shared engine, seen from an input unit; a tag is the number of a VC."""
    assert params.lookup is not None
    tag_bits = max(1, ceil_log2(params.vcs))
    return wiring.Signature(
        {
            "req_valid": Out(1),
            "req_ready": In(1),
            "req_dst": Out(params.address_bits),
            "req_tag": Out(tag_bits),
            "resp_valid": In(1),
            "resp_ready": Out(1),
            "resp_tag": In(tag_bits),
            "resp_output": In(params.lookup.output_bits),
            "resp_match": In(1),
        }
    )
