"""Files with keys changed at random, and a short case of each command that `hopforge check` finds them good for."""

import copy
import json
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.routing.contract.plan import ROUTING
from hopforge.model.routing.proof.deadlock import DeadlockError
from hopforge.model.topology.limits import router_count
from hopforge.sim.run.packet_life import TraceError
from hopforge.sim.start.checks import Verdict, check_commands
from hopforge.sim.start.preparation import for_command, prepare
from hopforge.sim.traffic import PATTERNS

sys.path.insert(0, str(Path(__file__).parent))
import drawn_folder

MOST_ROUTERS = 64
LIMIT_S = 60
"""A short case that takes longer is left, if it got on: it was accepted, and began."""
_STANDS_STILL = 3000
"""Reports of progress, each the same as the one before, after which a case that takes longer has stood still."""

Data = dict[str, Any]

_TOPOLOGIES: list[Data] = [
    {"kind": "mesh", "radices": [4, 4]}, {"kind": "torus", "radices": [4, 3]}, {"kind": "torus", "radices": [4, 4, 2]},
    {"kind": "mesh", "radices": [3, 2], "hosts_per_router": 2}, {"kind": "fat_tree", "k": 2, "n": 2},
    {"kind": "fat_tree", "k": 4, "n": 1}, {"kind": "dragonfly", "p": 1, "a": 2, "h": 1},
    {"kind": "dragonfly", "p": 2, "a": 4, "h": 2, "g": 5}, {"kind": "fully_connected", "routers": 6},
    {"kind": "hyperx", "sizes": [3, 3]}, {"kind": "slim_fly", "q": 3}, {"kind": "slim_fly", "q": 5},
    {"kind": "polarfly", "q": 3},
    {"kind": "random_regular", "routers": 12, "degree": 3}, {"kind": "layout_random", "n": 4, "degree": 4, "length": 3},
]  # fmt: skip
_WORKLOADS: list[Data] = [
    {"kind": "uniform", "packets_per_host": 20}, {"kind": "all_to_all"}, {"kind": "permutation"}, {"kind": "neighbour"},
    {"kind": "collective", "operation": "allreduce"}, {"kind": "collective", "operation": "alltoall", "bytes": 256},
    {"kind": "npb", "benchmark": "is", "class": "S"}, {"kind": "npb", "benchmark": "cg", "class": "S", "iterations": 2},
    {"kind": "npb", "benchmark": "ep", "class": "S"}, {"kind": "matrix_product", "order": 128},
    {"kind": "himeno", "size": "XS", "iterations": 2}, {"kind": "bfs", "scale": 6},
    {"kind": "dpsnn", "rate_hz": 21.0, "steps": 3}, {"kind": "training", "parallelism": "data", "parameters": 100000},
    {"kind": "training", "parallelism": "expert", "tokens": 16, "hidden": 64},
    {"kind": "training", "parallelism": "pipeline", "parameters": 100000},
    {"kind": "training", "parallel": {"tensor": 2, "pipeline": 2}, "gradients": {"zero": 1}, "microbatches": 2,
     "sizes": {"layers": 2, "width": 64, "heads": 4, "feed_forward": 128, "vocabulary": 64, "sequence": 32}},
]  # fmt: skip
_SUITABLE = {
    "mesh": ["dor", "valiant", "star_channel"], "torus": ["dor", "valiant", "star_channel"],
    "fat_tree": ["d_mod_k", "nca", "anca"],
    "dragonfly": ["dragonfly_min", "ugal_group", "ugal_node", "par", "valiant_node", "q_adaptive", "q_routing"],
}  # fmt: skip
#: values beyond which a run takes long; the limits of the keys are tried, too, but not run
_MOST = {
    "packets_per_host": 50, "rounds": 2, "repeat": 3, "iterations": 3, "scale": 7, "order": 256, "steps": 2,
    "layers": 4, "microbatches": 8, "buckets": 8, "bytes": 65536, "parameters": 100000, "tokens": 64, "hidden": 64,
    "experts_per_token": 4, "edge_factor": 16, "panel": 1 << 20, "messages": 8, "patterns": 20, "max_cycles": 4000,
    "min_cycles": 4000, "warmup_cycles": 4000, "seeds": 2, "message_packets": 50, "series_bins": 100,
    "deadlock_cycles": 20000, "n": 8, "entries": 8192,
}  # fmt: skip
_LEAST = {"mtu_bytes": 64, "flit_bytes": 16}


def base(draw: random.Random) -> Data:
    """Return a file that is likely good for something."""
    chance = draw.random()
    if chance < 0.15:
        data = {"name": "x", "router": {}} | copy.deepcopy(draw.choice(drawn_folder.BASES))
        data["router"]["vcs"] = draw.choice([2, 4])
        return data
    if chance < 0.25:
        return copy.deepcopy(draw.choice(drawn_folder.shipped()))
    topology = copy.deepcopy(draw.choice(_TOPOLOGIES))
    data: Data = {"name": "x", "topology": topology}
    kind = topology["kind"]
    algorithms = [*_SUITABLE.get(kind, []), "shortest", "up_down", "shortest_escape", "tables"]
    data["routing"] = {"algorithm": draw.choice(algorithms)}
    data["router"] = {"vcs": draw.choice([1, 2, 4, 8])}
    model = draw.choice(["input_queued"] * 6 + ["input_output_queued", "packet"])
    if model != "input_queued":
        data["router"]["model"] = model
    if model == "packet":
        data["topology"] = {"kind": "torus", "radices": draw.choice([[4, 4], [3, 3, 2], [4, 2]])}
        data["routing"]["algorithm"] = draw.choice(["abr", "por", "ofr"])
        data["packet"] = {"messages": 4}
    if draw.random() < 0.2 and model == "input_queued":
        data["router"]["route_computation"] = "lookup"
    if draw.random() < 0.5:
        data["workload"] = copy.deepcopy(draw.choice(_WORKLOADS))
    if draw.random() < 0.2:
        data["tables"] = {"layers": draw.choice(["acro", "lash", "dfsssp", "escape", "single", "lash_tor"])}
    if draw.random() < 0.1:
        data["app"] = {"engine": draw.choice(["flow", "packet"])}
    if "workload" in data and draw.random() < 0.2:
        data["traffic"] = {"source": "program"}
    if draw.random() < 0.1:
        data["failed"] = draw.choice([{"switches": [draw.randrange(6)]}, {"links": [[0, 1]]}])
    return data


class Schema:
    """The keys of a configuration, from its JSON schema."""

    def __init__(self) -> None:
        self.root = Config.model_json_schema()

    def resolve(self, node: Data) -> Data:
        """Follow references."""
        while "$ref" in node:
            node = self.root["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        return node

    def section(self, node: Data, data: Any) -> Data | None:
        """Return the section that a value of this schema is, if it is one; a union by its kind."""
        node = self.resolve(node)
        if "discriminator" in node:
            kind = data.get("kind") if isinstance(data, dict) else None
            mapping = node["discriminator"]["mapping"]
            return self.resolve({"$ref": mapping[kind]}) if kind in mapping else None
        for choice in node.get("anyOf", ()):
            found = self.section(choice, data)
            if found is not None:
                return found
        return node if "properties" in node else None

    def mutate(self, data: Data, draw: random.Random) -> str:
        """Change one key; returns which."""
        node, at, path = self.root, data, []
        while True:
            key = draw.choice(sorted(node["properties"]))
            path.append(key)
            inner = self.section(node["properties"][key], at.get(key, {}))
            if inner is None or draw.random() < 0.03:
                break
            if not isinstance(at.get(key), dict):
                at[key] = {}
            node, at = inner, at[key]
        at[key] = self.value(node["properties"][key], draw, ".".join(path), at.get(key))
        if draw.random() < 0.03:
            del at[key]
        return ".".join(path)

    def value(self, node: Data, draw: random.Random, path: str, before: Any) -> Any:
        """Draw a value: of the type or not, at a limit or beside it, a neighbour of what is there."""
        node = self.resolve(node)
        if draw.random() < 0.02:
            return draw.choice([None, "nonsense", -1, 1.5, True, [], {}, [1, 2], 10**30])
        if path == "routing.algorithm":
            return draw.choice([*ROUTING, "abr", "por", "ofr", "nonsense"])
        if path == "traffic.pattern":
            return draw.choice([*PATTERNS, "nonsense"])
        if "anyOf" in node:
            return self.value(draw.choice(node["anyOf"]), draw, path, before)
        if "enum" in node:
            return draw.choice(node["enum"])
        if "const" in node:
            return node["const"]
        kind = node.get("type")
        if kind == "boolean":
            return draw.random() < 0.5
        if kind in ("integer", "number"):
            return self.number(node, draw, before, whole=kind == "integer")
        if kind == "array":
            items = node.get("items") or draw.choice(node.get("prefixItems", [{"type": "integer"}]))
            length = draw.choice([len(before)] * 2 + [0, 1, 2, 3]) if isinstance(before, list) else draw.randint(0, 3)
            if "prefixItems" in node:
                return [self.value(each, draw, path, None) for each in node["prefixItems"]]
            return [self.value(items, draw, path, None) for _ in range(length)]
        if kind == "null":
            return None
        if kind == "string":
            names_file = node.get("format") == "path" or path.endswith("file")
            return draw.choice(drawn_folder.names() if names_file else ["nowhere.csv", "lru", "CRC-16", "x"])
        inner = self.section(node, {})
        if inner is not None:
            keys = sorted(inner["properties"])
            return {
                key: self.value(inner["properties"][key], draw, f"{path}.{key}", None)
                for key in keys
                if key in inner.get("required", ()) or draw.random() < 0.4
            }
        return {}

    def number(self, node: Data, draw: random.Random, before: Any, *, whole: bool) -> float | int:
        """Draw a number."""
        low = node.get("minimum", node.get("exclusiveMinimum"))
        high = node.get("maximum", node.get("exclusiveMaximum"))
        near = before if isinstance(before, int | float) and not isinstance(before, bool) else node.get("default")
        step = 1 if whole else draw.choice([0.1, 0.5, 1.0])
        choices: list[float] = [draw.randint(0, 8), draw.randint(0, 64)]
        if low is not None:
            choices += [low, low + step, low - step]
        if high is not None and draw.random() < 0.5:
            choices += [high, high - step, high + step]
        if isinstance(near, int | float):
            choices += [near + step, near - step, 2 * near, near / 2]
        if not whole:
            choices += [draw.random(), 1e-6, 100.0]
        chosen = draw.choice(choices)
        return int(chosen) if whole else float(chosen)


def _capped(value: Any, key: str = "") -> Any:
    """Return data with sizes that a short case can have."""
    if isinstance(value, dict):
        return {name: _capped(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_capped(each, key) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        if key in _MOST and value > _MOST[key]:
            return _MOST[key]
        if key in _LEAST and 0 < value < _LEAST[key]:
            return _LEAST[key]
    return value


def files(seed: int, count: int) -> Iterator[tuple[Data, list[str]]]:
    """Yield files of at most `MOST_ROUTERS` routers that hopforge reads, and which keys were changed in each."""
    draw, schema = random.Random(seed), Schema()
    made = 0
    while made < count:
        data = base(draw)
        changed = [schema.mutate(data, draw) for _ in range(draw.choice([1, 1, 2, 3, 5]))]
        data = _capped(data)
        yield data, changed
        made += 1


def read(data: Data) -> Config | None:
    """Return a file as a configuration; None: it is refused, or not for a short case."""
    try:
        config = parse_config(json.dumps(data), folder=drawn_folder.folder(), keys=False)
    except ConfigError:
        return None
    networks = [each.topology for each in (config, *config.variants.values())]
    if any((router_count(each) or 0) > MOST_ROUTERS for each in networks):
        return None
    return config


class TooLongError(Exception):
    """A case that was left."""


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Leave the block after some time.

    Within a destructor, where Python would drop the exception, and in the compiler, whose library would be left half
    made, a little later.
    """

    def leave(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_name == "__del__" or "/numba/core/" in frame.f_code.co_filename:
                return
            frame = frame.f_back
        raise TooLongError

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def shortened(config: Config) -> Config:
    """Return the configuration with short runs, whatever does not decide whether it can run."""
    limits = config.simulation
    shorter: Data = {"min_cycles": 1000, "max_cycles": max(1000, limits.series_bins), "warmup_cycles": 100, "seeds": 1}
    shorter |= {"loads": limits.first_loads[:1], "knee_percent": None}
    if limits.warmup_us is not None:
        shorter["warmup_us"] = min(limits.warmup_us, 2.0)
    if limits.measure_us is not None:
        shorter["measure_us"] = min(limits.measure_us, 20.0)
    tables = config.tables.model_copy(update={"patterns": 2})
    short = config.model_copy(update={"simulation": limits.model_copy(update=shorter), "tables": tables})
    short._variants = {name: shortened(each) for name, each in config.variants.items()}
    return short


def _nothing(*_: object) -> None:
    return None


class Progress:
    """How often in succession a case has said that it got on, and had not."""

    def __init__(self) -> None:
        self.done, self.still = -1, 0

    def __call__(self, done: int, *_: object) -> None:
        """Take what a run tells of its progress."""
        self.done, self.still = done, self.still + 1 if done == self.done else 0


_PROGRESS = Progress()


def _net(config: Config) -> None:
    run = prepare("net", config)
    run.run(_PROGRESS)
    assert run.rows()


def _series(config: Config) -> None:
    found, _ = prepare("series", config).run(_PROGRESS)
    assert len(found.bins) == config.simulation.series_bins


def _sweep(config: Config) -> None:
    from hopforge.sim.run.model_runs import configured_sweep

    sweep = configured_sweep(config)
    jobs = sweep.jobs(config)
    sweep.prepare(jobs)
    assert sweep.run_one(jobs[0])


def _trace(config: Config) -> None:
    from hopforge.sim.run.packet_trace import follow, list_packets, slowest

    load = config.simulation.load
    packets = list_packets(config, load, config.seed, 150)
    try:
        keys = slowest(packets, 1)
    except TraceError:
        return  # an option of the command, not the file: more --cycles
    assert follow(config, load, config.seed, 150, packets, keys)[1]


def _hits(config: Config) -> None:
    from hopforge.sim.hits.hit_rates import run_hits, summary_rows

    assert summary_rows(run_hits(config))


def _app(config: Config) -> None:
    from hopforge.sim.programs.application import app_rows, run_app

    assert app_rows(run_app(config, _PROGRESS))


def _route(config: Config) -> None:
    from hopforge.sim.pages.route_write import quality_table, route_rows

    routed = prepare("route", config)
    quality = quality_table(routed.config, routed.tables, _nothing)
    assert route_rows(routed.tables, quality)


def _topology(config: Config) -> None:
    from hopforge.model.topology import build
    from hopforge.sim.pages.export import EXPORTS, describe

    assert describe(config)
    network = build(config.topology, config.address)
    assert all(EXPORTS[form](network, config) for form in ("graphml", "anynet", "edges"))  # those without routes


def _workload(config: Config) -> None:
    from hopforge.sim.programs.application import trace_rows

    assert trace_rows(prepare("workload", config))


def _tables(config: Config) -> None:
    from hopforge.gen.packages.tables import table_files

    assert table_files(config)


def _cosim(config: Config) -> None:
    from hopforge.sim.benches.network import NetworkTraffic, record_network

    traffic = NetworkTraffic(load=config.simulation.load, cycles=config.cosim.cycles, seed=config.seed)
    record_network(config, traffic)


def _collectives(config: Config) -> None:
    from hopforge.sim.programs.network_collectives import run_collectives

    plane = config.collective_plane.model_copy(update={"words": (1,), "groups": config.collective_plane.groups[:1]})
    assert run_collectives(prepare("collectives", config.model_copy(update={"collective_plane": plane}))).found


SHORT: dict[str, Callable[[Config], None]] = {
    "topology": _topology, "route": _route, "net": _net, "series": _series, "sweep": _sweep, "trace": _trace,
    "hits": _hits, "app": _app, "workload": _workload, "gen tables": _tables,
    "collectives": _collectives,
}  # fmt: skip
"""Command → a short case of it."""


def _generated(name: str) -> Callable[[Config], None]:
    def run(config: Config) -> None:
        from hopforge.gen.packages.parts import part_files

        assert part_files(config, name.removeprefix("gen ").replace("-", "_"))

    return run


def _cosimulated(part: str, **given: int) -> Callable[[Config], None]:
    def run(config: Config) -> None:
        from hopforge.sim.cosim.parts import cosim_part

        with tempfile.TemporaryDirectory() as folder:
            assert cosim_part(part, config, simulator="icarus", given=given, output=Path(folder)).passed

    return run


def _lint(config: Config) -> None:
    from hopforge.gen.packages.lint_config import lint_config

    assert list(lint_config(config))


SAMPLED = {
    name: _generated(name)
    for name in ("gen lookup", "gen router", "gen network", "gen q-table", "gen collectives", "gen rule-cache")
}
SAMPLED |= {
    "cosim --part network": _cosim, "cosim --part lookup": _cosimulated("lookup", lookups=100),
    "cosim --part router": _cosimulated("router", cycles=100),
    "cosim --part q_table": _cosimulated("q_table", cycles=100),
    "cosim --part service_host": _cosimulated("service_host", cycles=100), "lint": _lint,
    "cosim --part collectives": _cosimulated("collectives", cycles=100),
    "cosim --part rule_cache": _cosimulated("rule_cache", lookups=100),
}  # fmt: skip
"""The same of commands that take seconds: a sample of the files runs them."""


def broken(data: Data, *, sampled: bool, turn: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield each command that a file was found good for and that did not run, with what went wrong.

    With `turn` only one of the commands runs, another one in each turn.
    """
    config = read(data)
    if config is None:
        return
    verdicts: list[Verdict] = []
    try:
        with limit(3 * LIMIT_S):
            verdicts = check_commands(config)
    except TooLongError:
        return
    except Exception as error:
        yield "check", f"{type(error).__name__}: {error}"
    if turn is not None and (good := [each for each in verdicts if each.good and each.command in SHORT]):
        verdicts = [good[turn % len(good)]]
    for verdict in verdicts:
        run = SHORT.get(verdict.command) or (SAMPLED.get(verdict.command) if sampled else None)
        if not verdict.good or run is None:
            continue
        _PROGRESS.done, _PROGRESS.still = -1, 0
        try:
            with limit(LIMIT_S):
                run(shortened(for_command(verdict.command, config)))
        except TooLongError:
            if _PROGRESS.still >= _STANDS_STILL:
                yield verdict.command, f"{_PROGRESS.done} done, and no more"
        except DeadlockError as error:
            if config.routing.check:  # else it was not proved, as the file wants it
                yield verdict.command, f"deadlock: {error}"
        except Exception as error:
            yield verdict.command, f"{type(error).__name__}: {error}"
