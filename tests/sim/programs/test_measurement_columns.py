"""Columns of what ran a program are explained, also of engines that only some machines have."""

import dataclasses

import pytest

from hopforge.model.output.column_notes import column_notes
from hopforge.sim.programs.app_result import AppMeasurement
from hopforge.sim.programs.loggops_run import LoggopsMeasurement
from hopforge.sim.programs.rank_times import ProgramMeasurement
from hopforge.sim.programs.smpi_execution import ExecutionMeasurement

KINDS = (AppMeasurement, LoggopsMeasurement, ExecutionMeasurement)


def test_all_kinds_are_named_here() -> None:
    assert set(ProgramMeasurement.__subclasses__()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_of_a_measurement_is_explained(kind: type[ProgramMeasurement]) -> None:
    names = [field.name for field in dataclasses.fields(kind)]
    assert set(column_notes("app", names)) == set(names)
