"""Rule tables from text and CSV: what is read, and one line with file, line and field for what cannot be."""

import pytest

from hopforge.model.lookup.rules.rule_files import RuleFileError, read_rules
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable


def read(tmp_path, name, text, hops=None):
    path = tmp_path / name
    path.write_text(text)
    return read_rules(path, hops)


def test_a_routing_table(tmp_path):
    found = read(tmp_path, "t.txt", "# of a router\n0.0.0.0/0 west\n\n10.0.0.0/8, east  # campus\n0x0a010000/16 west\n")
    assert found.rules == [
        Rule(0, 0, 0, 0, 0), Rule(1, 10 << 24, 0xFF000000, 8, 1), Rule(2, 0x0A010000, 0xFFFF0000, 16, 0),
    ]  # fmt: skip
    assert (found.width, found.hops) == (32, ("west", "east"))
    assert RuleTable(found.rules, 32).is_prefix_table


def test_another_width(tmp_path):
    found = read(tmp_path, "t.txt", "width: 12\nhops: 4\n0xf00/4 3\n16/8 0\n")
    assert found.rules == [Rule(0, 0xF00, 0xF00, 4, 3), Rule(1, 16, 0xFF0, 8, 0)]
    assert (found.width, found.hops) == (12, ("0", "1", "2", "3"))


def test_a_routing_table_of_ipv6(tmp_path):
    """The first prefix says that addresses have 128 bits."""
    path = tmp_path / "t.txt"
    path.write_text("::/0 a\n2001:db8::/32 b\n::ffff:10.0.0.0/104 a\n2001:db8::1/128, a\n")
    found = read_rules(path)
    assert found.width == 128
    assert [(rule.value, rule.mask, rule.priority) for rule in found.rules] == [
        (0, 0, 0),
        (0x20010DB8 << 96, 0xFFFFFFFF << 96, 32),
        (0xFFFF0A000000, ((1 << 104) - 1) << 24, 104),
        ((0x20010DB8 << 96) + 1, (1 << 128) - 1, 128),
    ]


def test_csv_of_values_and_masks(tmp_path):
    found = read(tmp_path, "t.csv", "width: 8\nid,priority,value,mask,out\n7,-3,0x10,0x30,up\n2,5,0,0,down\n")
    assert found.rules == [Rule(7, 0x10, 0x30, -3, 0), Rule(2, 0, 0, 5, 1)]


def test_csv_of_fields(tmp_path):
    text = 'priority,nw_dst:32,tp_dst:16,out\n9,10.0.0.0/8,80,a\n9,*,0x400/0xfc00,b\n1,,,"a"\n'
    found = read(tmp_path, "t.csv", text)
    assert found.rules == [
        Rule(0, (10 << 24) << 16 | 80, 0xFF000000 << 16 | 0xFFFF, 9, 0), Rule(1, 0x400, 0xFC00, 9, 1),
        Rule(2, 0, 0, 1, 0),
    ]  # fmt: skip
    assert found.width == 48


BAD = [
    ("t.txt", "10.0.0.0/8 a\n10.0.0.1/8 b\n", "2: prefix: 10.0.0.1/8 has host bits set: 0x1 lies outside the mask"),
    ("t.txt", "10.0.0.0/33 a\n", "1: length of prefix: must be 0 to 32, not 33"),
    ("t.txt", "10.0.0.0 a\n", "1: prefix: must be ADDRESS/LENGTH, not '10.0.0.0'"),
    ("t.yml", "# x\nname: x\n", "2: line: name: looks like a configuration; a table is wanted: a line has a prefix"),
    ("t.yml", "topology: {kind: torus, radices: [4, 4]}\n", "1: line: topology: looks like a configuration; a table"),
    ("t.yml", "router:\n  vcs: 4\n", "1: line: router: looks like a configuration; a table is wanted"),
    ("t.txt", "10.0.0.256/32 a\n", "1: prefix: 10.0.0.256 has a part above 255"),
    ("t.txt", "10.0.0.0/8\n", "1: line: must have a prefix and a next hop, not 1 words"),
    ("t.txt", "10.0.0.0/8 a\n10.0.0.0/8 a\n", "2: prefix: 10.0.0.0/8 stands in"),
    ("t.txt", "hops: 2\n0.0.0.0/0 2\n", "2: next hop: '2' does not exist; known: 0, 1"),
    ("t.txt", "hops: a b\n0.0.0.0/0 c\n", "2: next hop: 'c' does not exist; known: a, b"),
    ("t.txt", "hops:\n0.0.0.0/0 c\n", "1: hops: names no next hop"),
    ("t.txt", "2001:db8::1/32 a\n", "1: prefix: 2001:db8::1/32 has host bits set: 0x1 lies outside the mask"),
    ("t.txt", "::/0 a\n2001:zz::/32 a\n", "2: prefix: '2001:zz::' is no address of IPv6"),
    ("t.txt", "::/0 a\n10.0.0.0/8 a\n", "2: prefix: 10.0.0.0 has 32 bits, not 128"),
    ("t.txt", "10.0.0.0/8 a\n::/0 a\n", "2: prefix: :: has 128 bits, not 32"),
    ("t.txt", "2001:db8::/129 a\n", "1: length of prefix: must be 0 to 128, not 129"),
    ("t.txt", "width: 129\n", "1: width: must be 1 to 128, not 129"),
    ("t.txt", "width: 8\n10.0.0.0/8 a\n", "2: prefix: 10.0.0.0 has 32 bits, not 8"),
    ("t.txt", "width: 8\n256/8 a\n", "2: prefix: must be 0 to 255, not 256"),
    ("t.txt", "word/8 a\n", "1: prefix: must be a whole number, not 'word'"),
    ("t.txt", "# nothing\n", ": no rule in it"),
    ("t.csv", "value,mask,out\n0,0,a\n", "1: header: lacks the column priority"),
    ("t.csv", "priority,value,mask\n0,0,0\n", "1: header: lacks the column out"),
    ("t.csv", "priority,out\n0,0\n", "1: header: lacks what is matched"),
    ("t.csv", "priority,out,ip\n0,0,0\n", "1: header: column 'ip' is not id, priority, out"),
    ("t.csv", "priority,out,out\n0,0,0\n", "1: header: names a column twice"),
    ("t.csv", "priority,a:90,b:40,out\n", "1: header: the fields have 130 bits together, must be 1 to 128"),
    ("t.csv", "width: 8\npriority,a:4,out\n", "2: header: the fields have 4 bits together, not width 8"),
    ("t.csv", "priority,a:4,out\n1,16,x\n", "2: a:4: must be 0 to 15, not 16"),
    ("t.csv", "priority,a:4,out\n1,3/0x2,x\n", "2: a:4: 3/0x2 has host bits set: 0x1"),
    ("t.csv", "priority,a:4,out\n1,3/5,x\n", "2: length of a:4: must be 0 to 4, not 5"),
    ("t.csv", "priority,a:4,out\nhigh,3,x\n", "2: priority: must be a whole number, not 'high'"),
    ("t.csv", "priority,a:4,out\n,3,x\n", "2: priority: must be a whole number, not ''"),
    ("t.csv", "priority,a:4,out\n1,3,\n", "2: out: names no next hop"),
    ("t.csv", "priority,a:4,out\n1,3\n", "2: line: must have 3 cells as the header, not 2"),
    ("t.csv", 'priority,a:4,out\n1,"3,x\n', "2: line: no CSV"),
    ("t.csv", "id,priority,a:4,out\n1,1,3,x\n1,1,3,x\n", "3: id: 1 stands in"),
    ("t.csv", "priority,value,mask,out\n1,3,1,x\n", "2: value: 3 has host bits set: 0x2"),
    ("t.csv", "", ": no rule in it"),
]


@pytest.mark.parametrize(("name", "text", "words"), BAD)
def test_a_mistake_is_one_line(tmp_path, name, text, words):
    with pytest.raises(RuleFileError) as caught:
        read(tmp_path, name, text)
    message = str(caught.value)
    assert words in message
    assert message.startswith(str(tmp_path / name))
    assert "\n" not in message


def test_next_hops_from_the_caller(tmp_path):
    with pytest.raises(RuleFileError, match="1: next hop: '3' does not exist; known: 0, 1, 2"):
        read(tmp_path, "t.txt", "0.0.0.0/0 3\n", hops=3)


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(RuleFileError, match=r"no\.txt: cannot read the rule table: No such file"):
        read_rules(tmp_path / "no.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(RuleFileError, match="cannot read the rule table: not UTF-8 text"):
        read_rules(tmp_path / "bytes.txt")
