"""A configuration that hopforge writes anew with every key can be read again: the demo and results do so."""

from pathlib import Path

import pytest

from hopforge.model.config import load_config, parse_config

ROOT = Path(__file__).parents[3]
TORUS = "name: x\ntopology: {kind: torus, radices: [4, 4]}\n"


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "configs").glob("*.yml")))
def test_shipped_files(name: str) -> None:
    config = load_config(ROOT / "configs" / name, keys=False)
    again = parse_config(config.model_dump_json(), keys=False)
    assert again.model_dump() == config.model_dump()


@pytest.mark.parametrize("workload", [
    "{kind: training, parallelism: pipeline, ranks: 4}",
    "{kind: training, parallelism: expert, ranks: 4}",
    "{kind: training, model: llama2_7b, ranks: 16, parallel: {tensor: 4}}",
    "{kind: collective, operation: barrier}",
    "{kind: collective, operation: bcast, collectives: {rules: mpich}}",
    "{kind: job_log, generate: batch}",
    "{kind: jobs, jobs: [{ranks: 2, program: {kind: dpsnn}}, {program: {kind: npb, benchmark: cg, ranks: 4}}]}",
])  # fmt: skip
def test_workloads(workload: str) -> None:
    config = parse_config(f"{TORUS}workload: {workload}\n", keys=False)
    assert parse_config(config.model_dump_json(), keys=False).workload == config.workload
