"""What `import hopforge` offers changes only with its record and a line of the changelog; its import stays quick."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import hopforge

ROOT = Path(__file__).parents[2]


def api_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("public_api", ROOT / ".ci" / "public_api.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_record_is_current() -> None:
    module = api_module()
    record = module.RECORD.read_text().splitlines()
    changed = module.differences(record, module.public_lines())
    assert changed == [], "name the change in CHANGELOG.md (Unreleased), then python .ci/public_api.py --write"
    assert len(record) > 50


def test_a_change_needs_a_line_in_the_changelog() -> None:
    module = api_module()
    now = module.public_lines()
    before = [line for line in now if not line.startswith("load(")] + ["old(config: str) -> None"]
    before = [line.replace("seed: int", "start: int") if line.startswith("simulate(") else line for line in before]
    changed = module.differences(before, now)
    assert len(changed) == 4
    log = "## [Unreleased]\n\n- `hopforge.loads` and `hopforge.simulate`.\n\n## [0.1]\n\n- `hopforge.load`\n"
    assert module.not_named(changed, log) == ["load", "old"]
    assert module.not_named(changed, log.replace("and", "`hopforge.load`, no `hopforge.old`")) == []


def test_every_public_name_is_there_and_documented() -> None:
    assert set(hopforge.__all__) <= set(dir(hopforge))
    assert sorted(set(hopforge.__all__)) == hopforge.__all__
    guide = (ROOT / "docs" / "guides" / "python.md").read_text(encoding="utf-8")
    for name in hopforge.__all__:
        thing = getattr(hopforge, name)
        assert name.startswith("__") or thing.__doc__, name
        assert name.startswith("__") or name in guide, f"docs/guides/python.md says nothing of {name}"


def test_importing_hopforge_loads_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import hopforge; dir(hopforge)\n"
        "print(*sorted(n for n in set(sys.modules) - before if n.startswith('hopforge') or n in ('numpy', 'pandas')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.split() == ["hopforge", "hopforge.interrupts", "hopforge.moved"]


def test_loading_a_configuration_needs_no_compiler_and_no_pandas() -> None:
    code = (
        "import sys, hopforge; hopforge.loads('{name: t, topology: {kind: mesh, radices: [4]}}').replace('seed', 2)\n"
        "print(*[n for n in ('numba', 'pandas', 'matplotlib', 'rich') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.split() == []
