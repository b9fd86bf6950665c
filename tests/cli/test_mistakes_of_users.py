"""A net for mistakes in a user's Python files: whatever they do wrong, every command says it in one line, status 2.

Every third kind of mistake goes through one command, in turn; `make study` takes all through all commands.
"""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from hopforge import cli

NET = """
name: x
topology: {kind: mesh, radices: [2, 2]}
simulation: {load: 0.3, loads: [0.3], warmup_cycles: 100, max_cycles: 2000}
workload: {kind: collective, operation: allreduce, bytes: 400, ranks: 4}
"""
ROUTER = "router: {vcs: 2}\n"
ROUTING = f"{NET}{ROUTER}routing: {{algorithm: file, file: mine.py, prepare_limit_s: 0.3}}\n"
UNCHECKED = ROUTING.replace("0.3}", "0.3, check: false}")
#: commands that route packets, and the configuration that they get
ROUTE_COMMANDS = [
    ("net", ROUTING), ("net", UNCHECKED), ("series", ROUTING), ("sweep --workers 1", ROUTING), ("trace", ROUTING),
    ("app --engine packet", ROUTING), ("gen router", ROUTING), ("gen network", ROUTING),
    ("cosim --part network", ROUTING), ("lint --what router", ROUTING), ("mutate --block router", ROUTING),
]  # fmt: skip
TRAFFIC = f"{NET}traffic: {{pattern: file, file: mine.py, prepare_limit_s: 0.3}}\n"
#: commands that draw destinations
TRAFFIC_COMMANDS = [
    ("net", TRAFFIC), ("net", TRAFFIC + "router: {model: input_output_queued}\n"),
    ("net", TRAFFIC.replace("mesh", "torus") + "router: {model: packet}\nrouting: {algorithm: abr}\n"),
    ("series", TRAFFIC), ("sweep --workers 1", TRAFFIC), ("trace", TRAFFIC),
]  # fmt: skip

HEAD = "import numpy as np\nfrom hopforge.model.routing import *\n"
RELATION = """
def route(router, in_port, in_vc, packet, net, table, memory, out):
    dx = packet.dst % 2 - router % 2
    dy = packet.dst // 2 - router // 2
    BODY
    out[0] = candidate(0 if dx == 0 and dy == 0 else (1 if dx > 0 else 2) if dx != 0 else (3 if dy > 0 else 4), 3)
    return 1
def prepare(topology, vcs, options):
    return RoutingPlan(relation(route), np.zeros(4, np.int32))
"""
#: helpers of a file, behind its relation
HELPERS = """
A = np.arange(4)
import numba
@numba.njit("int64(int64)")
def FAR(k):
    return A[k]
@numba.njit
def DEEP(k):
    return DEEP(k + 1) + 1
"""
AT = 7  # line of BODY
PLAN = "RoutingPlan(relation(route), np.zeros(4, np.int32){})"

# body of the relation, line of the mistake, message
BODIES = [
    ("x = table[4]", AT, r"index 4 of table, which has 4 entries"),
    ("x = table[-1]", AT, r"index -1 of table, which has 4 entries"),
    ("x = memory[packet.dst + 1]", AT, r"index [1-4] of memory, which has 1 entries"),
    ("memory[1 << 40] = 2.0", AT, r"index 1099511627776 of memory"),
    ("out[1] = 0", AT, r"index 1 of out, which has room for max_candidates = 1"),
    ("out[-1] = 0", AT, r"index -1 of out"),
    ("packet.phase = 1", 4, r"left packet.phase at 1; it must be 0 to 0 \(phases = 1\)"),
    ("packet.phase = -1", 4, r"left packet.phase at -1"),
    ("out[0] = candidate(9, 3); return 1", AT, r"out\[0\] names port 9; ports are 0 to 4"),
    ("out[0] = candidate(-1, 3); return 1", AT, r"out\[0\] names a port below 0 or above 1022; ports are 0 to 4"),
    ("out[0] = candidate(2 - router % 2, 3); return 1", AT, r"out\[0\] names port [12], which leads nowhere"),
    ("if router == 1 and packet.dst == 3:\n        out[0] = candidate(0, 3); return 1", AT + 1,
     r"out\[0\] names port 0, where another host is than the packet's"),
    ("out[0] = candidate(0, 7); return 1", AT, r"out\[0\] names the VCs 0b111; its mask must name some of VC 0 to 1"),
    ("out[0] = candidate(0, 0); return 1", AT, r"out\[0\] names no VC that exists; its mask must name some of VC 0"),
    ("out[0] = candidate(0, 1 << 16); return 1", AT, r"out\[0\] names no VC that exists; "),
    ("out[0] = candidate(0, 3, 256); return 1", AT, r"out\[0\] is no candidate"),
    ("out[0] = 5 << 50; return 1", AT, r"out\[0\] is no candidate"),
    ("return 1", 4, r"returned 1 candidates, but did not write out\[0\]"),
    ("return -5", 4, r"returned -5; the number of candidates must be 0 to max_candidates = 1"),
    ("return 2", 4, r"returned 2; the number of candidates must be 0 to max_candidates = 1"),
    ("x = output_vc(net, 40).credits", AT, r"output_vc\(net, 40\): the network has 40 output VCs"),
    ("x = draw_below(net, 4, 3)", AT, r"draws a number for router 4; there are 4"),
    ("x = draw_below(net, router, 0)", AT, r"draws a number below 0; this must be 1 or more"),
    ("x = 1 // table[0]", 4, r"ZeroDivisionError: integer division by zero"),
    ("x = np.zeros(3)[packet.dst + 3]", 4, r"IndexError: index is out of bounds"),
    ("if dx == 0:\n        raise ValueError('bad')", AT + 1, r"ValueError: bad"),
    ("x = A[router + 4]; out[0] = candidate(x & 1, 3); return 1", 4, "IndexError: index is out of bounds"),
    ("a = [1, 2]; x = a[dx + 7]; out[0] = candidate(x & 1, 3); return 1", 4, "IndexError"),
    ("out[0] = candidate(FAR(1 << 40) & 1, 3); return 1", 4, "IndexError: index is out of bounds"),
    ("x = np.zeros(-1)", 4, "ValueError: negative dimensions not allowed"),
    ("assert dx > 5, 'no'", AT, "AssertionError: no"),
    ("try:\n        x = table[9]\n    except Exception:\n        return 7", 4, "returned 7; "),
]
NOT_COMPILED = [
    ("packet.dst = 9", AT, r"must not write the field 'dst'"),
    ("net.cycle = 4", AT, r"must not write the field 'cycle'"),
    ("output_vc(net, 1).credits = 3", AT, r"must not write the field 'credits'"),
    ("table[0] = 1", AT, r"no such operation: setitem\(table"),
    ("table['a']", AT, r"cannot be compiled"),
    ("undefined(1)", AT, r"cannot be compiled: NameError: name 'undefined' is not defined"),
    ("return 'x'", 4, r"must return an integer on every way"),
    ("return 0.5", 4, r"must return an integer on every way, not float64"),
    ("if dx > 0:\n        return None", 4, r"must return an integer on every way, not nothing"),
    ("x = packet.nothing", AT, "there is no field 'nothing'"),
    ("x = net.nothing", AT, "there is no field 'nothing'"),
    ("x = table[0.5]", AT, r"no such operation: getitem\(table, float64\)"),
    ("x = 'a' + 1", AT, r"no such operation: add\("),
    ("x = 1 << 70", AT, "Int value is too large"),
    ("import os", AT, "unsupported opcode"),
    ("x = open('y')", AT, "Untyped global name 'open'"),
    ("return route(router, in_port, in_vc, packet, net, table, memory, out)", AT, "Untyped global name 'route'"),
    ("yield 3", 4, "must return an integer on every way, not a generator"),
]
# whole file
FILES = [
    ("1 / 0", 3, r"cannot be run: ZeroDivisionError: division by zero$"),
    ("def prepare(:", 3, r"cannot be run: SyntaxError: "),
    ("import sys; sys.exit(0)", 3, r"cannot be run: it ends Python \(sys.exit\)$"),
    ("raise KeyboardInterrupt", 3, r"cannot be run: KeyboardInterrupt$"),
    ("while True: pass", 3, r"takes longer than 0.3 s of processor time \(routing.prepare_limit_s\)$"),
    ("def prepare(*_):\n    import sys; sys.exit(0)", 4, r"prepare fails: it ends Python \(sys.exit\)$"),
    ("def prepare(*_):\n    return 1 / 0", 4, r"prepare fails: ZeroDivisionError: division by zero$"),
    ("def prepare(*_):\n    while True:\n        try:\n            while True: pass\n        except Exception: pass", 6,
     r"takes longer than 0.3 s"),
    ("def prepare(topology, *_):\n    topology.peer_router[0, 0] = 3", 4, r"prepare fails: ValueError: .*read-only$"),
    ("def prepare(topology): pass", 3, r"prepare must take 3 arguments: topology, vcs, options$"),
    ("prepare = 3", 1, r"prepare must be a function, not of type int$"),
    ("def prepare(*_): return 3", 3, r"prepare must return a RoutingPlan, not int$"),
    ("def prepare(*_):\n    raise RoutingError('of mine')", 4, "of mine$"),
    ("def prepare(*_):\n    raise ValueError('two\\nlines')", 4, "prepare fails: ValueError: two$"),
    ("class E(Exception):\n    __str__ = 0\ndef prepare(*_):\n    raise E", 6, "prepare fails: E$"),
    ("def prepare(*_):\n    return prepare(*_)", 4, "prepare fails: RecursionError"),
    ("def prepare(*_):\n    return np.zeros(1 << 60)", 4, "prepare fails: ValueError: array is too big"),
    ("def prepare(*_):\n    return RoutingPlan()", 4, "prepare fails: TypeError: .* missing 2 required"),
    ("def prepare(*_):\n    return relation(3)", 4, "a Python function must be given, not of type int$"),
    ("def prepare(*_):\n    yield 3", 3, "prepare must return a RoutingPlan, not generator$"),
    ("prepare = len", 1, "prepare must take 3 arguments"),
    ("import nothing_such", 3, "cannot be run: ModuleNotFoundError"),
    ("x = '\0'", 1, "cannot be run: (SyntaxError|ValueError): .* null bytes"),
    ("def prepare(a):\nreturn 3", 4, "cannot be run: IndentationError"),
]  # fmt: skip
# plan that `prepare` returns
PLANS = [
    (PLAN.format("").replace("np.zeros(4, np.int32)", "np.array(['a'])"), r"table must be an array of integers"),
    (PLAN.format("").replace("np.int32", "float"), r"table must be an array of integers, not of float64$"),
    (PLAN.format("").replace("np.zeros(4, np.int32)", "[1 << 40]"), r"table must hold integers of 32 bits"),
    (PLAN.format(", max_candidates=0"), r"max_candidates must be an integer from 1 to 255, not 0$"),
    (PLAN.format(", max_candidates=256"), r"max_candidates must be an integer from 1 to 255, not 256$"),
    (PLAN.format(", phases='2'"), r"phases must be an integer from 1 to 65536, not '2'$"),
    (PLAN.format(", memory=np.array(['a'])"), r"memory must be an array of numbers"),
    (PLAN.format(", inject_mask=8"), r"inject_mask must be a mask of the 2 VCs, or one for each of the 4 hosts$"),
    (PLAN.format(", obligation='none'"), r"obligation must be one of acyclic, escape, checked, not 'none'$"),
    (PLAN.format(", feedback=3"), r"feedback must be a Feedback, not of type int$"),
    (PLAN.format(", uses_via=7"), r"uses_via must be True or False, not 7$"),
    (PLAN.format(", estimates=(0, (5, 5))"), r"estimates must be a place in memory"),
    (PLAN.format("").replace("relation(route)", "route"), r"mine.py:10: a .* by relation\(...\), not of type "),
    (PLAN.format("").replace("relation(route)", "relation(prepare)"), r"takes 3 arguments; it must take 8: router, "),
    (PLAN.format("").replace("np.zeros(4, np.int32)", "None"), r"table must be an array of integers, not of object$"),
    (PLAN.format("").replace("np.zeros(4, np.int32)", "[[1], [2, 3]]"), r"table must be an array of integers"),
    (PLAN.format("").replace("relation(route)", "relation(lambda: 0)"), r"takes 0 arguments; it must take 8: router, "),
    (
        PLAN.format("").replace(
            "relation(route)", "relation(lambda router, in_port, in_vc, packet, net, table, memory, out: DEEP(1))"
        ),
        r"DEEP calls itself$",
    ),
]

TRAFFIC_HEAD = "import numpy as np\nfrom hopforge.sim.traffic import *\n"
TRAFFIC_PLAN = "TrafficPlan(destination_rule(rule), np.zeros(4, np.int32){})"
PATTERN = f"""
def rule(host, number, net, table):
    BODY
    return 3 - host
def prepare(topology, options, generator):
    return {TRAFFIC_PLAN.format("")}
"""
PATTERN_AT = 5  # line of BODY
PATTERN_BODIES = [
    ("return 4", 4, r"returned 4; a destination must be a host, 0 to 3"),
    ("return number - 3", 4, r"returned -3; "),
    ("x = table[host + 4]", PATTERN_AT, r"index [4-7] of table, which has 4 entries"),
    ("x = table[-1]", PATTERN_AT, r"index -1 of table"),
    ("x = draw_host(net, 4, 3)", PATTERN_AT, r"draws a number for host 4; there are 4"),
    ("x = draw_host(net, host, -1)", PATTERN_AT, r"draws a number below -1"),
    ("x = draw_share(net, -1)", PATTERN_AT, r"draws a number for host -1"),
    ("return 1 // table[0]", 4, r"ZeroDivisionError"),
    ("if number == 2:\n        raise ValueError('bad')", PATTERN_AT + 1, r"ValueError: bad"),
]
PATTERN_NOT_COMPILED = [
    ("return 'x'", r":4: rule must return an integer on every way"),
    ("return 0.5", r":4: rule must return an integer on every way, not float64$"),
    ("if host > 1:\n        return None", r":4: rule must return an integer on every way, not nothing$"),
    ("net.cycle = 4", r":5: rule cannot be compiled: .*'cycle'"),
    ("table[0] = 1", r":5: rule cannot be compiled: no such operation: setitem\(table"),
    ("x = undefined(1)", r":5: rule cannot be compiled: NameError: name 'undefined' is not defined$"),
]
PATTERN_FILES = [
    ("1 / 0", r":3: cannot be run: ZeroDivisionError: division by zero$"),
    ("import sys; sys.exit(0)", r":3: cannot be run: it ends Python \(sys.exit\)$"),
    ("def prepare(*_):\n    raise SystemExit", r":4: prepare fails: it ends Python \(sys.exit\)$"),
    ("def prepare(*_):\n    return {}['x']", r":4: prepare fails: KeyError: 'x'$"),
    ("def prepare(*_):\n    while True: pass", r":4: takes longer than 0.3 s .*\(traffic.prepare_limit_s\)$"),
    ("def prepare(): pass", r":3: prepare must take 3 arguments: topology, options, generator$"),
    ("def prepare(*_): pass", r":3: prepare must return a TrafficPlan, not NoneType$"),
]
PATTERN_PLANS = [
    (
        TRAFFIC_PLAN.format("").replace("np.zeros(4, np.int32)", "np.array(['a'])"),
        r"table must be an array of integers",
    ),
    (TRAFFIC_PLAN.format(", silent=np.zeros(3, bool)"), r"silent must be a bool for each of the 4 hosts$"),
    (TRAFFIC_PLAN.format(", round_packets=(3, 2)"), r"round_packets must be the fewest and the most .* not 3 and 2$"),
    (TRAFFIC_PLAN.format(", round_packets=2"), r"round_packets must be the fewest and the most packets of a round$"),
    (
        TRAFFIC_PLAN.format("").replace("destination_rule(rule)", "rule"),
        r":7: a .* by destination_rule\(...\), not of type ",
    ),
    (
        TRAFFIC_PLAN.format("").replace("(rule)", "(lambda host: 0)"),
        r"takes 1 arguments; it must take 4: host, number, net,",
    ),
]

WHERE = r" \(router [0-3], port [0-4], VC [01], packet to host [0-3]\)$"
RELATIONS = [
    (RELATION.replace("BODY", body) + HELPERS, rf":{line}: route: {said}.*{WHERE}") for body, line, said in BODIES
]
ROUTE_KINDS = [
    *((HEAD + text, said) for text, said in RELATIONS),
    *(
        (HEAD + RELATION.replace("BODY", body) + HELPERS, rf":{line}: route .*{said}")
        for body, line, said in NOT_COMPILED
    ),
    *((HEAD + text, rf":{line}: .*{said}") for text, line, said in FILES),
    *((HEAD + RELATION.replace("BODY", "pass").replace(PLAN.format(""), plan) + HELPERS, said) for plan, said in PLANS),
]
TRAFFIC_KINDS = [
    *(
        (TRAFFIC_HEAD + PATTERN.replace("BODY", body), rf":{line}: rule: {said}.* \(host [0-3], packet [0-9]+\)$")
        for body, line, said in PATTERN_BODIES
    ),
    *((TRAFFIC_HEAD + PATTERN.replace("BODY", body), said) for body, said in PATTERN_NOT_COMPILED),
    *((TRAFFIC_HEAD + text, said) for text, said in PATTERN_FILES),
    *(
        (TRAFFIC_HEAD + PATTERN.replace("BODY", "pass").replace(TRAFFIC_PLAN.format(""), plan), said)
        for plan, said in PATTERN_PLANS
    ),
]


def every(kinds: list[Any], commands: list[Any]) -> list[Any]:
    """All kinds of mistakes with all commands; every third kind with one of them, in turn, is no study."""
    assert kinds and commands
    return [
        pytest.param(
            *kind, *command, id=f"{k}-{c}",
            marks=() if k % 3 == 0 and (k // 3 + c) % len(commands) == 0 else pytest.mark.study
        )
        for k, kind in enumerate(kinds)
        for c, command in enumerate(commands)
    ]  # fmt: skip


def test_there_are_enough_kinds() -> None:
    assert len(ROUTE_KINDS) + len(TRAFFIC_KINDS) >= 60


@pytest.mark.parametrize(
    "text, said, command, config",
    [*every(ROUTE_KINDS, ROUTE_COMMANDS), *every(TRAFFIC_KINDS, TRAFFIC_COMMANDS)],
)
def test_a_mistake_in_a_file_is_one_line_with_file_and_line(
    text: str, said: str, command: str, config: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    if "while True" not in text:
        config = config.replace(", prepare_limit_s: 0.3", "")
    (tmp_path / "x.yml").write_text(config)
    monkeypatch.setattr(sys, "argv", ["hopforge", *command.split(), "x.yml"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    lines = capsys.readouterr().err.splitlines()
    assert left.value.code == 2, lines
    assert len(lines) == 1
    key = "traffic.pattern" if "traffic:" in config else "routing.algorithm"
    assert lines[0].startswith("hopforge: x.yml:")
    assert re.search(rf": {key}: \S*mine.py:[0-9]+: ", lines[0]), lines[0]
    assert re.search(said, lines[0]), lines[0]
