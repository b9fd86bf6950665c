"""How flows share links: weighted max-min fairness, kept up as flows come and go (docs/definitions/engines.md).

Rates grow in proportion to 1/penalty until a link is full; what that stops stays, the rest grows on (Bertsekas and
Gallager, "Data Networks", 1992, section 6.5.2). The link that stops a flow is its bottleneck. The flows with the same
bottleneck are its *group*; they have one rate per weight, the *level* of the link. A group has a clock that advances by
its level. A flow ends when that clock shows a time that does not change with the level: a new level costs one event,
not one for each flow.

Every flow *reserves* bandwidth on its links, up to a `limit` of its level. A link whose reservations fit into its
capacity cannot become full before a limit is reached: it need not be looked at. The others, and those with a group, are
*hard*. Where a flow comes or goes and no flow of the group has another hard link, one look at the list of the link is
enough (`_relevel`, `_join`). Else `solve` fills the groups that depend on each other anew.
"""

import numpy as np

from hopforge.model.kernel.compile import inlined, inner
from hopforge.sim.programs.flow_events import drop, put
from hopforge.sim.programs.flow_state import BASE, DIRTY, EPOCH, FRESH, LEAST_BYTES, LINKS

#: levels, and sums of reservations, that differ by less are equal
_ABOVE = 1 + 1e-12


@inlined
def link_item(s, link):  # type: ignore[no-untyped-def]
    """Return the item whose event is the next end in the group of a link; a bound of a slot has that of the slot."""
    links = s.numbers[LINKS]
    return s.numbers[BASE] + link - links if link >= links else s.numbers[BASE] - links + link


@inlined
def advance_clock(s, link):  # type: ignore[no-untyped-def]
    """Let the clock of a group show the present."""
    s.link[link].clock += s.link[link].level * (s.clock[0] - s.link[link].since)
    s.link[link].since = s.clock[0]


@inlined
def insert(s, slot, hops):  # type: ignore[no-untyped-def]
    """Put a flow, which has no bottleneck yet, on the lists of its links."""
    hard = 0
    for h in range(s.flow[slot].count):
        entry = slot * hops + h
        link = s.way[entry]
        s.near[entry, 1] = -1
        s.near[entry, 0] = s.link[link].head
        if s.link[link].head >= 0:
            s.near[s.link[link].head, 1] = entry
        s.link[link].head = entry
        hard += s.link[link].hard
    s.flow[slot].hard, s.flow[slot].link, s.flow[slot].limit = hard, -1, 0.0
    s.fresh[s.numbers[FRESH]] = slot
    s.numbers[FRESH] += 1


@inlined
def _harden(s, link, hops, hard):  # type: ignore[no-untyped-def]
    """Note that a link is hard, or is not any more."""
    s.link[link].hard = hard
    step = 1 if hard else -1
    entry = s.link[link].head
    while entry >= 0:
        s.flow[entry // hops].hard += step
        entry = s.near[entry, 0]


@inlined
def _look(s, link, hops):  # type: ignore[no-untyped-def]
    """Find out whether a link is hard."""
    hard = s.link[link].group > 0 or s.link[link].reserved > s.link[link].capacity * _ABOVE or link >= s.numbers[LINKS]
    if hard != s.link[link].hard:
        _harden(s, link, hops, hard)


@inlined
def mark_dirty(s, link):  # type: ignore[no-untyped-def]
    """Note that the level of a group changes."""
    if not s.link[link].dirty:
        s.link[link].dirty = True
        s.dirty[s.numbers[DIRTY]] = link
        s.numbers[DIRTY] += 1


@inlined
def remove(s, slot, hops):  # type: ignore[no-untyped-def]
    """Take a flow that is at its end off its links."""
    bottleneck = s.flow[slot].link
    rate = s.flow[slot].limit * s.flow[slot].weight
    for h in range(s.flow[slot].count):
        entry = slot * hops + h
        link = s.way[entry]
        before, after = s.near[entry, 1], s.near[entry, 0]
        if before >= 0:
            s.near[before, 0] = after
        else:
            s.link[link].head = after
        if after >= 0:
            s.near[after, 1] = before
        s.link[link].reserved = s.link[link].reserved - rate if s.link[link].head >= 0 else 0.0
        if link == bottleneck:
            s.link[link].group -= 1
            s.link[link].held -= s.flow[slot].held > 0
        if s.link[link].group > 0:
            mark_dirty(s, link)
        elif link == bottleneck:
            drop(s, link_item(s, link))
        _look(s, link, hops)


@inlined
def _settle(s, link, level, first):  # type: ignore[no-untyped-def]
    """Give a group its level, and an event when its first flow ends."""
    s.link[link].level, s.link[link].first = level, first
    put(s, link_item(s, link), s.clock[0] + max(first - s.link[link].clock, 0.0) / level)


@inlined
def first_of_group(s, link, hops):  # type: ignore[no-untyped-def]
    """Return when the first flow of a group that does not keep its host ends, on the clock of the group."""
    first = np.inf
    entry = s.link[link].head
    while entry >= 0:
        slot = entry // hops
        if s.flow[slot].link == link and s.flow[slot].held == 0:
            first = min(first, s.flow[slot].finish)
        entry = s.near[entry, 0]
    return first


@inlined
def renew_event(s, link, hops):  # type: ignore[no-untyped-def]
    """Let the event of a group be the end of its first flow."""
    if s.link[link].group > s.link[link].held:
        _settle(s, link, s.link[link].level, first_of_group(s, link, hops))
    elif link < s.numbers[LINKS] or s.link[link].held == 0:  # else the event is that of the flow that keeps its host
        drop(s, link_item(s, link))


@inlined
def _weigh(s, link, hops):  # type: ignore[no-untyped-def]
    """Look at the flows of a link.

    Returns
    -------
    tuple
        Weight of the group; rate of the others; the first end and the lowest limit of the group; other hard links of
        its flows; highest level of the others.
    """
    weight, rest, first, limit, others, highest = 0.0, 0.0, np.inf, np.inf, 0, 0.0
    entry = s.link[link].head
    while entry >= 0:
        slot = entry // hops
        bottleneck = s.flow[slot].link
        if bottleneck == link:
            weight += s.flow[slot].weight
            first = min(first, s.flow[slot].finish)
            limit = min(limit, s.flow[slot].limit)
            others += s.flow[slot].hard - 1
        elif bottleneck >= 0:
            rest += s.flow[slot].weight * s.link[bottleneck].level
            highest = max(highest, s.link[bottleneck].level)
        entry = s.near[entry, 0]
    return weight, rest, first, limit, others, highest


@inlined
def _relevel(s, link, hops):  # type: ignore[no-untyped-def]
    """Give a group that flows have left its level, if that touches no other group."""
    if s.link[link].held > 0:
        return False
    weight, rest, first, limit, others, highest = _weigh(s, link, hops)
    level = (s.link[link].capacity - rest) / weight
    if others > 0 or level > limit or highest > level * _ABOVE:
        return False
    advance_clock(s, link)
    _settle(s, link, level, first)
    return True


@inlined
def _fits(s, slot, hops, rate):  # type: ignore[no-untyped-def]
    for h in range(s.flow[slot].count):
        link = s.way[slot * hops + h]
        if not s.link[link].hard and s.link[link].reserved + rate > s.link[link].capacity * _ABOVE:
            return False
    return True


@inlined
def _reserve(s, slot, hops, limit):  # type: ignore[no-untyped-def]
    more = (limit - s.flow[slot].limit) * s.flow[slot].weight
    s.flow[slot].limit = limit
    for h in range(s.flow[slot].count):
        s.link[s.way[slot * hops + h]].reserved += more


@inlined
def _enter(s, slot, link):  # type: ignore[no-untyped-def]
    """Make a flow one of a group; what it has left stands in `finish`."""
    if s.link[link].group == 0:
        s.link[link].clock, s.link[link].since, s.link[link].level = 0.0, s.clock[0], 0.0
    s.flow[slot].link = link
    s.flow[slot].finish += s.link[link].clock
    s.link[link].group += 1
    s.link[link].held += s.flow[slot].held > 0


@inlined
def _join(s, slot, hops):  # type: ignore[no-untyped-def]
    """Give a flow its rate, if it is alone on its links, or shares with one group that touches no other."""
    if s.flow[slot].held > 0 or s.flow[slot].hard > 1:
        return False
    weight = s.flow[slot].weight
    if s.flow[slot].hard == 0:
        link = s.route[s.message[s.flow[slot].message].route].narrow
        for h in range(s.flow[slot].count):
            if s.near[slot * hops + h, 0] >= 0 or s.near[slot * hops + h, 1] >= 0:
                return False
        level = s.link[link].capacity / weight
        _reserve(s, slot, hops, level)
        _enter(s, slot, link)
        _harden(s, link, hops, True)
        _settle(s, link, level, s.flow[slot].finish)
        return True
    link = -1
    for h in range(s.flow[slot].count):
        if s.link[s.way[slot * hops + h]].hard:
            link = s.way[slot * hops + h]
    if s.link[link].group == 0 or s.link[link].held > 0:
        return False
    group, rest, first, _, others, highest = _weigh(s, link, hops)
    level = (s.link[link].capacity - rest) / (group + weight)
    if others > 0 or highest > level * _ABOVE or not level > 0:
        return False
    limit = 2 * level
    if not _fits(s, slot, hops, limit * weight):
        limit = level
        if not _fits(s, slot, hops, limit * weight):
            return False
    advance_clock(s, link)
    _reserve(s, slot, hops, limit)
    _enter(s, slot, link)
    _settle(s, link, level, min(first, s.flow[slot].finish))
    return True


@inner
def share(s, hops):  # type: ignore[no-untyped-def]
    """Give every flow its max-min fair rate, where flows have come or gone."""
    kept = 0
    for i in range(s.numbers[DIRTY]):
        link = s.dirty[i]
        s.link[link].dirty = False
        if s.link[link].group > 0 and not _relevel(s, link, hops):
            s.dirty[kept] = link
            kept += 1
    s.numbers[DIRTY] = kept
    fresh = 0
    for i in range(s.numbers[FRESH]):
        if not _join(s, s.fresh[i], hops):
            s.fresh[fresh] = s.fresh[i]
            fresh += 1
    s.numbers[FRESH] = fresh
    if kept + fresh > 0:
        solve(s, hops)


# ---- groups that depend on each other -------------------------------------------------------------------------------


@inlined
def _affect(s, link, links):  # type: ignore[no-untyped-def]
    """Let a group be filled anew; return how many are."""
    if s.link[link].solved == s.numbers[EPOCH] or s.link[link].group == 0:
        return links
    s.link[link].solved = s.numbers[EPOCH]
    s.links[links] = link
    return links + 1


@inlined
def _spread(s, hops, links, flows, touched):  # type: ignore[no-untyped-def]
    """Collect flows of the affected groups, their hard links, and the groups of these; return how many of each."""
    epoch = s.numbers[EPOCH]
    done, seen = 0, 0
    while done < links or seen < flows:
        if done < links:
            link = s.links[done]
            done += 1
            entry = s.link[link].head
            while entry >= 0:
                slot = entry // hops
                if s.flow[slot].link == link and s.flow[slot].mark != epoch:
                    s.flow[slot].mark = epoch
                    s.flows[flows] = slot
                    flows += 1
                entry = s.near[entry, 0]
            continue
        slot = s.flows[seen]
        seen += 1
        if s.flow[slot].hard == 0:
            continue
        for h in range(s.flow[slot].count):
            link = s.way[slot * hops + h]
            if s.link[link].hard:
                if s.link[link].mark != epoch:
                    s.link[link].mark = epoch
                    s.touched[touched] = link
                    touched += 1
                links = _affect(s, link, links)
    return links, flows, touched


@inlined
def _fill(s, hops, flows, touched):  # type: ignore[no-untyped-def]
    """Find goals and bottlenecks (`to`) of the affected flows, as far as their hard links say."""
    epoch = s.numbers[EPOCH]
    for i in range(touched):
        link = s.touched[i]
        s.opened[i] = link
        rest, load, users = 0.0, 0.0, 0
        entry = s.link[link].head
        while entry >= 0:
            slot = entry // hops
            if s.flow[slot].mark == epoch:
                load += s.flow[slot].weight
                users += 1
            else:
                rest += s.flow[slot].weight * s.link[s.flow[slot].link].level
            entry = s.near[entry, 0]
        s.link[link].rest, s.link[link].load, s.link[link].users = rest, load, users
    left_open = 0
    for i in range(flows):
        slot = s.flows[i]
        s.flow[slot].to = -1
        if s.flow[slot].hard == 0:
            link = s.route[s.message[s.flow[slot].message].route].narrow
            s.flow[slot].to, s.flow[slot].goal = link, s.link[link].capacity / s.flow[slot].weight
        else:
            left_open += 1
    links, level = touched, 0.0
    while left_open > 0:
        lowest, kept = np.inf, 0
        for i in range(links):  # forget links without open flows
            link = s.opened[i]
            if s.link[link].users > 0:
                s.opened[kept] = link
                kept += 1
                lowest = min(lowest, (s.link[link].capacity - s.link[link].rest) / s.link[link].load)
        links = kept
        level = max(level, lowest)  # it never falls but by rounding
        same = level * _ABOVE
        for i in range(links):
            link = s.opened[i]
            if s.link[link].users > 0 and s.link[link].capacity - s.link[link].rest <= same * s.link[link].load:
                entry = s.link[link].head
                while entry >= 0:
                    slot = entry // hops
                    if s.flow[slot].mark == epoch and s.flow[slot].to < 0:
                        left_open -= 1
                        weight = s.flow[slot].weight
                        s.flow[slot].to, s.flow[slot].goal = link, level
                        for h in range(s.flow[slot].count):
                            other = s.way[slot * hops + h]
                            if s.link[other].hard:
                                s.link[other].rest += level * weight
                                s.link[other].load -= weight
                                s.link[other].users -= 1
                    entry = s.near[entry, 0]


@inlined
def _raise_limits(s, hops, flows):  # type: ignore[no-untyped-def]
    """Let flows reserve what they want; return whether links become hard by that."""
    harder = False
    for i in range(flows):
        slot = s.flows[i]
        goal, weight = s.flow[slot].goal, s.flow[slot].weight
        if goal <= s.flow[slot].limit:
            continue
        narrow = s.route[s.message[s.flow[slot].message].route].narrow
        most = s.link[narrow].capacity / weight
        limit = min(2 * goal, most)
        if goal > most * _ABOVE:
            if not s.link[narrow].hard:
                _harden(s, narrow, hops, True)
                harder = True
        elif not _fits(s, slot, hops, (limit - s.flow[slot].limit) * weight):
            limit = min(goal, most)
        if limit <= s.flow[slot].limit:
            continue
        _reserve(s, slot, hops, limit)
        for h in range(s.flow[slot].count):
            link = s.way[slot * hops + h]
            if not s.link[link].hard and s.link[link].reserved > s.link[link].capacity * _ABOVE:
                _harden(s, link, hops, True)
                harder = True
    return harder


@inlined
def _displace(s, hops, links, flows):  # type: ignore[no-untyped-def]
    """Let groups with a higher level than a full link that their flows cross be filled anew; return how many are."""
    epoch = s.numbers[EPOCH]
    for i in range(flows):
        s.link[s.flow[s.flows[i]].to].users = 0
    for i in range(flows):
        to, goal = s.flow[s.flows[i]].to, s.flow[s.flows[i]].goal
        if s.link[to].users < 0:  # looked at
            continue
        s.link[to].users = -1
        entry = s.link[to].head
        while entry >= 0:
            slot = entry // hops
            if s.flow[slot].mark != epoch and s.link[s.flow[slot].link].level > goal * _ABOVE:
                links = _affect(s, s.flow[slot].link, links)
            entry = s.near[entry, 0]
    return links


@inlined
def _leave_all(s, flows):  # type: ignore[no-untyped-def]
    """Take the affected flows that get another bottleneck off their groups; `finish` becomes what they have left."""
    for i in range(flows):
        slot = s.flows[i]
        link = s.flow[slot].link
        if link >= 0 and link != s.flow[slot].to:
            s.flow[slot].finish -= s.link[link].clock
            s.flow[slot].link = -1
            s.link[link].group -= 1
            s.link[link].held -= s.flow[slot].held > 0


@inlined
def _let_go_when(s, slot):  # type: ignore[no-untyped-def]
    """Say when a flow that keeps its host leaves it."""
    route, weight = s.message[s.flow[slot].message].route, s.flow[slot].weight
    link, rate = s.flow[slot].link, s.flow[slot].goal * weight
    left = (s.flow[slot].finish - s.link[link].clock) * weight
    s.flow[slot].held = max(s.host[s.route[route].host].buffer + rate * s.route[route].inside, LEAST_BYTES)
    put(s, s.numbers[BASE] + slot, s.clock[0] + max(left - s.flow[slot].held, 0.0) / rate)


@inner
def solve(s, hops):  # type: ignore[no-untyped-def]
    """Fill the dirty groups, the fresh flows and all groups that depend on them anew."""
    s.numbers[EPOCH] += 1
    epoch = s.numbers[EPOCH]
    links, flows, touched = 0, 0, 0
    for i in range(s.numbers[DIRTY]):
        links = _affect(s, s.dirty[i], links)
    for i in range(s.numbers[FRESH]):
        s.flow[s.fresh[i]].mark = epoch
        s.flows[flows] = s.fresh[i]
        flows += 1
    s.numbers[DIRTY] = s.numbers[FRESH] = 0
    while True:
        links, flows, touched = _spread(s, hops, links, flows, touched)
        _fill(s, hops, flows, touched)
        harder = _raise_limits(s, hops, flows)
        if harder:
            continue
        more = _displace(s, hops, links, flows)
        if more == links:
            break
        links = more
    for i in range(links):
        advance_clock(s, s.links[i])
    _leave_all(s, flows)
    for i in range(flows):
        slot = s.flows[i]
        if s.flow[slot].link < 0:
            _enter(s, slot, s.flow[slot].to)
        s.link[s.flow[slot].to].level = s.flow[slot].goal
        if s.flow[slot].limit > 4 * s.flow[slot].goal:
            _reserve(s, slot, hops, 2 * s.flow[slot].goal)
    for i in range(links):
        if s.link[s.links[i]].group == 0:
            drop(s, link_item(s, s.links[i]))
    for i in range(flows):
        slot = s.flows[i]
        if s.flow[slot].held > 0:
            _let_go_when(s, slot)
        link = s.flow[slot].link
        if s.link[link].users < 0:  # once for each group
            s.link[link].users = 0
            renew_event(s, link, hops)
        for h in range(s.flow[slot].count):
            _look(s, s.way[slot * hops + h], hops)
    for i in range(links):
        _look(s, s.links[i], hops)
    for i in range(touched):
        _look(s, s.touched[i], hops)
