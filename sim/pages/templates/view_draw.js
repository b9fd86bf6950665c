// Draws a network on a canvas: routers, links as lanes that keep right, colours from low to high.
var HopforgeView = window.HopforgeView || {};
(function () {
  "use strict";
  var LEVELS = 32;  // colours of the scale that are told apart
  var COVERED = 0.2;  // part of the picture that links may cover before they are drawn thinner

  function numbers(packed) {
    var text = atob(packed.data), bytes = new Uint8Array(text.length);
    for (var k = 0; k < text.length; k++) { bytes[k] = text.charCodeAt(k); }
    var kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };
    return new kinds[packed.type](bytes.buffer);
  }
  HopforgeView.numbers = numbers;

  function mixed(stops) {
    var found = [];
    for (var k = 0; k < LEVELS; k++) {
      var at = k / (LEVELS - 1) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2), part = at - low;
      var rgb = [1, 3, 5].map(function (i) {
        var a = parseInt(stops[low].slice(i, i + 2), 16), b = parseInt(stops[low + 1].slice(i, i + 2), 16);
        return Math.round(a + (b - a) * part);
      });
      found.push("rgb(" + rgb.join(",") + ")");
    }
    return found;
  }

  // the network with its arrays unpacked, what each router's channels are, and lanes of parallel links
  HopforgeView.network = function (data) {
    var net = { data: data, colours: mixed(data.scale) };
    ["x", "y", "group", "from", "port", "to", "far", "hostRouter", "hostPort"].forEach(function (name) { net[name] = numbers(data[name]); });
    data.measures.forEach(function (measure) {
      if (!measure.all) { measure.all = numbers(measure.values); measure.size = measure.all.length / measure.frames; }
    });
    net.first = new Uint32Array(data.routers + 1);
    for (var c = 0; c < net.from.length; c++) { net.first[net.from[c] + 1]++; }
    for (var r = 0; r < data.routers; r++) { net.first[r + 1] += net.first[r]; }
    net.lane = new Uint8Array(net.from.length);
    for (r = 0; r < data.routers; r++) {
      var seen = new Map();
      for (c = net.first[r]; c < net.first[r + 1]; c++) {
        var before = seen.get(net.to[c]) || 0;
        net.lane[c] = Math.min(before, 255);
        seen.set(net.to[c], before + 1);
      }
    }
    var least = [Infinity, Infinity], most = [-Infinity, -Infinity];
    for (r = 0; r < data.routers; r++) {
      least = [Math.min(least[0], net.x[r]), Math.min(least[1], net.y[r])];
      most = [Math.max(most[0], net.x[r]), Math.max(most[1], net.y[r])];
    }
    net.low = least; net.high = most;
    net.bows = HopforgeView.bows(net);
    net.area = Math.max(most[0] - least[0], data.spacing) * Math.max(most[1] - least[1], data.spacing);
    net.centre = [(least[0] + most[0]) / 2, (least[1] + most[1]) / 2];
    net.incoming = null;
    return net;
  };

  // how far lanes of links reach beyond the routers, to the sides and up or down
  HopforgeView.bows = function (net) {
    var beyond = [0, 0];
    for (var c = 0; c < net.from.length; c++) {
      var a = net.from[c], b = net.to[c], bend = net.data.bend * (1 + 0.8 * net.lane[c]);
      if (net.group[a] !== net.group[b]) { continue; }  // through the middle
      var x = (net.x[a] + net.x[b]) / 2 + (net.y[b] - net.y[a]) * bend, y = (net.y[a] + net.y[b]) / 2 - (net.x[b] - net.x[a]) * bend;
      beyond[0] = Math.max(beyond[0], net.low[0] - x, x - net.high[0]);
      beyond[1] = Math.max(beyond[1], net.low[1] - y, y - net.high[1]);
    }
    return beyond;
  };

  HopforgeView.channelAt = function (net, router, port) {
    for (var c = net.first[router]; c < net.first[router + 1]; c++) { if (net.port[c] === port) { return c; } }
    return -1;
  };

  // value of a link or router now: a number, or null
  HopforgeView.value = function (measure, frame, index) {
    if (!measure) { return null; }
    var raw = measure.all[Math.min(frame, measure.frames - 1) * measure.size + index];
    if (raw > measure.top) { return null; }
    var value = measure.low + raw / measure.top * (measure.high - measure.low);
    if (!measure.whole) { return value; }
    var step = Math.pow(10, Math.max(0, Math.ceil(Math.log10((measure.high - measure.low) / measure.top))));
    return Math.round(value / step) * step;  // a number that is known no better than to this power of ten
  };

  function level(measure, frame, index) {
    var raw = measure.all[Math.min(frame, measure.frames - 1) * measure.size + index];
    return raw > measure.top ? -1 : Math.min(LEVELS - 1, Math.floor(raw / measure.top * LEVELS));
  }
  HopforgeView.level = level;

  // what fits the canvas: scale, and where the corner of the network comes to lie
  HopforgeView.fit = function (net, width, height) {
    var room = net.bows.map(function (bow) { return Math.max(0.9, bow / net.data.spacing + 0.2) * net.data.spacing + 1e-9; });
    var wide = Math.max(net.high[0] - net.low[0], 1e-9) + 2 * room[0], tall = Math.max(net.high[1] - net.low[1], 1e-9) + 2 * room[1];
    var scale = Math.min(width / wide, height / tall, 120 / net.data.spacing);
    return { scale: scale, x: width / 2 - net.centre[0] * scale, y: height / 2 + net.centre[1] * scale };
  };

  // how long all links are together, and whether they are so short that they hardly cross
  function lengths(net) {
    if (!net.lengths) {
      var length = 0;
      for (var c = 0; c < net.from.length; c++) {
        length += Math.hypot(net.x[net.from[c]] - net.x[net.to[c]], net.y[net.from[c]] - net.y[net.to[c]]);
      }
      net.lengths = { all: length, near: length < 4 * net.data.spacing * net.from.length };
    }
    return net.lengths;
  }

  // share of the links, the busiest, that leaves room between them
  HopforgeView.legible = function (net, width, height) {
    var ink = lengths(net).all * HopforgeView.fit(net, width, height).scale / (width * height);
    return ink <= 0.5 || lengths(net).near ? 100 : Math.max(0.02, 100 * 0.28 / ink);
  };

  // width of a link, thinner where links would cover more than a part of the picture, and how solid quiet links are
  HopforgeView.strokes = function (net, scale, drawn) {
    var width = Math.max(0.6, Math.min(3.2, net.data.spacing * scale * 0.045)), solid = Math.min(1, 30000 / Math.max(drawn, 1));
    if (lengths(net).near || !drawn) { return { width: width, solid: Math.max(0.25, solid) }; }
    var length = lengths(net).all * drawn / net.from.length / scale;  // beside the square of the scale
    var thin = Math.max(0.7, Math.min(width, COVERED * net.area / length));
    return { width: Math.min(width, thin), solid: Math.max(0.25, Math.min(solid, COVERED * net.area / (length * thin))) };
  };

  // lines of channel c from its router to the other one, as a path; straight where nobody would see more
  function trace(net, view, path, c) {
    var a = net.from[c], b = net.to[c];
    var ax = net.x[a] * view.scale + view.x, ay = view.y - net.y[a] * view.scale;
    var bx = net.x[b] * view.scale + view.x, by = view.y - net.y[b] * view.scale;
    if ((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax > view.width && bx > view.width) || (ay > view.height && by > view.height)) { return; }
    var dx = bx - ax, dy = by - ay, length = Math.abs(dx) + Math.abs(dy);
    path.moveTo(ax, ay);
    if (length < 9) { path.lineTo(bx, by); return; }
    var bend = net.data.bend * (1 + 0.8 * net.lane[c]), mx = (ax + bx) / 2, my = (ay + by) / 2;
    var lane = Math.min(3 + 3 * net.lane[c], 0.2 * net.data.spacing * view.scale) / Math.hypot(dx, dy);
    if (net.group[a] !== net.group[b]) {  // through the middle
      var cx = net.centre[0] * view.scale + view.x, cy = view.y - net.centre[1] * view.scale;
      mx += (cx - mx) * 0.5; my += (cy - my) * 0.5;
      bend = 0.02;
    }
    bend = 2 * Math.max(bend, lane);
    path.quadraticCurveTo(mx - dy * bend, my + dx * bend, bx, by);
  }

  function stroke(context, path, colour, width, alpha) {
    context.globalAlpha = alpha; context.strokeStyle = colour; context.lineWidth = width;
    context.stroke(path);
  }

  // channels that are drawn, by colour: the busiest share of them
  HopforgeView.buckets = function (net, measure, frame, share, down) {
    var count = net.from.length, levels = new Int8Array(count), sizes = new Uint32Array(LEVELS + 2), c;
    for (c = 0; c < count; c++) {
      levels[c] = down.links.has(c) ? -2 : measure ? level(measure, frame, c) : -1;
      if (levels[c] > -2) { sizes[levels[c] + 1]++; }
    }
    var left = Math.ceil(count * share / 100), keep = new Uint32Array(LEVELS + 2);
    for (var k = LEVELS; k >= 0; k--) { keep[k] = Math.min(sizes[k], left); left -= keep[k]; }
    var seen = new Uint32Array(LEVELS + 2), buckets = [];
    for (k = 0; k <= LEVELS; k++) { buckets.push([]); }
    for (c = 0; c < count; c++) {
      k = levels[c] + 1;
      if (k < 0) { continue; }
      // of a colour of which only some are drawn: those at even distances
      var place = seen[k]++;
      if (keep[k] === sizes[k] || Math.floor(place * keep[k] / sizes[k]) !== Math.floor((place + 1) * keep[k] / sizes[k])) { buckets[k].push(c); }
    }
    return buckets;
  };

  HopforgeView.radius = function (net, view) {
    return Math.max(0.8, Math.min(0.24 * net.data.spacing * view.scale, 15));
  };

  // the whole picture; state: view, buckets, routers (measure), frame, down, chosen, way, ink
  HopforgeView.draw = function (context, net, state) {
    var view = state.view, faded = state.chosen >= 0 || state.way ? 0.3 : 1;
    var drawn = state.buckets.reduce(function (sum, one) { return sum + one.length; }, 0);
    var strokes = HopforgeView.strokes(net, view.scale, drawn), width = strokes.width, crowded = strokes.solid;
    context.clearRect(0, 0, view.width, view.height);
    context.lineCap = "round";
    state.buckets.forEach(function (channels, k) {
      if (!channels.length) { return; }
      var path = new Path2D();
      for (var i = 0; i < channels.length; i++) { trace(net, view, path, channels[i]); }
      var share = k / LEVELS;
      stroke(context, path, k ? net.colours[k - 1] : net.data.nothing, width * (1 + 0.8 * share), faded * (crowded + (1 - crowded) * share));
    });
    context.setLineDash([3, 4]);
    var broken = new Path2D();
    state.down.links.forEach(function (c) { trace(net, view, broken, c); });
    stroke(context, broken, state.ink, width + 0.4, 0.9);
    context.setLineDash([]);
    if (state.chosen >= 0) { drawChosen(context, net, state, width); }
    if (state.way) { drawWay(context, net, state, width); }
    drawRouters(context, net, state);
  };

  function drawChosen(context, net, state, width) {
    for (var c = net.first[state.chosen]; c < net.first[state.chosen + 1]; c++) {
      var path = new Path2D(), k = state.links ? level(state.links, state.frame, c) : -1;
      trace(net, state.view, path, c);
      stroke(context, path, k < 0 ? net.data.nothing : net.colours[k], width + 1.6, 1);
    }
  }

  function drawWay(context, net, state, width) {
    state.way.channels.forEach(function (c, step) {
      var path = new Path2D();
      trace(net, state.view, path, c);
      stroke(context, path, state.ink, width + (step < state.way.step ? 2.2 : 1), step < state.way.step ? 1 : 0.45);
    });
  }

  function drawRouters(context, net, state) {
    var view = state.view, radius = HopforgeView.radius(net, view), groups = new Map(), measure = state.routers;
    for (var r = 0; r < net.data.routers; r++) {
      var x = net.x[r] * view.scale + view.x, y = view.y - net.y[r] * view.scale;
      if (x < -radius || y < -radius || x > view.width + radius || y > view.height + radius) { continue; }
      var k = measure ? level(measure, state.frame, r) : -1;
      var colour = state.down.routers.has(r) ? "down" : k < 0 ? net.data.nothing : net.colours[k];
      if (!groups.has(colour)) { groups.set(colour, []); }
      groups.get(colour).push(x, y);
    }
    context.globalAlpha = 1;
    groups.forEach(function (points, colour) {
      context.beginPath();
      for (var i = 0; i < points.length; i += 2) {
        if (radius < 2) { context.rect(points[i] - radius, points[i + 1] - radius, 2 * radius, 2 * radius); continue; }
        context.moveTo(points[i] + radius, points[i + 1]);
        context.arc(points[i], points[i + 1], radius, 0, 2 * Math.PI);
      }
      context.fillStyle = colour === "down" ? state.paper : colour;
      context.fill();
      if (radius >= 3 || colour === "down") {
        context.lineWidth = colour === "down" ? 2 : 1;
        context.setLineDash(colour === "down" ? [3, 3] : []);
        context.strokeStyle = colour === "down" ? state.ink : state.paper;
        context.stroke();
        context.setLineDash([]);
      }
    });
    mark(context, net, state, state.chosen, radius + 4);
    if (state.way && state.way.router >= 0) { mark(context, net, state, state.way.router, radius + 7); }
    if (radius >= 9) { label(context, net, state, radius); }
  }

  function mark(context, net, state, router, radius) {
    if (router < 0) { return; }
    context.beginPath();
    context.arc(net.x[router] * state.view.scale + state.view.x, state.view.y - net.y[router] * state.view.scale, radius, 0, 2 * Math.PI);
    context.lineWidth = 2.5; context.strokeStyle = state.ink; context.stroke();
  }

  function label(context, net, state, radius) {
    context.font = Math.min(radius * 0.85, 12) + "px system-ui, sans-serif";
    context.textAlign = "center"; context.textBaseline = "middle";
    for (var r = 0; r < net.data.routers; r++) {
      var x = net.x[r] * state.view.scale + state.view.x, y = state.view.y - net.y[r] * state.view.scale;
      if (x < 0 || y < 0 || x > state.view.width || y > state.view.height) { continue; }
      context.fillStyle = state.down.routers.has(r) ? state.ink : "#10151a";
      var k = state.routers ? level(state.routers, state.frame, r) : -1;
      if (k > 0.72 * LEVELS && !state.down.routers.has(r)) { context.fillStyle = "#ffffff"; }
      context.fillText(String(r), x, y);
    }
  }

  // router under a point of the canvas, or -1
  HopforgeView.nearest = function (net, view, x, y) {
    var best = -1, least = Math.max(HopforgeView.radius(net, view) + 6, 14);
    for (var r = 0; r < net.data.routers; r++) {
      var away = Math.hypot(net.x[r] * view.scale + view.x - x, view.y - net.y[r] * view.scale - y);
      if (away < least) { least = away; best = r; }
    }
    return best;
  };

  // next router in a direction, or -1
  HopforgeView.beside = function (net, router, dx, dy) {
    var best = -1, least = Infinity;
    for (var r = 0; r < net.data.routers; r++) {
      var x = net.x[r] - net.x[router], y = net.y[r] - net.y[router], along = x * dx + y * dy, across = Math.abs(x * dy - y * dx);
      if (along <= 1e-9 || across > 2 * along) { continue; }
      if (along + 2 * across < least) { least = along + 2 * across; best = r; }
    }
    return best;
  };
})();
