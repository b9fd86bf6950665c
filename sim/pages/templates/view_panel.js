// What the panel beside the picture says: a router with its ports, virtual channels and caches; a packet's stop.
(function () {
  "use strict";
  var V = HopforgeView;

  function element(name, text, attributes) {
    var found = document.createElement(name);
    if (text !== undefined && text !== null) { found.textContent = text; }
    Object.keys(attributes || {}).forEach(function (key) { found.setAttribute(key, attributes[key]); });
    return found;
  }
  V.element = element;

  V.say = function (value, unit) {
    if (value === null || value === undefined) { return "–"; }
    var digits = unit === "%" ? (value > 99 && value < 100 ? 3 : 1) : 3, size = Math.abs(value), few = unit === "%" ? 1 : 0.1;
    var said = size >= 1000 ? Math.round(value) : size < few ? value.toPrecision(3) : value.toFixed(digits);
    return Number(said).toString() + (unit === "%" ? " %" : "");
  };

  // a measure with its unit
  V.named = function (measure) { return measure.name + (measure.unit && measure.unit !== "%" ? ", " + measure.unit : ""); };

  function table(heads, rows) {
    var box = element("div", null, { class: "scroll" }), found = element("table"), head = element("tr");
    heads.forEach(function (name) { head.appendChild(element("th", name, { scope: "col" })); });
    found.appendChild(element("thead")).appendChild(head);
    var body = found.appendChild(element("tbody"));
    rows.forEach(function (cells) {
      var row = body.appendChild(element("tr"));
      cells.forEach(function (cell) { row.appendChild(element("td", cell, typeof cell === "number" || /^[\d–.]/.test(cell) ? { class: "number" } : {})); });
    });
    box.appendChild(found);
    var whole = element("div");
    whole.appendChild(box); whole.appendChild(element("p", null, { class: "hint" }));
    return whole;
  }

  // rows of a table of the result that belong to a router
  function rowsOf(net, name, router) {
    var packed = net.data.tables[name];
    if (!packed) { return []; }
    net.unpacked = net.unpacked || {};
    if (!net.unpacked[name]) {
      net.unpacked[name] = {};
      Object.keys(packed).forEach(function (column) { net.unpacked[name][column] = V.numbers(packed[column]); });
    }
    var columns = net.unpacked[name], routers = columns.router, low = 0, high = routers.length, found = [];
    while (low < high) { var middle = (low + high) >> 1; if (routers[middle] < router) { low = middle + 1; } else { high = middle; } }
    for (var k = low; k < routers.length && routers[k] === router; k++) {
      var row = {};
      Object.keys(columns).forEach(function (column) { row[column] = columns[column][k]; });
      found.push(row);
    }
    return found;
  }

  // value of a channel in words
  function carried(state, c) {
    return state.down.links.has(c) ? "down" : V.say(V.value(state.links, state.frame, c), state.links.unit);
  }

  function ports(net, state, router) {
    var rows = new Map();
    for (var h = 0; h < net.hostRouter.length; h++) {
      if (net.hostRouter[h] === router) { rows.set(net.hostPort[h], [net.hostPort[h], "host " + h].concat(state.links ? ["–", "–"] : [])); }
    }
    for (var c = net.first[router]; c < net.first[router + 1]; c++) {
      var back = V.channelAt(net, net.to[c], net.far[c]);
      var row = [net.port[c], "router " + net.to[c] + (state.down.links.has(c) ? " (down)" : "")];
      rows.set(net.port[c], row.concat(state.links ? [carried(state, c), back < 0 ? "–" : carried(state, back)] : []));
    }
    return Array.from(rows.keys()).sort(function (a, b) { return a - b; }).map(function (port) { return rows.get(port); });
  }

  V.showRouter = function (panel, net, state, router) {
    panel.replaceChildren(element("h4", "Router " + router + (state.down.routers.has(router) ? " (failed)" : "")));
    var facts = net.data.measures.filter(function (one) { return one.of === "routers"; }).map(function (one) {
      return one.name + " " + V.say(V.value(one, state.frame, router), one.unit) + (one.unit && one.unit !== "%" ? " " + one.unit : "");
    });
    if (facts.length) { panel.appendChild(element("p", facts.join(", "))); }
    var name = state.links ? state.links.name : "";
    panel.appendChild(element("h5", name ? "Ports (links: " + V.named(state.links) + ")" : "Ports"));
    panel.appendChild(table(["port", "leads to"].concat(name ? [name + " out", name + " in"] : []), ports(net, state, router)));
    var buffers = rowsOf(net, "buffers", router);
    if (buffers.length) {
      panel.appendChild(element("h5", "Input buffers: flits in each virtual channel"));
      panel.appendChild(table(["port", "VC", "mean", "most", "of"], buffers.map(function (row) {
        return [row.port, row.vc, V.say(row.flits, ""), row.flits_max, row.places];
      })));
    }
    var engines = rowsOf(net, "engines", router);
    if (engines.length) {
      panel.appendChild(element("h5", "Routing caches"));
      panel.appendChild(table(["port", "lookups", "hit rate", "first", "capacity", "conflict"], engines.map(function (row) {
        return [row.port, row.lookups, row.lookups ? V.say(100 * row.hits / row.lookups, "%") : "–", row.compulsory, row.capacity, row.conflict];
      })));
    }
  };

  // way of a pair of routers by the tables of a path number: its channels and routers; it may end early
  V.pairWay = function (net, path, source, target) {
    var packed = net.data.ways[path], channels = [], routers = [source];
    packed.all = packed.all || V.numbers(packed);
    for (var at = source; at !== target && channels.length < net.data.routers;) {
      var rank = packed.all[at * net.data.routers + target];
      if (rank === packed.none) { break; }
      channels.push(net.first[at] + rank);
      at = net.to[net.first[at] + rank];
      routers.push(at);
    }
    return { channels: channels, routers: routers, source: source, target: target };
  };

  V.showWay = function (panel, net, state, way, step) {
    var hops = way.channels.length, arrives = way.routers[hops] === way.target;
    panel.replaceChildren(element("h4", "From router " + way.source + " to router " + way.target + (arrives ? "" : ": no way")));
    if (!arrives) { panel.appendChild(element("p", way.routers.length > net.data.routers ? "The tables send it in a circle." : "The tables end on the way, at router " + way.routers[hops] + ".")); return; }
    panel.appendChild(element("p", hops + (hops === 1 ? " hop" : " hops") + "; stop " + step + " of " + hops + ": router " + way.routers[step] + "."));
    var heads = ["stop", "router", "out by port"].concat(state.links ? [state.links.name] : []);
    var whole = table(heads, way.routers.map(function (router, k) {
      var c = way.channels[k], last = k === hops;
      return [k, router, last ? "–" : net.port[c]].concat(state.links ? [last ? "–" : carried(state, c)] : []);
    }));
    whole.querySelectorAll("tbody tr")[step].classList.add("now");
    panel.appendChild(whole);
  };

  var BEFORE = { "source queue": "in the ", "buffer": "in the ", "output queue": "in the ", "route computation": "waits for ", "VC allocation": "waits for ", "switch allocation": "waits for " };

  V.showStop = function (panel, way, step) {
    var stop = way.stops[step], last = way.stops.length - 1;
    var whole = way.cycles === null ? "it has not arrived" : "the whole way took " + way.cycles;
    var where = stop.router >= 0 ? "router " + stop.router + ", in by port " + stop.port + " VC " + stop.vc +
      (stop.out_port < 0 ? "" : ", out by port " + stop.out_port + " VC " + stop.out_vc) : step === 0 ? "source, host " + way.host : "destination";
    panel.replaceChildren(element("h4", "Packet " + way.name + ", stop " + step + " of " + last + ": " + where));
    panel.appendChild(element("p", "Cycles " + stop.start + " to " + stop.end + "; " + whole + "."));
    var bars = element("div", null, { class: "phases" }), length = Math.max(1, stop.phases.reduce(function (sum, one) { return sum + one[2]; }, 0));
    stop.phases.forEach(function (phase) {
      var row = element("div", null, { class: "phase" }), bar = element("i");
      bar.style.width = Math.max(2, 100 * phase[2] / length) + "%";
      bar.style.background = phase[3];
      row.appendChild(element("span", (BEFORE[phase[0]] || "") + phase[0]));
      row.appendChild(element("b", phase[2] + (phase[2] === 1 ? " cycle" : " cycles")));
      row.appendChild(element("div", null, { class: "track" })).appendChild(bar);
      bars.appendChild(row);
    });
    panel.appendChild(bars);
  };
})();
