"""AXI-Stream adapters of a generated router, in words and data."""

from collections.abc import Sequence
from typing import Any

from hopforge.gen.package import registers_as_data
from hopforge.model.lookup.csr import CSR_ADDR_BITS
from hopforge.model.router.stream_params import STREAM_PAGE, StreamParams, stream_map

__all__ = ["stream_sections", "streams_as_data"]

_FIRST = STREAM_PAGE << CSR_ADDR_BITS


def streams_as_data(streams: Sequence[StreamParams]) -> dict[str, Any]:
    """Return what the manifest says of the adapters; nothing where there are none."""
    if not streams:
        return {}
    registers = registers_as_data(stream_map(tuple(stream.port for stream in streams)))
    return {
        "streams": {
            "definition": "docs/definitions/stream-adapter.md",
            "adapters": [
                {
                    "port": stream.port, "slave": f"s_axis_{stream.port}", "master": f"m_axis_{stream.port}",
                    "own": stream.own, "longest_packet_beats": stream.beats, "bytes_of_a_beat": stream.bytes,
                    "user_bits": stream.user_bits, "vcs_at_injection": stream.vcs_at_injection,
                }
                for stream in streams
            ],
            "registers": [data | {"word_address": data["word_address"] + _FIRST} for data in registers],
        }
    }  # fmt: skip


def stream_sections(streams: Sequence[StreamParams]) -> list[str]:
    """Lines of the register documentation on the adapters; none where there are none."""
    if not streams:
        return []
    first = streams[0]
    return [
        "",
        "## AXI-Stream adapters",
        "",
        f"Packets of up to {first.beats} beats of {first.bytes} bytes at ports "
        + ", ".join(f"{stream.port} (own destination {stream.own})" for stream in streams)
        + ".",
        "",
        "| word | register | reset | what |",
        "|---|---|---|---|",
        *(
            f"| 0x{_FIRST + register.address:04X} | {register.name} | 0x{register.reset:08X} | {register.description} |"
            for register in stream_map(tuple(stream.port for stream in streams))
        ),
    ]
