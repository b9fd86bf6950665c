"""The flow engine: cases with answers by hand, and a slow model of flows that share links."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.routes import Routes
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.model.topology import build
from hopforge.sim.programs import flow_engine as engine
from hopforge.sim.programs.application import app_rows, run_app, write_app
from hopforge.sim.programs.program_routers import sized_router
from hopforge.sim.traffic.placed import place_program

GB = 1e9  # bytes a second of a link of 8 Gbit/s
NS = 1e-9
TIMING = "timing: {link_gbps: 8, switch_base_ns: 51, cable_ns: 50, miss_penalty_ns: 25, conventional_switch_ns: 75}"
ONE_SWITCH = "{kind: mesh, radices: [1], hosts_per_router: 8}"
ENVELOPE = 16
ROW = "{kind: mesh, radices: [4]}"
ROW_CONFIG = parse_config(f"name: x\ntopology: {ROW}\n")
TOPOLOGY = build(ROW_CONFIG.topology, ROW_CONFIG.address)


def latency(routers):
    return (51 * routers + 50 * (routers + 1)) * NS


def alone(size, routers=1):
    return latency(routers) + (size + ENVELOPE) / GB


def config_of(workload, topology=ONE_SWITCH, app="{}", more=""):
    app = app.replace("{", "{backend: embedded, " + ("" if "buffered" in app else "buffered_bytes: 65536, "))
    return parse_config(f"name: x\ntopology: {topology}\nworkload: {workload}\n{TIMING}\napp: {app}\n{more}")


def recorded(tmp_path, programs, topology=ONE_SWITCH, app="{}", more=""):
    (tmp_path / "trace").mkdir(exist_ok=True)
    for rank, lines in enumerate(programs):
        (tmp_path / "trace" / f"rank-{rank + 1}.txt").write_text("".join(f"{rank} {line}\n" for line in lines))
    return config_of(f"{{kind: trace, file: {tmp_path / 'trace'}}}", topology, app, more)


def makespan(config):
    return run_app(config).found.makespan_s


# ---- by hand -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 1000, 60000, 1_000_000])
def test_ping_pong(tmp_path, size):
    rounds = 3
    ping = [f"send 1 0 {size} 6", f"recv 1 0 {size} 6"] * rounds
    pong = [f"recv 0 0 {size} 6", f"send 0 0 {size} 6"] * rounds
    assert makespan(recorded(tmp_path, [ping, pong])) == pytest.approx(2 * rounds * alone(size), rel=1e-9)


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_collectives_on_one_switch(ranks):
    def run(operation, algorithm, size):
        return makespan(config_of(
            f"{{kind: collective, operation: {operation}, bytes: {size}, ranks: {ranks}, repeat: 2,"
            f" collectives: {{{operation}: {algorithm}}}}}"
        ))

    # p pieces go around the ring twice; rounds do not meet on a link
    assert run("allreduce", "ring", 1000 * ranks) == pytest.approx(2 * 2 * (ranks - 1) * alone(1000), rel=1e-9)
    assert run("alltoall", "ring", 5000) == pytest.approx(2 * (ranks - 1) * alone(5000), rel=1e-9)
    # everything at once: p − 1 messages share the host's link
    assert run("alltoall", "linear", 5000) == pytest.approx(
        2 * (latency(1) + (ranks - 1) * (5000 + ENVELOPE) / GB), rel=1e-9
    )
    # the root does not wait: both broadcasts go side by side
    assert run("bcast", "ring", 5000) == pytest.approx(
        (ranks - 1) * (latency(1) + 2 * (5000 + ENVELOPE) / GB), rel=1e-9
    )


@pytest.mark.parametrize(("lookup", "switch"), [("hit", 51), ("miss", 76), ("conventional", 75)])
def test_delays_of_switches(tmp_path, lookup, switch):
    config = recorded(
        tmp_path, [["send 3 0 100 6"], ["init"], ["init"], ["recv 0 0 100 6"]], "{kind: mesh, radices: [4]}",
        f"{{lookup: {lookup}, envelope_bytes: 0}}",
    )
    assert makespan(config) == pytest.approx((4 * switch + 5 * 50) * NS + 100 / GB, rel=1e-9)


def test_shares_are_in_proportion_to_one_over_the_latency(tmp_path):
    """On a line 0–1–2, A: 0→2 shares with B: 0→1 at host 0, and with C: 1→2 at host 2."""
    programs = [
        ["isend 2 0 50000 6", "isend 1 1 30000 6", "waitall 2"],
        ["isend 2 2 30000 6", "recv 0 1 30000 6"],
        ["irecv 0 0 50000 6", "irecv 1 2 30000 6", "waitall 2"],
    ]
    config = recorded(tmp_path, programs, "{kind: mesh, radices: [3]}", "{envelope_bytes: 0}")
    short, long = latency(2), latency(3)
    share = (1 / long) / (1 / long + 1 / short)  # of A, from `long` on
    first = 30000 - (long - short) * GB
    b_ends = long + first / ((1 - share) * GB)
    a_left = 50000 - (b_ends - long) * share * GB
    ranks = run_app(config).ranks
    assert ranks["finish_s"][1] == pytest.approx(b_ends, rel=1e-9)
    assert ranks["finish_s"][2] == pytest.approx(b_ends + a_left / GB, rel=1e-9)


def test_window_bounds_the_rate_and_the_rest_goes_to_others(tmp_path):
    programs = [["isend 1 0 40000 6", "isend 2 1 40000 6", "waitall 2"], ["recv 0 0 40000 6"], ["recv 0 1 40000 6"]]
    window = 60  # of 151 ns there and back: 0.199 GB/s each
    config = recorded(tmp_path, programs, app=f"{{tcp_window_bytes: {window}, envelope_bytes: 0}}")
    assert makespan(config) == pytest.approx(latency(1) + 40000 / (window / (2 * latency(1))), rel=1e-9)
    config = recorded(tmp_path, programs, app="{tcp_window_bytes: null, envelope_bytes: 0}")
    assert makespan(config) == pytest.approx(latency(1) + 80000 / GB, rel=1e-9)


def test_factors_of_latency_and_bandwidth(tmp_path):
    config = recorded(
        tmp_path, [["send 1 0 1000 6"], ["recv 0 0 1000 6"]],
        app="{latency_factor: 13.01, bandwidth_factor: 0.97, envelope_bytes: 0}",
    )
    assert makespan(config) == pytest.approx(13.01 * latency(1) + 1000 / (0.97 * GB), rel=1e-9)


@pytest.mark.parametrize(("size", "sender", "receiver"), [
    (1000, 0.0, 1e-3), (65535, 0.0, 1e-3), (65536, 1e-3 + alone(65536), 1e-3 + alone(65536)),
])
def test_large_messages_wait_for_their_receive(tmp_path, size, sender, receiver):
    config = recorded(tmp_path, [[f"send 1 0 {size} 6"], ["sleep 1e-3", f"recv 0 0 {size} 6"]])
    found = run_app(config).ranks
    assert found["finish_s"].tolist() == pytest.approx([sender, receiver], rel=1e-9)
    assert found["compute_s"].tolist() == [0, 1e-3]
    # nothing buffered: every message starts when its receive is posted, and the sender of a small one still goes on
    config = config.model_copy(update={"app": config.app.model_copy(update={"buffered_bytes": 0})})
    late = run_app(config).ranks["finish_s"].tolist()
    assert late == pytest.approx([sender, 1e-3 + alone(size)], rel=1e-9)
    assert found["waiting_s"].tolist() == pytest.approx([sender, receiver - 1e-3], abs=1e-15)


@pytest.mark.parametrize(("receive", "size", "sender"), [
    ("recv -555 0", 65535, 0), ("recv -555 0", 65536, alone(65536)), ("irecv 0 -444", 65536, alone(65536)),
])
def test_senders_wait_for_ranks_that_receive_from_anywhere(tmp_path, receive, size, sender):
    config = recorded(tmp_path, [[f"send 1 0 {size} 6"], [f"{receive} {size} 6"]], app="{buffered_bytes: 0}")
    assert run_app(config).ranks["finish_s"].tolist() == pytest.approx([sender, 0], rel=1e-9)


def test_computing_takes_the_speed_of_the_host(tmp_path):
    lines = [["compute 5e6", "allreduce 1 2e6 0"], ["compute 1e6", "allreduce 1 2e6 0"]]
    config = recorded(tmp_path, lines, app="{host_gflops: 2}")
    assert makespan(config) == pytest.approx(5e6 / 2e9 + alone(8) + 2e6 / 2e9, rel=1e-9)
    assert makespan(recorded(tmp_path, lines)) == pytest.approx(alone(8), rel=1e-9)


def test_ranks_of_one_host_need_no_network(tmp_path):
    (tmp_path / "map").write_text("0\n0\n")
    config = recorded(tmp_path, [["send 1 0 99999 6"], ["recv 0 0 99999 6"]])
    mapping = config.workload.mapping.model_copy(update={"kind": "file", "file": tmp_path / "map"})
    config = config.model_copy(update={"workload": config.workload.model_copy(update={"mapping": mapping})})
    found = run_app(config).found
    assert (found.makespan_s, found.local_messages, found.message_latency_s) == (0.0, 1, 0.0)


# ---- against a slow model ------------------------------------------------------------------------------------------


def slow_arrivals(config, messages):
    """Arrival of each (source host, destination host, bytes, start): rates from scratch at every change."""
    topology = build(config.topology, config.address)
    left, start, route, weight = [], [], [], []
    for source, target, size, begin in messages:
        path = Routes(topology, config.address).paths([source], [target])
        hops = list(zip(path.router.tolist(), path.output.tolist(), strict=True))
        route.append({("host", source), *hops})
        delay = latency(len(hops))
        left.append(float(size + ENVELOPE))
        start.append(begin + delay)
        weight.append(1 / delay)
    arrived, now = [None] * len(messages), 0.0
    while None in arrived:
        moving = [m for m in range(len(messages)) if arrived[m] is None and start[m] <= now]
        rate, spare, free = {}, {}, set(moving)
        for m in moving:
            for link in route[m]:
                spare[link] = GB
        while free:
            fill = {
                link: room / sum(weight[m] for m in free if link in route[m])
                for link, room in spare.items() if any(link in route[m] for m in free)
            }
            level = min(fill.values())
            full = {link for link, value in fill.items() if value <= level * (1 + 1e-9)}
            for m in [m for m in free if route[m] & full]:
                rate[m] = level * weight[m]
                for link in route[m]:
                    spare[link] -= rate[m]
                free.remove(m)
        ends = [now + left[m] / rate[m] for m in moving] + [s for s in start if s > now]
        following = min(ends)
        for m in moving:
            left[m] -= rate[m] * (following - now)
            if left[m] <= 1e-6:
                arrived[m] = following
        now = following
    return arrived


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "topology",
    ["{kind: torus, radices: [4, 3]}", "{kind: fat_tree, k: 3, n: 1}", "{kind: dragonfly, p: 1, a: 3, h: 1}"],
)
def test_random_flows(tmp_path, topology, seed):
    rng = np.random.default_rng(seed)
    hosts = build(config_of("{kind: uniform}", topology).topology, config_of("{kind: uniform}").address).hosts
    messages = []
    for _ in range(25):
        source, target = rng.choice(hosts, 2, replace=False).tolist()
        messages.append((source, target, int(rng.integers(1, 60000)), float(rng.integers(0, 40)) * 1e-6))
    programs = [[] for _ in range(hosts)]
    for number, (source, target, size, _) in enumerate(messages):
        programs[target].append(f"irecv {source} {number} {size} 6")
    sent = []  # messages of a program are numbered by rank, then in the order of its sends
    for rank in range(hosts):
        now = 0.0
        for begin, number in sorted((m[3], number) for number, m in enumerate(messages) if m[0] == rank):
            if begin > now:
                programs[rank].append(f"sleep {begin - now!r}")
                now = begin
            programs[rank].append(f"isend {messages[number][1]} {number} {messages[number][2]} 6")
            sent.append(messages[number])
        programs[rank].append("waitall 0")
    config = recorded(tmp_path, programs, topology)
    run = flow_run(config)
    assert run.run()
    assert run.state.message["arrived"] == pytest.approx(slow_arrivals(config, sent), rel=1e-7)


def flow_run(config):
    topology = build(config.topology, config.address)
    return engine.FlowRun(config, topology, place_program(config.workload, topology, config.seed))


@pytest.mark.parametrize("apart_ns", [0, 100, 253, 5000, 30000, 39000, 40000, 50000])
def test_messages_that_meet_on_a_route_of_their_own(tmp_path, apart_ns):
    """Rank 0 sends 40 000 bytes, and 10 000 some time later; no other message in the network."""
    programs = [
        ["isend 1 0 40000 6", f"sleep {apart_ns * 1e-9!r}", "isend 1 1 10000 6", "waitall 2"],
        ["irecv 0 0 40000 6", "irecv 0 1 10000 6", "waitall 2"],
    ]
    run = flow_run(recorded(tmp_path, programs, "{kind: mesh, radices: [2]}", "{envelope_bytes: 0}"))
    assert run.state.route["private"].all()
    rate = GB * NS
    assert run.run()
    alone = 40000 / rate
    if apart_ns >= alone:
        expected = [alone, apart_ns + 10000 / rate]
    else:  # halves from `apart_ns` on, until one is there
        left = 40000 - apart_ns * rate
        shared = 2 * min(left, 10000) / rate
        rest = (max(left, 10000) - min(left, 10000)) / rate
        ends = [apart_ns + shared, apart_ns + shared + rest]
        expected = ends[::-1] if left > 10000 else ends
    assert run.state.message["arrived"] / NS == pytest.approx([latency(2) / NS + end for end in expected], rel=1e-9)


def test_more_messages_at_once_than_places(monkeypatch):
    config = config_of("{kind: collective, operation: alltoall, bytes: 100, collectives: {alltoall: linear}}")
    whole = flow_run(config)
    monkeypatch.setattr(engine, "FIRST_SLOTS", 3)
    grown = flow_run(config)
    assert whole.run()
    assert grown.run()
    assert len(whole.state.flow) == 56 < len(grown.state.flow)
    assert (whole.state.message["arrived"] == grown.state.message["arrived"]).all()


# ---- what goes wrong -----------------------------------------------------------------------------------------------


def test_ranks_that_wait_for_each_other(tmp_path):
    lines = [["send 1 0 70000 6", "recv 1 0 70000 6"], ["send 0 0 70000 6", "recv 0 0 70000 6"], ["init"]]
    config = recorded(tmp_path, lines)
    with pytest.raises(ProgramError) as error:
        run_app(config)
    folder = tmp_path / "trace"
    assert str(error.value) == (
        "workload: the program cannot end: after 0 s nothing is under way and 2 of 3 ranks wait:"
        f" rank 0 waits until rank 1 takes its message (send, {folder}/rank-1.txt:1);"
        f" rank 1 waits until rank 0 takes its message (send, {folder}/rank-2.txt:1)"
    )
    eager = run_app(config.model_copy(update={"app": config.app.model_copy(update={"eager_bytes": 70001})}))
    assert eager.found.makespan_s == pytest.approx(alone(70000), rel=1e-9)


def test_buffered_messages_are_eager():
    with pytest.raises(UserError, match=r"app.buffered_bytes: must be at most eager_bytes=10, not 11$"):
        config_of("{kind: uniform}", app="{buffered_bytes: 11, eager_bytes: 10}")


def test_no_program():
    with pytest.raises(UserError, match=r"^workload: a program is needed \(kind: npb, "):
        run_app(config_of("{kind: uniform}"))


# ---- beside the other engines --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [
    "{kind: collective, operation: allreduce, bytes: 400000, collectives: {allreduce: ring}}",
    "{kind: collective, operation: alltoall, bytes: 60000}",
])
def test_packet_engine_on_one_switch(workload):
    more = "traffic: {flit_bytes: 64}\nrouter: {vcs: 4, buffer_flits: 16}\n"
    flow = config_of(workload, more=more)
    packet = flow.model_copy(update={"app": flow.app.model_copy(update={"engine": "packet"})})
    assert makespan(packet) == pytest.approx(makespan(flow), rel=0.01)


@pytest.mark.parametrize(("engine", "size"), [("flow", 1000), ("flow", 50_000), ("packet", 50_000)])
def test_engines_on_one_switch(tmp_path, engine, size):
    """Ping-pong, ring and all-to-all: answers by hand, within 1 % (packet: cycles of 64 ns, a flit more a switch)."""
    app = f"{{engine: {engine}, envelope_bytes: 0}}"
    more = "traffic: {flit_bytes: 8}\nrouter: {vcs: 4, buffer_flits: 64}\n"
    once = latency(1) + size / GB
    ping = [f"send 1 0 {size} 6", f"recv 1 0 {size} 6"] * 2
    pong = [f"recv 0 0 {size} 6", f"send 0 0 {size} 6"] * 2
    assert makespan(recorded(tmp_path, [ping, pong], app=app, more=more)) == pytest.approx(4 * once, rel=0.01)
    for operation, algorithm, all_bytes in (("allreduce", "ring", 8 * size), ("alltoall", "ring", size)):
        rounds = 14 if operation == "allreduce" else 7
        config = config_of(
            f"{{kind: collective, operation: {operation}, bytes: {all_bytes},"
            f" collectives: {{{operation}: {algorithm}}}}}", app=app, more=more,
        )
        assert makespan(config) == pytest.approx(rounds * once, rel=0.01)


@pytest.mark.parametrize("injection", ["shared", "queued"])
@pytest.mark.parametrize(("program", "ranks", "topology"), [
    ("is", 16, "{kind: torus, radices: [4, 4]}"), ("mg", 16, "{kind: torus, radices: [4, 4]}"),
    ("cg", 16, "{kind: dragonfly, p: 1, a: 4, h: 1}"), ("ft", 8, "{kind: torus, radices: [2, 2, 2]}"),
])
def test_routers_and_flows_take_as_long(program, ranks, topology, injection):
    """Nothing but program and network is said: flits and buffers that keep links busy, SimGrid's rules in both."""
    text = (
        f"name: x\ntopology: {topology}\napp: {{injection: {injection}, backend: embedded}}\n"
        f"workload: {{kind: npb, benchmark: {program}, class: S, ranks: {ranks}, iterations: 2}}\n"
    )
    flow = parse_config(text)
    if flow.topology.kind == "dragonfly":
        flow = parse_config(text + "routing: {algorithm: dragonfly_min}\n")
    packet = flow.model_copy(update={"app": flow.app.model_copy(update={"engine": "packet"})})
    assert makespan(packet) == pytest.approx(makespan(flow), rel=0.10)


def test_the_size_of_routers_of_files_that_leave_it_open():
    """A hop of 101 ns is 19.7 cycles of 64 bytes: 40 there and back, 64 flits; at 1.6 Tbit/s 632."""
    text = "name: x\ntopology: {kind: mesh, radices: [2]}\n"
    text += "timing: {switch_base_ns: 51, cable_ns: 50, link_gbps: RATE}\n"
    for rate, flits in (("100", 64), ("1600", 1024)):
        config = sized_router(parse_config(text.replace("RATE", rate)))
        assert (config.traffic.flit_bytes, config.router.buffer_flits) == (64, flits)
    said = parse_config(text.replace("RATE", "100") + "router: {buffer_flits: 3}\ntraffic: {flit_bytes: 8}\n")
    assert sized_router(said) == said


@pytest.mark.parametrize("rate", ["1", "5", "10", "40"])
@pytest.mark.parametrize(
    "router", ["{}", "{rc_cycles: 4}", "{credit_delay_cycles: 9}", "{crossbar_cycles: 6}", "{internal_speedup: 2}"]
)
def test_buffers_that_the_file_leaves_open_keep_slow_links_busy(tmp_path, rate, router):
    """Where a flit takes longer than a switch and a cable, a credit still takes the cycles of the routers."""
    config = recorded(
        tmp_path, [["send 1 0 200000 6"], ["recv 0 0 200000 6"]], "{kind: mesh, radices: [2]}", "{engine: packet}",
        more=f"router: {router}\n",
    )
    config = config.model_copy(update={"timing": config.timing.model_copy(update={"link_gbps": float(rate)})})
    cycles = run_app(config).found.makespan_s * 1e9 / (64 * 8 / float(rate))
    assert cycles == pytest.approx(200000 / 64, rel=0.02)  # the latency of a head is less than that


@pytest.mark.parametrize("key", ["link_ns", "host_ns", "end_ns"])
def test_buffers_that_the_file_leaves_open_keep_long_links_of_input_output_queued_routers_busy(tmp_path, key):
    config = recorded(
        tmp_path, [["send 1 0 4000000 6"], ["recv 0 0 4000000 6"]], "{kind: mesh, radices: [2]}", "{engine: packet}",
        more=f"router: {{model: input_output_queued, flit_ns: 3.2, {key}: 5000}}\ntraffic: {{flit_bytes: 128}}\n",
    )
    config = config.model_copy(update={"workload": config.workload.model_copy(update={"mtu_bytes": 128})})
    assert makespan(config) == pytest.approx(4_000_000 / 128 * 3.2e-9 + 1.6e-5, abs=1.6e-5)  # a flight or six of 5 µs


@pytest.mark.parametrize(("lookup", "router"), [
    *(("hit", router) for router in (
        "{}", "{rc_cycles: 3}", "{speculation: true}", "{speculation: shared}", "{va: free_queue}",
        "{va: free_queue, sa: input_ahead}", "{lookahead: true, rc_cycles: 1}", "{lookahead: true, rc_cycles: 2}",
        "{lookahead: true, rc_cycles: 1, va: free_queue}", "{crossbar_cycles: 2}", "{crossbar_cycles: 7, rc_cycles: 2}",
        "{internal_speedup: 1.5}", "{internal_speedup: 2}", "{internal_speedup: 3, rc_cycles: 1}",
        "{output_speedup: 2}", "{internal_speedup: 2, crossbar_cycles: 4, stage_batches: true}",
    )),
    *(("cache", router) for router in (
        "{}", "{speculation: true}", "{va: free_queue}", "{lookahead: true, rc_cycles: 1}",
        "{lookahead: true, rc_cycles: 1, va: free_queue}",
    )),
])
def test_a_route_takes_its_switches_and_cables_whatever_the_routers_do(tmp_path, router, lookup):
    """A cycle is a ns, so all of them are whole; the second ping-pong through six routers hits in all caches."""
    spans = []
    for rounds in (1, 2):
        ping, pong = ["send 5 0 64 6", "recv 5 0 64 6"] * rounds, ["recv 0 0 64 6", "send 0 0 64 6"] * rounds
        config = recorded(
            tmp_path, [ping, *[["compute 0"]] * 4, pong], "{kind: mesh, radices: [6]}",
            f"{{engine: packet, lookup: {lookup}, envelope_bytes: 0}}", more=f"router: {router}\n",
        )
        timing = config.timing.model_copy(update={"link_gbps": 512.0, "miss_penalty_ns": 30.0})
        spans.append(makespan(config.model_copy(update={"timing": timing})))
    assert spans[1] - spans[0] == pytest.approx(2 * (latency(6) + NS), abs=2.01 * NS)  # halves of a cycle at hosts


def test_queued_messages_leave_one_after_the_other(tmp_path):
    """Rank 0 sends 40 000 bytes to 1, then 10 000 to 2; shared, the short one would take 20 µs."""
    programs = [["isend 1 0 40000 6", "isend 2 0 10000 6", "waitall 2"], ["recv 0 0 40000 6"], ["recv 0 0 10000 6"]]
    config = recorded(tmp_path, programs, app="{envelope_bytes: 0, injection: queued}")
    ends = run_app(config).ranks["finish_s"]
    assert ends[1] == pytest.approx(latency(1) + 40000 / GB, rel=1e-9)
    assert ends[2] == pytest.approx(latency(1) + 50000 / GB, rel=1e-9)
    shared = run_app(recorded(tmp_path, programs, app="{envelope_bytes: 0}")).ranks["finish_s"]
    assert shared[2] == pytest.approx(latency(1) + 20000 / GB, rel=1e-9)


@pytest.mark.parametrize(
    ("held", "leaves_ns"), [("50000", 40000), ("20000", 40000), ("10000", 60000), ("null", 67200), ("0", 80000)]
)
def test_queued_messages_wait_until_buffers_hold_the_last_one(tmp_path, held, leaves_ns):
    """Ranks 0 and 3 send to 1 at the same time, and 0 then to 2: when the first message has left its host.

    Half a byte a ns goes on of it, from 151 ns on; the rest has room in the buffer (null: 100 flits of 64 bytes), and
    half as much as one could send in 151 ns in cables and switch. The link of the host takes 40 µs in any case.
    """
    programs = [
        ["isend 1 0 40000 6", "isend 2 0 10000 6", "waitall 2"],
        ["irecv 0 0 40000 6", "irecv 3 0 40000 6", "waitall 2"], ["recv 0 0 10000 6"], ["send 1 0 40000 6"],
    ]
    app = f"{{envelope_bytes: 0, injection: queued, buffer_bytes: {held}}}"
    more = "router: {buffer_flits: 100}\ntraffic: {flit_bytes: 64}\n"
    ends = run_app(recorded(tmp_path, programs, app=app, more=more)).ranks["finish_s"]
    assert ends[1] == pytest.approx(latency(1) + 80000 / GB, rel=1e-9)
    assert ends[2] == pytest.approx(leaves_ns * NS + latency(1) + 10000 / GB, rel=1e-9)


@pytest.mark.parametrize(("sharing", "share"), [("equal", 0.5), ("latency", 0.4)])
def test_equal_shares(tmp_path, sharing, share):
    """On a line of routers 0–1–2, host 0 sends to 1 (2 routers) and to 2 (3 routers) at the same time."""
    programs = [["isend 2 0 60000 6", "isend 1 1 60000 6", "waitall 2"], ["recv 0 1 60000 6"], ["recv 0 0 60000 6"]]
    config = recorded(
        tmp_path, programs, "{kind: mesh, radices: [3]}", f"{{envelope_bytes: 0, sharing: {sharing}}}"
    )
    config = config.model_copy(update={"timing": config.timing.model_copy(update={"cable_ns": 0.0})})
    start = 3 * 51 * NS  # of the long one; 51 ns before, the short one has the link alone
    ends = run_app(config).ranks["finish_s"]
    assert ends[1] == pytest.approx(start + (60000 / GB - 51 * NS) / (1 - share), rel=1e-9)
    assert ends[2] == pytest.approx(start - 51 * NS + 120000 / GB, rel=1e-9)


@pytest.mark.parametrize(("reduction", "first"), [("true", 0.25), ("false", 0.5)])
def test_delays_by_the_hit_rates_of_the_caches(tmp_path, reduction, first):
    """Rank 0 on a row of 4 switches sends to 3 and 2, twice: switches 0 and 1 send both on in one direction.

    With node reduction they share a key there, one miss in four lookups; without, each destination is a key.
    """
    programs = [["send 3 0 0 6", "send 2 0 0 6"] * 2, ["init"], ["recv 0 0 0 6"] * 2, ["recv 0 0 0 6"] * 2]
    config = recorded(
        tmp_path, programs, "{kind: mesh, radices: [4]}", "{lookup: cache}",
        f"lookup: {{reduction: {reduction}}}\n",
    )
    run = engine.FlowRun(config, TOPOLOGY, place_program(config.workload, TOPOLOGY, 1))
    port = TOPOLOGY.peer_port[0, np.flatnonzero(TOPOLOGY.peer_router[0] == 1)[0]]  # of switch 1, from switch 0
    assert run.cache_use.miss[0, TOPOLOGY.host_port[0]] == first
    assert run.cache_use.miss[1, port] == first
    assert run.cache_use.miss[2, port] == 0.5  # to its host, and on
    assert run.cache_use.miss[3, port] == 0.5  # once of twice
    expected = latency(4) + 25 * NS * (first + first + 0.5 + 0.5)
    assert run.state.route["latency"][run.state.message["route"][0]] == pytest.approx(expected, rel=1e-9)
    warm = config.model_copy(update={"app": config.app.model_copy(update={"caches": "warm"})})
    assert not engine.FlowRun(warm, TOPOLOGY, place_program(warm.workload, TOPOLOGY, 1)).cache_use.miss.any()


@pytest.mark.parametrize(("kind", "second_ns"), [("flow", 4), ("flow", 25), ("packet", 4)])
def test_energy_of_a_second_level(tmp_path, kind, second_ns):
    """Host 0 sends to 1 and 2 in turn past a cache of one line: all four miss, the second level holds two of them.

    Each next message waits for an answer to the last one, so that no lookup joins another. Answers take the caches of
    the other hosts: one miss each, and a hit.
    """
    here, there = ["send 1 0 0 6", "recv 1 0 0 6", "send 2 0 0 6", "recv 2 0 0 6"] * 2, ["recv 0 0 0 6", "send 0 0 0 6"]
    config = recorded(
        tmp_path, [here, there * 2, there * 2], app=f"{{engine: {kind}, lookup: cache}}",
        more="lookup: {reduction: false, cache: {entries: 1, ways: 1, second_level: {entries: 64}}}\n",
    )
    timing = config.timing.model_copy(update={"second_level_ns": float(second_ns)})
    run = run_app(config.model_copy(update={"timing": timing}))
    assert run.found.miss_share == 6 / 8
    lookup = run.energy.set_index("part").cache_j["lookup"]
    assert lookup == pytest.approx((8 * 0.039 + 4 * 42.0) * 1e-9)  # those that ask the TCAM


def test_results_are_written(tmp_path):
    config = config_of("{kind: npb, benchmark: ep, class: S}", app="{host_gflops: 1}")
    run = run_app(config)
    assert run.ranks["sent_messages"].sum() == run.found.messages
    write_app(run, tmp_path / "out")
    assert {item.name for item in (tmp_path / "out").iterdir()} == {
        "app.csv", "app.parquet", "ranks.csv", "ranks.parquet", "energy.csv", "energy.parquet", "metadata.json",
        "times.csv", "times.parquet",
    }
    assert dict(app_rows(run))["program"] == "ep.S.8, 8 ranks"
    assert (tmp_path / "out" / "ranks.csv").read_text().splitlines()[0] == (
        "rank,host,finish_s,waiting_s,compute_s,sent_messages,sent_bytes"
    )


def test_caches_of_grouped_links_are_refused():
    config = config_of(
        "{kind: collective, operation: alltoall, ranks: 4, bytes: 300}", ROW, "{lookup: cache}",
        "lookup: {lag: {max_members: 2, members: 2}}\n",
    )  # fmt: skip
    with pytest.raises(UserError, match=r"lookup\.lag\.members: must be 1 with app\.lookup: cache in .*2$"):
        run_app(config)
