"""Section `rule_cache`: a cache in hardware before a TCAM of prefix rules."""

from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Section


class RuleCacheConfig(Section):
    """The block (docs/definitions/rule-caches.md, *In hardware*)."""

    policy: Literal["exact", "host", "mep"] = "mep"
    """What a miss caches: the address; its rule if no longer one lies inside, else the address; the shortest prefix
    that is right."""
    entries: Annotated[int, Field(ge=1, le=64)] = 16
    """Lines of the cache; fully associative, LRU."""
    rows: Annotated[int, Field(ge=1, le=1024)] = 64
    """Rules that the TCAM holds."""
    address_bits: Annotated[int, Field(ge=1, le=62)] = 32
    """Bits of an address."""
    output_bits: Annotated[int, Field(ge=1, le=32)] = 8
    """Bits of an answer."""
    id_bits: Annotated[int, Field(ge=1, le=16)] = 6
    """Bits of the number of a request."""
    tcam_cycles: Annotated[int, Field(ge=4, le=32)] = 4
    """Cycles from a miss to its answer and line."""
    invalidation: Literal["overlap", "flush"] = "overlap"
    """What an update of a rule removes: the lines that share an address with it, or all."""
