"""Generated rule caches of every shape are clean."""

import json

import pytest

from hopforge.gen.packages.parts import part_files
from hopforge.gen.packages.rule_cache import rule_cache_name
from hopforge.gen.verilog.lint import lint_text
from hopforge.model.config import parse_config


@pytest.mark.parametrize(("keys", "policy"), [
    ({"address_bits": 1, "entries": 1, "rows": 1, "output_bits": 1, "id_bits": 1}, "mep"),
    ({"address_bits": 3, "entries": 3, "rows": 2}, "host"),
    ({"address_bits": 7, "entries": 8, "ways": 2, "index_bits": 7, "rows": 3, "output_bits": 32}, "mep"),
    ({"address_bits": 8, "entries": 2, "ways": 1, "rows": 4, "id_bits": 16, "invalidation": "flush"}, "exact"),
    ({"address_bits": 31, "entries": 2, "rows": 2, "tcam_cycles": 9}, "exact"),
])  # fmt: skip
def test_shapes_are_clean(keys: dict[str, object], policy: str) -> None:
    """The length of a prefix has bits for all their values, as with 2ⁿ − 1 bits of an address, or for more."""
    content = {"name": "x", "topology": {"kind": "mesh", "radices": [2]}, "rule_cache": {**keys, "policy": policy}}
    config = parse_config(json.dumps(content))
    name = rule_cache_name(config)
    assert lint_text(part_files(config, "rule_cache")[f"{name}.sv"], name).findings == ()
