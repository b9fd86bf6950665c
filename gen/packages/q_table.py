"""The table of Q-adaptive of a configured dragonfly as a generated package."""

import dataclasses

from hopforge.gen.packages.package import Package
from hopforge.hw.agents.q_table import QTable
from hopforge.model.config import Config
from hopforge.model.router.q_table import ANSWER_CYCLES, UPDATE_CYCLES, QTableParams

__all__ = ["q_table_name", "q_table_package"]

PERIOD_NS = 1.3
"""Clock period of the constraints: what a table for 72 hosts keeps at 45 nm."""


def q_table_name(config: Config) -> str:
    """Name of the top module, and stem of every file."""
    return f"{config.name}_q_table"


def q_table_package(config: Config, *, shared_read: bool = False) -> Package:
    """Return what is generated of the table of a configured dragonfly."""
    params = QTableParams.from_config(config, shared_read=shared_read)
    name = q_table_name(config)
    return Package(
        name=name,
        kind="q_table",
        description="Table of Q-adaptive of a dragonfly router",
        component=QTable(params=params),
        through=(("req_valid", "upd_ready"),) if shared_read else (),
        period_ns=PERIOD_NS,
        manifest={
            "definition": "docs/definitions/q-table.md",
            "parameters": dataclasses.asdict(params),
            "derived": {
                "rows": params.rows, "columns": params.columns, "memory_bits": params.memory_bits,
                "answer_cycles": ANSWER_CYCLES, "update_cycles": UPDATE_CYCLES,
            },
            "registers": [],
        },
        documentation=_documentation(name, params),
    )  # fmt: skip


def _documentation(name: str, p: QTableParams) -> str:
    """Return what a user of the module must know, as Markdown."""
    memories = "one memory, an update waits while there is a query" if p.shared_read else "two equal memories"
    return "\n".join(
        [
            f"# `{name}`",
            "",
            f"{p.rows} rows (other group, source host) of {p.columns} estimates of {p.value_bits} bits; {memories}. "
            "The module has no registers of a bus; `hopforge.hw.agents.q_table` says what its ports mean.",
            "",
            "| constant | value |",
            "|---|---|",
            f"| first estimates: port with the link to the group, others (steps) | {p.near}, {p.far} |",
            f"| learning rates, shorter and longer (1/1024) | {p.alpha}, {p.beta} |",
            f"| thresholds, source router and first router of another group (1/1024) | {p.q_thld1}, {p.q_thld2} |",
            f"| rounding of an update | {'by upd_dither' if p.dither else 'to the nearest'} |",
            f"| cycles from a query to its answer | {ANSWER_CYCLES} |",
            f"| cycles until queries see an update | {UPDATE_CYCLES} |",
            "",
        ]
    )
