"""The picture of the house shows the rooms and floors of the code as it is."""

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]


def house_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", ROOT / ".ci" / "house.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def house_as_it_is() -> Any:
    return house_module().read_house(ROOT)


def test_no_import_runs_back_and_there_is_no_circle() -> None:
    house = house_as_it_is()
    assert house.circles == [] and house.back == []
    floors = {
        layer: {house.floor[room] for room in house.lines if room.split("/")[0] == layer}
        for layer in ("model", "sim", "hw", "gen")
    }
    assert max(floors["model"]) <= 8 and max(floors["sim"]) <= 7  # programs above packet
    assert max(floors["hw"]) <= 8 and max(floors["gen"]) <= 4
    assert "model/lookup" in house.lines and house.imports["sim/run", "sim/traffic"] > 0


def test_the_picture_is_current() -> None:
    house = house_as_it_is()
    picture = (ROOT / "docs" / "pictures" / "house.svg").read_text(encoding="utf-8")
    drawn = {room: int(floor) for room, floor in re.findall(r'<g id="([^"]+)" data-floor="(\d+)">', picture)}
    assert drawn == house.floor, "run make house"


def test_circles_and_imports_that_run_back_are_found(tmp_path: Path) -> None:
    module = house_module()
    files = {
        "model/a/one.py": "from hopforge.model.b.two import x\n",
        "model/b/two.py": "def f() -> None:\n    from hopforge.model.a.one import y\n",
        "model/b/three.py": "from hopforge.sim.c.four import z\n",
        "sim/c/four.py": "from hopforge.model.b import two\n",
        "gen/__init__.py": "", "hw/__init__.py": "", "src/hopforge/cli.py": "",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    house = module.read_house(tmp_path)
    assert house.circles == [{"model/a", "model/b"}]
    assert house.back == [("model/b", "sim/c")]
    assert house.imports["sim/c", "model/b"] == 1


def test_every_room_says_what_lives_there_what_it_may_import_and_what_to_read_first() -> None:
    rooms = [room for room in house_as_it_is().lines if (ROOT / room).is_dir()]
    assert len(rooms) > 20
    for room in rooms:
        if room.startswith("src/"):
            continue
        text = (ROOT / room / "__init__.py").read_text(encoding="utf-8")
        found = re.search(r"May import: [^`]+\. Read first: `([\w/]+\.py)`\.", text)
        assert found is not None, room
        assert (ROOT / room / found[1]).is_file(), f"{room}: {found[1]}"
