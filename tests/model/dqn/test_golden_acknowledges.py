"""Headers, entries, episodes and acknowledges of the golden scripts and random runs; observations and distances."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.dqn.acknowledges import FORWARD, HOME, NO_ENTRY, QUEUE_FULL, acknowledge, leave_queue
from hopforge.model.dqn.headers import accepts, deliver, enter, passes_by, start_episode, take_escape, wants_acknowledge
from hopforge.model.dqn.observation import distance, observe
from hopforge.model.dqn.rules import Rules
from hopforge.model.dqn.tables import COUNTERS, NONE, expire, new_tables

sys.path.insert(0, str(Path(__file__).parent))
from dqn_cases import cases

PORTS = ["X-", "X+", "Y-", "Y+"]
RESULTS = {QUEUE_FULL: "queue_full", NO_ENTRY: "no_entry", HOME: "home", FORWARD: "forward"}
SETTINGS = ("max_hops", "available", "reward_rejected", "queue_depth")


class Player:
    """A network without links: plays the events of a case and says its state in the words of the data."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.size = np.array(settings["size"])
        self.routers = [(x, y) for y in range(self.size[1]) for x in range(self.size[0])]
        names = {"row": "y{1}", "router": "{0},{1}", "one": "all"}[settings["agents"]]
        labels = [names.format(x, y) for x, y in self.routers]
        self.agents = list(dict.fromkeys(labels))
        skew = np.zeros(len(self.routers), np.int64)
        for place, cycles in settings["skew"].items():
            skew[self.number([int(part) for part in place.split(",")])] = cycles
        self.tables = new_tables(
            np.array([self.agents.index(label) for label in labels]),
            depth=settings["table_depth"] or 1000, episodes=settings["max_episodes"], inputs=13,
            age_limit=settings["age_limit"], skew=skew,
        )  # fmt: skip
        self.rules = Rules(
            **{name: settings[name] for name in SETTINGS},
            reward_unit_cycles=settings["unit"], reward_offset=settings["offset"],
        ).compiled  # fmt: skip
        self.injected = np.zeros(len(self.routers), np.int64)
        self.rewards: dict[str, list] = {name: [] for name in self.agents}
        self.decisions = dict.fromkeys(self.agents, 0)
        self.queues: dict[int, list[int]] = {}

    def number(self, place: list[int]) -> int:
        return place[0] + int(self.size[0]) * place[1]

    def agent(self, router: int) -> str:
        return self.agents[self.tables.agents[router]]

    def episode(self, router: int, place: int) -> int | None:
        """Number of an episode; None without one."""
        return None if place == NONE else int(self.tables.episode_numbers[self.tables.agents[router], place])

    def play(self, event: dict[str, Any]) -> dict[str, Any]:
        expire(self.tables, event["t"])
        return getattr(self, event["do"])(event) if event["do"] != "tick" else {}

    def inject(self, event: dict[str, Any]) -> dict[str, Any]:
        return {"req_ack": wants_acknowledge(self.injected, self.number(event["at"]), self.settings["ack_ratio"])}

    def ack_leaves(self, event: dict[str, Any]) -> dict[str, Any]:
        router = self.number(event["at"])
        leave_queue(self.tables, router)
        return {"left": self.queues[router].pop(0)}

    def sent(self, router: int, port: int, event: dict[str, Any], stamp: int) -> dict[str, Any]:
        x, y = self.routers[router]
        step = [(-1, 0), (1, 0), (0, -1), (0, 1)][port]
        to = [(x + step[0]) % self.size[0], (y + step[1]) % self.size[1]]
        return {"from": [x, y], "via": PORTS[port], "to": to, "pid": event["pid"], "stamp": stamp}

    def header(self, event: dict[str, Any]) -> dict[str, Any]:
        router, now, packet = self.number(event["at"]), event["t"], event["pid"]
        port = NONE if event["port"] == "Int" else PORTS.index(event["port"])
        if event["at"] == event["dest"]:
            if not deliver(self.tables, event["req_ack"], port):
                return {"result": "deliver", "ack": None}
            stamp = now + int(self.tables.skew[router])
            return {"result": "deliver", "ack": self.sent(router, port, event, stamp)}
        way = distance(self.size, True, np.array(event["at"]), np.array(event["dest"]))
        before, started = int(self.tables.fill[router]), self.tables.started.copy()
        common = (self.tables, self.rules, router, packet, now, way)
        if passes_by(*common, event["hops"], event["pdor"], event["req_ack"], port):
            entry = int(self.tables.fill[router]) > before
            return {"result": "dor", "pdor": True, "asked": False, "entry": entry, "episode": None}
        self.decisions[self.agent(router)] += 1
        action = event["action"]
        flits, free = event["payload"] + 2, self.settings["buffer_depth"] - event["remote"][action]
        seen = np.full(13, float(packet))
        enter(self.tables, router, packet, now, way, event["req_ack"], port)
        episode = start_episode(self.tables, router, packet, now, event["req_ack"], seen, action)
        accepted = accepts(*common[:4], episode, free, flits, event["busy"][action])
        waited = accepted and event["dor_taken"]
        if waited:
            take_escape(self.tables)
        agent = self.tables.agents[router]
        new = self.tables.started[agent] > started[agent]
        return {
            "result": PORTS[action] if accepted and not waited else "dor", "pdor": not accepted or waited,
            "asked": True, "entry": int(self.tables.fill[router]) > before,
            "episode": int(started[agent]) if new else None, "rejected": not accepted,
        }  # fmt: skip

    def ack(self, event: dict[str, Any]) -> dict[str, Any]:
        router = self.number(event["at"])
        entries = [list(entry) for entry in self.entries(router)]
        numbers = self.tables.episode_numbers[self.tables.agents[router]].copy()
        result, port, episode, reward = acknowledge(self.tables, self.rules, router, event["pid"], event["stamp"])
        out: dict[str, Any] = {"result": RESULTS[result]}
        if result in (QUEUE_FULL, NO_ENTRY):
            return out
        gone = next(one for one in reversed(entries) if one[0] == event["pid"])
        out["popped"] = dict(zip(("pid", "time", "distance", "episode", "port"), gone, strict=True))
        if episode != NONE:
            agent = self.tables.agents[router]
            action = int(self.tables.episode_actions[agent, episode])
            assert self.tables.episode_observations[agent, episode].tolist() == [event["pid"]] * 13
            out["popped"]["action"], out["reward"] = action, reward
            self.rewards[self.agent(router)].append([int(numbers[episode]), action, reward])
        if result == FORWARD:
            out["send"] = self.sent(router, port, event, event["stamp"])
            self.queues.setdefault(router, []).append(event["pid"])
        return out

    def entries(self, router: int) -> list[list[Any]]:
        return [
            [int(packet), int(time), int(way), self.episode(router, place), "Int" if port == NONE else PORTS[port]]
            for packet, time, way, place, port in self.tables.entries[router, : self.tables.fill[router]]
        ]

    def state(self) -> dict[str, Any]:
        found = {f"{x},{y}": self.entries(k) for k, (x, y) in enumerate(self.routers)}
        return {
            "tables": {place: entries for place, entries in found.items() if entries},
            "active": self.active(),
            "queues": {"{},{}".format(*self.routers[k]): queue for k, queue in self.queues.items() if queue},
        }

    def active(self) -> dict[str, int]:
        return {name: int(count) for name, count in zip(self.agents, self.tables.active, strict=True)}


def assert_out(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    wanted = dict(wanted)
    if "popped" in wanted and wanted["popped"]["episode"] is None:
        # who proposed what for an entry that has lost its episode is told by nobody
        wanted["popped"] = {name: value for name, value in wanted["popped"].items() if name != "action"}
    assert found == wanted


CASES = cases("acknowledge_scripts") + cases("acknowledge_random")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    player = Player(case["settings"])
    assert case["events"]
    for event in case["events"]:
        out = player.play(event["in"])
        reward = event["out"].get("reward")
        assert out.pop("reward", None) == (None if reward is None else pytest.approx(reward, rel=1e-15))
        assert_out(out, {name: value for name, value in event["out"].items() if name != "reward"})
        if "table" in event:
            assert player.entries(player.number(event["in"]["at"])) == event["table"]
            assert_active(player, event["active"])
        if "state" in event:
            assert_state(player, event["state"])
    end = case["end"]
    assert_state(player, end["state"])
    later = dict.fromkeys(COUNTERS[COUNTERS.index("agent_queue_full") :], 0)  # not here
    assert dict(zip(COUNTERS, player.tables.counts.tolist(), strict=True)) == end["count"] | later
    for name, rewards in end["rewards"].items():
        assert player.rewards[name] == [[episode, action, pytest.approx(value)] for episode, action, value in rewards]
    assert {name: count for name, count in player.decisions.items() if count} == end["decisions"]


def assert_active(player: Player, wanted: dict[str, int]) -> None:
    assert {name: count for name, count in player.active().items() if name in wanted or count} == wanted


def assert_state(player: Player, wanted: dict[str, Any]) -> None:
    found = player.state()
    assert found["tables"] == wanted["tables"]
    assert_active(player, wanted["active"])
    if player.settings["queue_depth"] is not None:
        assert found["queues"] == wanted["queues"]


def test_observations() -> None:
    found = cases("observations")
    for case in found["observations"]:
        given = case["in"]
        places = (np.array(given["size"]), np.array(given["here"]), np.array(given["dest"]), given["payload"])
        flits = (np.array(given["local"]), np.array(given["remote"]))
        for name, payload in (("scaled", 256.0), ("raw", 0.0)):
            scales = np.array([payload, given["local_depth"], given["remote_depth"]])
            seen = np.zeros(13)
            observe(*places, *flits, scales, seen)
            assert seen == pytest.approx(case[name], rel=1e-15)
    for case in found["distances"]:
        way = distance(np.array(case["size"]), True, np.array(case["from"]), np.array(case["to"]))
        assert way == case["distance"]


def test_way_on_a_mesh_does_not_wrap() -> None:
    assert distance(np.array([4, 4]), False, np.array([0, 0]), np.array([3, 3])) == 6


def test_reward_of_time() -> None:
    """Offset less the cycles in units, whatever the distance."""
    for way in (1, 3):
        tables = new_tables(np.zeros(1, np.int64), depth=4, episodes=2, inputs=1)
        rules = Rules(reward="time", reward_unit_cycles=50.0, reward_offset=2.0).compiled
        enter(tables, 0, 7, 100, way, True, NONE)
        assert start_episode(tables, 0, 7, 100, True, np.zeros(1), 1) == 0
        assert acknowledge(tables, rules, 0, 7, 175)[3] == 0.5
