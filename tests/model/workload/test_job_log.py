"""Job logs: the golden cases of shared/beyond, and what is no log."""

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.workload.job_log import FIELDS, JobLog, JobLogError, log_text, parse_log, read_log
from hopforge.model.workload.jobs import REASONS, size_shares, usable_jobs

_PLACES = [folder / "shared" / "beyond" / "swf.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
needs_golden = pytest.mark.skipif(GOLDEN is None, reason="shared/beyond is not here")


def golden(part):
    assert GOLDEN is not None
    found = json.loads(GOLDEN.read_text())[part]
    assert found
    return found


@needs_golden
def test_texts_are_read_as_the_reference_reads_them():
    for case in golden("texts"):
        if "error" not in case:
            log = parse_log(case["text"])
            assert (log.header, log.records.tolist()) == (case["header"], case["jobs"])
            continue
        line, words = case["error"].removeprefix("line ").split(": ")
        with pytest.raises(JobLogError, match=rf"^log:{line}: .*{words}"):
            parse_log(case["text"])


@needs_golden
def test_logs_are_read_as_the_reference_reads_them(tmp_path):
    for case in golden("cases"):
        path = GOLDEN.parent / case["log"]
        packed = tmp_path / f"{path.name}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        for log in (read_log(path), read_log(packed)):
            assert (log.header, len(log.records)) == (case["header"], case["records"])
            jobs = usable_jobs(log, machine_nodes=math.prod(case["dims"]))
            assert jobs.skipped == case["skipped"]
            found = (jobs.number, jobs.submit, jobs.run, jobs.estimate, jobs.nodes)
            assert [list(row) for row in zip(*(one.tolist() for one in found), strict=True)] == case["usable"]
            shares = size_shares(jobs.nodes, jobs.run)
            four = usable_jobs(log, ppn=4)
            whole = size_shares(four.nodes, four.run)
            for size, share, name in (
                (shares.size, shares.jobs, "cdf_count"), (shares.size, shares.hours, "cdf_hours"),
                (whole.size, whole.jobs, "cdf_ppn4"),
            ):  # fmt: skip
                np.testing.assert_allclose(np.column_stack([size, share]), case[name], atol=1e-9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 0 0 x", "t.swf:1: field 4 (run): 'x' is not a number"),
        ("; a: b\n\n1 inf", "t.swf:3: field 2 (submit): 'inf' is not a number"),
        ("1 1_0", "t.swf:1: field 2 (submit): '1_0' is not a number"),
        ("1 -", "t.swf:1: field 2 (submit): '-' is not a number"),
        ("1.5 0", "t.swf:1: field 1 (job): '1.5' must be a whole number"),
        ("1 0 0 5 2.5", "t.swf:1: field 5 (processors): '2.5' must be a whole number"),
        ("1 1e999", "t.swf:1: field 2 (submit): '1e999' must be from -2^53 to 2^53"),
        ("9007199254740993 0", "t.swf:1: field 1 (job): '9007199254740993' must be from -2^53 to 2^53"),
        ("1 -9007199254740992.1", "t.swf:1: field 2 (submit): '-9007199254740992.1' must be from -2^53 to 2^53"),
        ("1 0 0 5 2\r\n" + "2 " * 20, "t.swf:2: 20 fields; a job has at most 18"),
        ("1 " + "z" * 99, "t.swf:1: field 2 (submit): '" + "z" * 40 + "...' is not a number"),
    ],
)
def test_malformed_lines_are_named(text, words):
    with pytest.raises(JobLogError) as caught:
        parse_log(text, "t.swf")
    assert str(caught.value) == words


def test_files_that_are_no_logs(tmp_path, monkeypatch):
    path = tmp_path / "t.swf.gz"
    path.write_bytes(gzip.compress(b"1 0 0 5 2\n" * 99)[:-9])
    with pytest.raises(JobLogError, match="damaged gzip file"):
        read_log(path)
    path.write_bytes(b"1 0\0")
    with pytest.raises(JobLogError, match="not a text"):
        read_log(path)
    with pytest.raises(OSError, match="No such file"):
        read_log(tmp_path / "none.swf")
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "1")
    path.write_bytes(gzip.compress(b" " * (1 << 21)))
    with pytest.raises(JobLogError, match="unpacked it is more than 1 MiB"):
        read_log(path)


def test_any_blank_separates():
    assert parse_log("1\t0\u2003-1\x0b5  2").records[0, :5].tolist() == [1, 0, -1, 5, 2]


def test_comments_of_old_logs_are_latin_1(tmp_path):
    path = tmp_path / "t.swf"
    path.write_bytes("; Installation: Universität\n1 0 0 5 2\n".encode("latin-1"))
    assert read_log(path).header == {"Installation": ["Universität"]}


def test_the_largest_amounts():
    assert parse_log("9007199254740992 0.9007199254740992e16 -9007199254740992").records[0, :3].tolist() == [
        1 << 53, 1 << 53, -(1 << 53),
    ]  # fmt: skip


def test_the_first_reason_counts():
    lines = ["1 -1 0 -1 0 -1 -1 0 1 1 2", "2 -1 0 -1 0", "3 -1 0 -1 9", "4 -1 0 1 9", "5 0 0 1 9", "6 0 0 1 8"]
    jobs = usable_jobs(parse_log("\n".join(lines)), machine_nodes=8)
    assert jobs.skipped == dict.fromkeys(REASONS, 1)
    assert jobs.number.tolist() == [6]
    with pytest.raises(ValueError, match="ppn must be at least 1, not 0"):
        usable_jobs(parse_log(""), ppn=0)


def test_shares_without_run_times():
    shares = size_shares(np.array([2, 1]), np.zeros(2))
    assert shares.jobs.tolist() == [0.5, 1.0] and np.isnan(shares.hours).all()
    assert len(size_shares(np.zeros(0, int), np.zeros(0)).size) == 0


whole = st.integers(-1, 10**6)
values = st.one_of(whole.map(float), st.floats(-1, 1e6))
WHOLE = {"job", "processors", "requested_processors", "status"}
rows = st.lists(st.tuples(*(whole.map(float) if name in WHOLE else values for name in FIELDS)), max_size=4)


@given(rows)
def test_what_is_written_is_read_again(records):
    log = JobLog("x", {"Note": ["a", "b"], "MaxNodes": ["4"]}, np.array(records).reshape(-1, 18))
    again = parse_log(log_text(log))
    assert again.header == log.header
    assert (again.records == log.records).all()
