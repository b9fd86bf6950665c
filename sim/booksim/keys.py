"""The keys of BookSim 2 with its defaults (last commit of 2017-06-27), and what a configuration says of them."""

from collections.abc import Sequence
from typing import NoReturn

from hopforge.model.config.base import suggestion
from hopforge.sim.booksim.grammar import BooksimError, Setting

WHOLE: dict[str, int] = {
    "subnets": 1, "k": 8, "n": 2, "c": 1, "use_noc_latency": 1, "x": 8, "y": 8, "xr": 1, "yr": 1, "link_failures": 0,
    "fail_seed": 0, "in_ports": 5, "out_ports": 5, "output_delay": 0, "credit_delay": 0, "output_buffer_size": -1,
    "noq": 0, "speculative": 0, "spec_check_elig": 1, "spec_check_cred": 1, "spec_mask_by_reqs": 0, "num_vcs": 16,
    "vc_buf_size": 8, "buf_size": -1, "private_bufs": -1, "private_buf_size": 1, "private_buf_start_vc": -1,
    "private_buf_end_vc": -1, "max_held_slots": -1, "feedback_aging_scale": 1, "feedback_offset": 0,
    "wait_for_tail_credit": 0, "vc_busy_when_full": 0, "vc_prioritize_empty": 0, "vc_priority_donation": 0,
    "vc_shuffle_requests": 0, "hold_switch_for_packet": 0, "input_speedup": 1, "output_speedup": 1, "routing_delay": 1,
    "vc_alloc_delay": 1, "sw_alloc_delay": 1, "st_prepare_delay": 0, "st_final_delay": 1, "vct": 0, "alloc_iters": 1,
    "classes": 1, "class_priority": 0, "perm_seed": 0, "injection_rate_uses_flits": 0, "packet_size": 1,
    "packet_size_rate": 1, "batch_size": 1000, "batch_count": 1, "max_outstanding_requests": 0, "use_read_write": 0,
    "read_request_begin_vc": 0, "read_request_end_vc": 5, "write_request_begin_vc": 2, "write_request_end_vc": 7,
    "read_reply_begin_vc": 8, "read_reply_end_vc": 13, "write_reply_begin_vc": 10, "write_reply_end_vc": 15,
    "read_request_subnet": 0, "read_reply_subnet": 0, "write_request_subnet": 0, "write_reply_subnet": 0,
    "read_request_size": 1, "write_request_size": 1, "read_reply_size": 1, "write_reply_size": 1, "warmup_periods": 3,
    "sample_period": 1000, "max_samples": 10, "measure_stats": 1, "pair_stats": 0, "sim_count": 1,
    "include_queuing": 1, "seed": 0, "print_activity": 0, "print_csv_results": 0, "deadlock_warn_timeout": 256,
    "viewer_trace": 0, "sim_power": 0, "channel_width": 128, "channel_sweep": 0,
}  # fmt: skip
"""Keys that take a whole number."""

FLOAT: dict[str, float] = {
    "internal_speedup": 1.0, "injection_rate": 0.1, "burst_alpha": 0.5, "burst_beta": 0.5, "burst_r1": -1.0,
    "write_fraction": 0.5, "latency_thres": 500.0, "warmup_thres": 0.05, "acc_warmup_thres": 0.05,
    "stopping_thres": 0.05, "acc_stopping_thres": 0.05,
}  # fmt: skip
"""Keys that take a number with a point or an exponent; BookSim refuses whole numbers there."""

TEXT: dict[str, str] = {
    "channel_file": "", "topology": "torus", "routing_function": "none", "fail_seed": "", "router": "iq",
    "spec_sw_allocator": "prio", "buffer_policy": "private", "private_buf_size": "", "private_buf_start_vc": "",
    "private_buf_end_vc": "", "vc_allocator": "islip", "sw_allocator": "islip", "arb_type": "round_robin",
    "traffic": "uniform", "class_priority": "", "perm_seed": "", "injection_rate": "", "packet_size": "",
    "packet_size_rate": "", "injection_process": "bernoulli", "priority": "none", "use_read_write": "",
    "write_fraction": "", "read_request_size": "", "write_request_size": "", "read_reply_size": "",
    "write_reply_size": "", "sim_type": "latency", "measure_stats": "", "latency_thres": "", "warmup_thres": "",
    "acc_warmup_thres": "", "stopping_thres": "", "acc_stopping_thres": "", "seed": "", "watch_file": "",
    "watch_flits": "", "watch_packets": "", "watch_transactions": "", "watch_out": "", "stats_out": "",
    "sent_packets_out": "", "power_output_file": "pwr_tmp", "tech_file": "", "network_file": "",
}  # fmt: skip
"""Keys that take a word or a list; where a number is allowed, too, a text that was given wins, even an earlier one."""

DIAMETER2: dict[str, str] = {
    "use_size_power_of_two": "no", "rr_permute": "no", "load_routing_file": "no", "routing_table_file": "",
}  # fmt: skip
"""Texts that only the BookSim of the authors of PolarFly knows."""

KNOWN = frozenset({*WHOLE, *FLOAT, *TEXT, *DIAMETER2})

_OUTPUT = "what BookSim prints or writes"
_POWER = "BookSim's model of power"
_UNUSED = "BookSim does not use it"
#: key → why it has no effect on results, whatever its value
WITHOUT_EFFECT = {
    **dict.fromkeys(
        ("print_activity", "print_csv_results", "deadlock_warn_timeout", "viewer_trace", "watch_file", "watch_flits",
         "watch_packets", "watch_transactions", "watch_out", "stats_out", "sent_packets_out", "pair_stats"), _OUTPUT),
    **dict.fromkeys(("sim_power", "power_output_file", "tech_file", "channel_width", "channel_sweep"), _POWER),
    **dict.fromkeys(("channel_file", "in_ports", "out_ports", "output_delay"), _UNUSED),
    "vct": "for the event-driven router",
    "latency_thres": "only when BookSim gives up; `hopforge net` says itself that a load is too high",
    **dict.fromkeys(("warmup_thres", "acc_warmup_thres", "stopping_thres", "acc_stopping_thres"),
                    "BookSim's own rule of when a run is long enough"),
    "vc_priority_donation": "packets have no priorities",
    "class_priority": "packets have no priorities",
    "routing_table_file": "routes are computed",
}  # fmt: skip


class Settings:
    """What a configuration says, with BookSim's defaults, and which of it was used.

    Parameters
    ----------
    given : sequence of Setting
        As read; of several of a key (and a type) the last one counts.

    Raises
    ------
    BooksimError
        An unknown key, or a value of another type than BookSim takes.
    """

    def __init__(self, given: Sequence[Setting]) -> None:
        self._texts: dict[str, Setting] = {}
        self._numbers: dict[str, Setting] = {}
        #: key → why it has no effect
        self.without_effect: dict[str, str] = {}
        self._used: set[str] = set()
        for setting in given:
            _check_type(setting)
            (self._texts if isinstance(setting.value, str) else self._numbers)[setting.key] = setting

    @property
    def given(self) -> list[str]:
        """Keys that the configuration sets, by name."""
        return sorted({*self._texts, *self._numbers})

    @property
    def translated(self) -> list[str]:
        """Of these, the ones that were used."""
        return [key for key in self.given if key in self._used and key not in self.without_effect]

    def text(self, key: str) -> str:
        """Return the word or list of a key."""
        self._used.add(key)
        known = TEXT.get(key, DIAMETER2.get(key, ""))
        return str(self._texts[key].value) if key in self._texts else known

    def whole(self, key: str) -> int:
        """Return the whole number of a key."""
        self._used.add(key)
        return int(self._numbers[key].value) if key in self._numbers else WHOLE[key]

    def number(self, key: str) -> float:
        """Return the number of a key."""
        self._used.add(key)
        return float(self._numbers[key].value) if key in self._numbers else FLOAT[key]

    def at_least(self, key: str, least: int, most: int | None = None) -> int:
        """Return a whole number within limits."""
        value = self.whole(key)
        if value < least or (most is not None and value > most):
            self.refuse(key, f"must be at least {least}" if most is None else f"must be {least} to {most}")
        return value

    def must_be(self, key: str, value: int | float | str, why: str) -> None:
        """Refuse every value of a key but one."""
        read = self.text if isinstance(value, str) else self.number if key in FLOAT else self.whole
        found: int | float | str = read(key)
        if found != value or (not isinstance(value, str) and self._texts.get(key)):
            self.refuse(key, why)

    def no_effect(self, why: str, *keys: str) -> None:
        """Say of keys that they have no effect in this configuration."""
        self.without_effect |= {key: why for key in keys if key in self.given}

    def has_effect(self, *keys: str) -> None:
        """Take back that keys have no effect: something else reads them."""
        for key in keys:
            self.without_effect.pop(key, None)

    def refuse(self, key: str, why: str) -> NoReturn:
        """End the translation: the key with the value that counts, and where it stands."""
        setting = self._texts.get(key) or self._numbers.get(key)
        if setting is None:
            default: str | int | float = TEXT.get(key) or WHOLE.get(key) or FLOAT.get(key) or 0
            raise BooksimError(f"{key} = {default} (BookSim's default): {why}")
        raise BooksimError(f"{setting.where}: {setting.key} = {setting.shown}: {why}")

    def finish(self) -> None:
        """Sort what was never used: keys without effect, or keys that nothing translates, which are refused."""
        for key in self.given:
            if key not in self._used and key not in self.without_effect:
                if key not in WITHOUT_EFFECT:
                    self.refuse(key, "hopforge does not translate this key here")
                self.without_effect[key] = WITHOUT_EFFECT[key]


def _check_type(setting: Setting) -> None:
    key, value = setting.key, setting.value
    if key not in KNOWN:
        hint = suggestion(key, KNOWN)
        near = "" if hint.startswith("known") else f"; {hint}"
        raise BooksimError(f"{setting.where}: {key} = {setting.shown}: BookSim has no such key{near}")
    if isinstance(value, str):
        if key not in TEXT and key not in DIAMETER2:
            raise BooksimError(f"{setting.where}: {key} = {value}: BookSim takes a number here")
    elif isinstance(value, int):
        if key not in WHOLE:
            hint = f"write {value}.0" if key in FLOAT else "it takes a word"
            raise BooksimError(f"{setting.where}: {key} = {value}: BookSim refuses a whole number here; {hint}")
    elif key not in FLOAT:
        raise BooksimError(f"{setting.where}: {key} = {setting.shown}: BookSim takes no number with a point here")


def items(text: str) -> list[str]:
    """Split ``{a,b}`` at the commas outside inner braces; another text is one item, an empty one none."""
    if not text.startswith("{"):
        return [text] if text else []
    found, start, depth = [], 1, 0
    for place in range(1, len(text)):
        if text[place] == "{":
            depth += 1
        elif text[place] == "}" and depth:
            depth -= 1
        elif text[place] in ",}" and not depth:
            found += [text[start:place]] if place > start else []
            start = place + 1
    return found


def with_parameters(text: str) -> tuple[str, list[str]]:
    """Split ``name(a,b)`` or ``name({{1,2},{3}})`` into name and parameters."""
    name, bracket, rest = text.partition("(")
    inner = rest.rpartition(")")[0] if ")" in rest else rest
    return name, items(inner) if bracket else []
