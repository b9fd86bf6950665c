"""Every writer of files goes through `model.output`: no other code opens, moves or deletes what a user may own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: what writes, moves or deletes, by the name of the method or function
WRITERS = {
    "write_text", "write_bytes", "savefig", "to_csv", "to_parquet", "to_json", "save", "savez", "savetxt", "tofile",
    "write_table", "copyfile", "copy", "copy2", "copytree", "move", "rename", "unlink", "rmtree", "rmdir",
    "symlink_to", "truncate",
}  # fmt: skip
#: of modules, so that methods of the same name (`dict.copy`, `str.replace`) are left alone
OF_MODULES = {"copy": "shutil", "move": "shutil", "remove": "os"}
#: names of places that are ours: what `staged` and `one_file` yield, and temporary folders
OURS = {"scratch", "part", "place"}
#: files whose writing functions get such a place from their caller, or work in a folder of their own; why
EXEMPT = {
    "model/output/run_files.py": "removes what metadata of ours list, called by staged",
    "model/kernel/program_cache.py": "machine code of kernels, in the cache",
    "model/workload/kept_traces.py": "parsed traces, in the cache",
    "model/workload/read_trace.py": "ranks of a trace before, in a folder that may_replace allows",
    "model/workload/chakra_files.py": "ranks of a trace before, in a folder that may_replace allows",
    "gen/tools/verilated_runtime.py": "objects of Verilator: in the cache, and in a folder that clear_folder emptied",
    "sim/programs/record_communicators.py": "the trace of SimGrid: temporary",
    "gen/tools/yosys.py": "scripts of a tool in its working folder",
    "gen/mutation/mutate.py": "a tool in its working folder, which clear_folder emptied",
    "gen/mutation/and_graph.py": "a tool in its working folder, which clear_folder emptied",
    "gen/mutation/unreachable_fault.py": "a tool in its working folder, which clear_folder emptied",
    "gen/synth/area_and_delay.py": "a tool in its working folder: temporary, or of staged",
    "gen/synth/timing.py": "a tool in its working folder: temporary",
    "gen/synth/power.py": "a tool in its working folder: temporary",
    "gen/verilog/writer.py": "a tool in its working folder: temporary",
    "gen/tools/slang.py": "a tool in its working folder: temporary",
    "gen/verilog/lint.py": "a tool in its working folder: temporary",
    "gen/formal/induction.py": "a tool in its working folder: temporary",
    "gen/formal/reduction.py": "a tool in its working folder: temporary",
    "gen/synth/gate_energy.py": "a tool in its working folder: temporary",
    "gen/fpga/bitstream.py": "the bitstream, into what staged yields",
    "gen/fpga/tools.py": "tools in their working folder, which clear_folder emptied",
    "sim/boards/simulated.py": "a simulator in its working folder, which clear_folder emptied",
    "sim/cosim/gate_run.py": "a simulator in its working folder: temporary",
    "sim/cosim/lookup_variants.py": "a ledger that grows by a line for each run, checked by check_destination",
    "sim/drive/runner.py": "a simulator in its working folder, which clear_folder emptied",
    "sim/drive/replay_bench.py": "a simulator in its working folder, checked by runner",
    "sim/cosim/mutation_race.py": "a simulator in its working folder, which clear_folder emptied",
    "sim/cosim/router.py": "a ledger that grows by a line for each run, checked by check_destination",
    "sim/programs/smpi_replay.py": "what SimGrid reads: temporary",
    "sim/reproduce/programs/apps_engines.py": "a trace: temporary",
    "sim/reproduce/programs/apps_links.py": "a trace: temporary",
    "sim/reproduce/irregular/loren_simulated.py": "a table: temporary",
    "sim/start/bench_net.py": "what BookSim reads: temporary",
    "sim/start/demo_network.py": "the folder is that of staged",
    "sim/run/link_frames.py": "the folder is that of staged",
    "sim/pages/report_data.py": "the folder is that of staged",
    "sim/drive/replay.py": "into what one_file yields",
    "model/output/columns.py": "writes into what staged yields",
}


def writers(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every call that may write, move or delete a file outside of a place of ours."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and _writes(node) and not _is_ours(node):
            yield node.lineno, ast.unparse(node)[:80]


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = call.func.value.id if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) else ""
    if name == "open":
        words = [*call.args, *(keyword.value for keyword in call.keywords)]
        modes = [word.value for word in words if isinstance(word, ast.Constant)]
        return any(isinstance(mode, str) and len(mode) < 4 and set(mode) & set("wax+") for mode in modes)
    if name in {"replace", "rename"}:  # of a path: one argument
        return owner == "os" or (bool(owner) and len(call.args) == 1 and not call.keywords)
    if not isinstance(call.func, ast.Attribute):
        return False
    if name in OF_MODULES:
        return owner == OF_MODULES[name]
    if name in {"to_csv", "to_json"} and not call.args:
        return False  # returns a text
    return name in WRITERS


def _is_ours(call: ast.Call) -> bool:
    named = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return any(isinstance(node, ast.Name) and node.id in OURS for one in [*named, *call.args] for node in ast.walk(one))


def sources() -> list[Path]:
    found = [path for layer in ("model", "hw", "gen", "sim") for path in sorted((ROOT / layer).rglob("*.py"))]
    for folder in ("", "commands", "api"):
        found += (ROOT / "src" / "hopforge" / folder).glob("*.py")
    assert len(found) > 200
    return found


def test_nothing_is_written_past_the_one_place() -> None:
    found = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        if name not in EXEMPT and not name.startswith(("model/output/destination", "model/output/results")):
            found += [f"{name}:{line}: {call}" for line, call in writers(path.read_text())]
    assert found == []


def test_nothing_is_exempt_that_need_not_be() -> None:
    assert [name for name in EXEMPT if (ROOT / name).exists() and not [*writers((ROOT / name).read_text())]] == []
    assert [name for name in EXEMPT if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("path.write_text('x')", 1),
        ("(scratch / 'a').write_text('x')", 0),
        ("path.open('w')", 1),
        ("open(path, mode='ab')", 1),
        ("path.open()", 0),
        ("'a'.replace('b', 'c')", 0),
        ("temporary.replace(path)", 1),
        ("shutil.copyfile(a, b)", 1),
        ("table.to_csv(path)", 1),
        ("table.to_csv(index=False)", 0),
        ("table.copy()", 0),
    ],
)
def test_writers_are_found(text: str, count: int) -> None:
    assert len([*writers(text)]) == count
