"""Imports from where modules were before the layout of 2026-11 are refused with the new place."""

import importlib
import importlib.util
from pathlib import Path

import pytest

from hopforge.model.network.core.user_code import UserCodeError
from hopforge.model.routing.contract.user import load_user_file
from hopforge.moved import MODULES, NAMES


@pytest.mark.parametrize("old", MODULES)
def test_an_old_place_is_refused_and_the_new_one_exists(old: str) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"hopforge.{old}")
    message = str(caught.value)
    assert message.startswith(f"hopforge.{old} is now hopforge.{MODULES[old]};") and "\n" not in message
    assert importlib.util.find_spec(f"hopforge.{MODULES[old]}") is not None


@pytest.mark.parametrize("room", NAMES)
def test_names_of_a_module_whose_name_a_room_has_taken(room: str) -> None:
    names = NAMES[room]
    module = importlib.import_module(f"hopforge.{room}")
    assert names
    for name, now in names.items():
        with pytest.raises(ImportError, match=rf"^hopforge\.{room}\.{name} is now hopforge\.{now}\.{name}$"):
            getattr(module, name)
        assert hasattr(importlib.import_module(f"hopforge.{now}"), name)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = module.nonsense


def test_modules_that_never_were_are_not_found_as_always() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'hopforge.model.nonsense'$"):
        importlib.import_module("hopforge.model.nonsense")


def test_a_routing_file_of_old_is_told_where_things_are(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("from hopforge.model.network.candidates import candidate\n")
    with pytest.raises(UserCodeError) as caught:
        load_user_file(path, "prepare", "routing.file")
    message = str(caught.value)
    assert "hopforge.model.network.candidates is now hopforge.model.network.core.candidates" in message
    assert "import from hopforge.model.routing" in message and "\n" not in message
