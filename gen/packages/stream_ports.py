"""AXI-Stream adapters of a generated router or network, in words and data."""

from collections.abc import Sequence
from typing import Any

from hopforge.gen.packages.package import registers_as_data
from hopforge.model.lookup.csr import CSR_ADDR_BITS
from hopforge.model.router.links import End
from hopforge.model.router.stream_params import STREAM_PAGE, StreamParams, stream_map

__all__ = ["network_stream_sections", "network_streams_as_data", "stream_sections", "streams_as_data"]

_FIRST = STREAM_PAGE << CSR_ADDR_BITS


def streams_as_data(streams: Sequence[StreamParams]) -> dict[str, Any]:
    """Return what the manifest says of the adapters of a router; nothing where there are none."""
    return _as_data(streams, [stream.port for stream in streams], [{} for _ in streams])


def network_streams_as_data(streams: Sequence[StreamParams], hosts: Sequence[End]) -> dict[str, Any]:
    """Return what the manifest says of the adapters of a network, one for each of `hosts`; nothing without any."""
    places = [{"host": host, "router": end.router} for host, end in enumerate(hosts)]
    return _as_data(streams, range(len(hosts)), places)


def _as_data(streams: Sequence[StreamParams], names: Sequence[int], places: Sequence[dict[str, int]]) -> dict[str, Any]:
    """Return the data of adapters, by the numbers in their names and with where they are."""
    if not streams:
        return {}
    registers = registers_as_data(stream_map(_ports(streams)))
    return {
        "streams": {
            "definition": "docs/definitions/stream-adapter.md",
            "adapters": [
                place | {
                    "port": stream.port, "slave": f"s_axis_{name}", "master": f"m_axis_{name}",
                    "own": stream.own, "longest_packet_beats": stream.beats, "bytes_of_a_beat": stream.bytes,
                    "user_bits": stream.user_bits, "vcs_at_injection": stream.vcs_at_injection,
                }
                for stream, name, place in zip(streams, names, places, strict=True)
            ],
            "registers": [data | {"word_address": data["word_address"] + _FIRST} for data in registers],
        }
    }  # fmt: skip


def _ports(streams: Sequence[StreamParams]) -> tuple[int, ...]:
    """Return the ports with an adapter, of all routers together."""
    return tuple(sorted({stream.port for stream in streams}))


def stream_sections(streams: Sequence[StreamParams]) -> list[str]:
    """Lines of the register documentation on the adapters of a router; none where there are none."""
    at = (f"{stream.port} (own destination {stream.own})" for stream in streams)
    return _sections(streams, [f"at ports {', '.join(at)}."])


def network_stream_sections(streams: Sequence[StreamParams], hosts: Sequence[End]) -> list[str]:
    """Lines of the register documentation on the adapters of a network; none where there are none."""
    return _sections(
        streams,
        [
            "at every host. A word lies in the router of the host; ports without a host read 0.",
            "",
            "| host | streams | router | port | own destination |",
            "|---|---|---|---|---|",
            *(
                f"| {host} | `s_axis_{host}_…`, `m_axis_{host}_…` | {end.router} | {end.port} | {stream.own} |"
                for host, (end, stream) in enumerate(zip(hosts, streams, strict=False))
            ),
        ],
    )


def _sections(streams: Sequence[StreamParams], where: Sequence[str]) -> list[str]:
    """Lines on adapters, with what says where they are behind the first words."""
    if not streams:
        return []
    first = streams[0]
    return [
        "",
        "## AXI-Stream adapters",
        "",
        f"Packets of up to {first.beats} beats of {first.bytes} bytes {where[0]}",
        *where[1:],
        "",
        "| word | register | reset | what |",
        "|---|---|---|---|",
        *(
            f"| 0x{_FIRST + register.address:04X} | {register.name} | 0x{register.reset:08X} | {register.description} |"
            for register in stream_map(_ports(streams))
        ),
    ]
