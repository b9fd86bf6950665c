"""Sections `address` and `lookup`: what one lookup engine is made of."""

from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Section

Policy = Literal["lru", "plru", "fifo", "random"]
KeyMode = Literal["arbitrary", "mesh", "torus", "fat_tree", "dragonfly"]


class AddressConfig(Section):
    """Destination addresses: total width and the width of one chunk (digit)."""

    width_bits: Annotated[int, Field(ge=12, le=48)] = 24
    chunk_bits: Literal[2, 3, 4, 6, 8] = 4


class CrcConfig(Section):
    """A CRC that is not in the catalogue (Rocksoft parameters)."""

    width: Annotated[int, Field(ge=1, le=64)]
    poly: Annotated[int, Field(ge=0)]
    init: Annotated[int, Field(ge=0)] = 0
    refin: bool = False
    refout: bool = False
    xorout: Annotated[int, Field(ge=0)] = 0


class SecondLevelConfig(Section):
    """Optional second-level cache (functional model only)."""

    entries: Annotated[int, Field(ge=1)] = 8192
    ways: Annotated[int, Field(ge=1)] = 4
    policy: Policy = "lru"


class CacheConfig(Section):
    """Geometry and policy of the routing cache of one input port."""

    enabled: bool = True
    entries: Annotated[int, Field(ge=1)] = 2048
    ways: Annotated[int, Field(ge=1, le=64)] = 4
    policy: Policy = "lru"
    skewed: bool = False
    tag_bits: Annotated[int, Field(ge=16, le=64)] = 64
    output_bits: Annotated[int, Field(ge=1, le=64)] = 16
    output_kind: Literal["port", "port_set"] = "port"
    epoch_bits: Annotated[int, Field(ge=1, le=8)] = 8
    crc: str | CrcConfig = "CRC-32C"
    random_seed: Annotated[int, Field(ge=1, le=65535)] = 0xACE1
    second_level: SecondLevelConfig | None = None


class LagConfig(Section):
    """Link aggregation: members per logical port, and how a member is chosen."""

    max_members: Annotated[int, Field(ge=1, le=16)] = 1
    members: Annotated[int, Field(ge=1, le=16)] = 1
    hash: Literal["crc", "modulo"] = "crc"


class TcamConfig(Section):
    """The ternary CAM asked on a miss."""

    kind: Literal["auto", "flops", "sram", "external"] = "auto"
    rows: Annotated[int, Field(ge=1, le=4096)] = 64
    latency_cycles: Annotated[int, Field(ge=1, le=1024)] = 8


class LookupConfig(Section):
    """One lookup engine: key functions, cache, MSHRs, TCAM, pipeline."""

    reduction: bool = True
    functions: tuple[KeyMode, ...] = ("arbitrary", "mesh", "torus", "fat_tree", "dragonfly")
    chunk_bits: tuple[Literal[2, 3, 4, 6, 8], ...] = (2, 3, 4, 6, 8)
    comparators: Annotated[int, Field(ge=1, le=24)] = 12
    up_choice: Literal["d_mod_k", "highest_mismatch"] = "d_mod_k"
    lag: LagConfig = LagConfig()
    cache: CacheConfig = CacheConfig()
    mshrs: Annotated[int, Field(ge=1, le=64)] = 8
    request_tag_bits: Annotated[int, Field(ge=1, le=32)] = 8
    pipeline_depth: Literal[1, 2, 3, 4] = 3
    tcam: TcamConfig = TcamConfig()
