"""Expressions that come with hopforge, by name (docs/definitions/key-expressions.md, "Shipped expressions")."""

from typing import NamedTuple

__all__ = ["SHIPPED_EXPRESSIONS", "Shipped"]


class Shipped(NamedTuple):
    """An expression and what it is for.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of networks.
    text : str
        The expression.
    constants : tuple of str
        Constants that the user gives, unless the network has them.
    """

    kinds: tuple[str, ...]
    text: str
    constants: tuple[str, ...] = ()


_HYPERX = """
# the first dimension that differs, and the coordinate to go to; else the host
let w = address_bits - 4 - bits(n);
first i < n where d[i] != c[i] then {i + 1:bits(n), d[i]:w} else {0:bits(n), terminal:w}
"""

_GRID = """
# kind 0: the host; 1, 2: the first dimension that differs, plus or minus
first i < n where d[i] != c[i]
  then {%s:2, i:address_bits - 6}
  else {0:2, terminal:address_bits - 6}
"""

_MESH = _GRID % "if d[i] > c[i] then 1 else 2"

# a tie follows the sign; also for digits at and above the radix, as docs/definitions/lookup-engine.md says
_TORUS = _GRID % (
    "if (if c[i] > radix[i] / 2 then d[i] > c[i] or d[i] < c[i] - radix[i] / 2"
    " else d[i] > c[i] and d[i] <= c[i] + radix[i] / 2) then 1 else 2"
)

_FAT_TREE = """
# kind 2: down; 1: up, by the digit of this level
let port = first l < n + 1 where level == l then d[l] else 0;
if any i < n where i >= level and d[i + 1] != c[i]
  then {1:2, port:address_bits - 6}
  else {2:2, port:address_bits - 6}
"""

_DRAGONFLY = """
# kind 2: the group, if it is another; 1: the router; 0: the host
let value = if d[2] != c[2] then min(d[2], g - 1) else if d[1] != c[1] then d[1] else d[0];
let kind = if d[2] != c[2] then 2 else if d[1] != c[1] then 1 else 0;
{kind:2, value:address_bits - 6}
"""

_SLIM_FLY = """
# routers (s, a, b): (0, x, y) and (1, m, c) are linked if y = m x + c
let w = max(bits(q - 1), bits(hosts_per_router - 1));
let same_column = d[2] == c[2] and d[1] == c[1];
# within a side the columns x, x' meet in column m of the other side: y - y' = m (x - x')
# from side 0, y = m x + c, y' = m x' + c; from side 1, c - c' = -x (m - m')
let across = times[minus[d[0]][c[0]]][inverse[minus[d[1]][c[1]]]];
let column = if c[2] == 0 then across else minus[0][across];
# to the other side: the neighbour of the destination in the own column, and how far it is
let x_to = if c[2] == 0
  then plus[times[d[1]][c[1]]][d[0]]
  else minus[d[0]][times[c[1]][d[1]]];
let step = minus[c[0]][x_to];
let near = if c[2] == 0 then in_x[step] == 1 else in_other[step] == 1 and in_x[step] == 0;
if same_column and d[0] == c[0] then {0:2, terminal:w}
else if same_column then {1:2, d[0]:w}
else if d[2] == c[2] then {2:2, column:w}
else if near then {1:2, x_to:w}
else {2:2, d[1]:w}
"""

_TREE = """
# leaves first, then roots; hosts leaf after leaf
let w = max(bits(leaves - 1), max(bits(hosts - 1), bits(ups - 1)));
let leaf = min(dst / hosts, leaves - 1);
if own >= leaves then {2:2, leaf:w}
else if leaf == own then {0:2, dst % hosts:w}
else {1:2, leaf % ups:w}
"""

_DRAGONFLY_PLUS = """
# group after group, in each the leaves before the spines; hosts leaf after leaf
let w = max(bits(groups - 1), max(bits(leaves - 1), bits(hosts - 1)));
let leaf = dst / hosts;
let group = min(leaf / leaves, groups - 1);
let place = own % (leaves + spines);
if group != own / (leaves + spines) then {3:2, group:w}
else if place >= leaves then {2:2, leaf % leaves:w}
else if leaf % leaves == place then {0:2, dst % hosts:w}
else {1:2, leaf % leaves:w}
"""

SHIPPED_EXPRESSIONS = {
    "hyperx": Shipped(("hyperx", "fully_connected"), _HYPERX),
    "slim_fly": Shipped(("slim_fly",), _SLIM_FLY),
    "mesh": Shipped(("mesh",), _MESH),
    "torus": Shipped(("torus",), _TORUS),
    "fat_tree": Shipped(("fat_tree",), _FAT_TREE),
    "dragonfly": Shipped(("dragonfly",), _DRAGONFLY),
    "oversubscribed_tree": Shipped(("edge_list",), _TREE, ("leaves", "hosts", "ups")),
    "dragonfly_plus": Shipped(
        ("dragonfly_plus", "edge_list"), _DRAGONFLY_PLUS, ("groups", "leaves", "spines", "hosts")
    ),
}
"""Expressions by name."""
