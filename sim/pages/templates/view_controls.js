// The viewer: canvas, controls, keyboard and fingers of every network of the page.
(function () {
  "use strict";
  var V = HopforgeView, root = document.documentElement, element = V.element;
  var holder = document.getElementById("networks");
  if (!holder) { return; }

  function css(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }

  function labelled(box, text, control) {
    var label = box.appendChild(element("label"));
    label.appendChild(element("span", text));
    label.appendChild(control);
    return control;
  }

  function choice(names) {
    var found = element("select");
    names.forEach(function (name, value) { found.appendChild(element("option", name, { value: String(value) })); });
    return found;
  }

  function slider(most, value, name) {
    return element("input", null, { type: "range", min: "0", max: String(most), value: String(value), step: "1", "aria-label": name });
  }

  function Viewer(box, data) {
    var net = V.network(data), begun = performance.now();
    var time = data.time, frames = Math.max(time.moments.length, 1);
    var canvas = box.querySelector("canvas"), context = canvas.getContext("2d"), panel = box.querySelector(".panel"), tellMore = HopforgeTables.watch(panel, null);
    var top = box.querySelector(".controls"), told = box.querySelector(".told"), legend = box.querySelector(".legend");
    var links = data.measures.filter(function (one) { return one.of === "links"; });
    var routers = data.measures.filter(function (one) { return one.of === "routers"; });
    var state = { chosen: -1, frame: 0, links: links[0] || null, routers: routers[0] || null, down: null, way: null, view: null, share: 100 };
    var controls = {}, cache = null, pending = 0, later = 0, playing = 0, crowded = net.from.length > 30000;

    function whatIsDown() {
      var now = time.until.length ? time.until[state.frame] : time.moments[state.frame] || 0, found = { links: new Set(), routers: new Set(), words: [] };
      time.down.forEach(function (part) {
        if (part.from > now || (part.from === now && time.until.length) || (part.to !== null && part.to <= (time.until.length ? time.moments[state.frame] : now))) { return; }
        part.links.forEach(function (c) { found.links.add(c); });
        part.routers.forEach(function (r) { found.routers.add(r); });
        found.words.push(part.words);
      });
      return found;
    }

    function sort() {
      state.down = whatIsDown();
      state.buckets = V.buckets(net, state.links, state.frame, state.share, state.down);
    }

    function size() {
      var width = canvas.clientWidth, height = canvas.clientHeight, ratio = Math.min(window.devicePixelRatio || 1, crowded ? 1.5 : 2);
      if (!width || !height) { return false; }
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      var fitted = V.fit(net, width, height);
      if (!state.view || state.fitted) { state.view = fitted; state.fitted = true; }
      state.view.width = width; state.view.height = height;
      return true;
    }

    function paint() {
      pending = 0;
      if (!state.view && !size()) { return; }
      state.ink = css("--ink"); state.paper = css("--page");
      V.draw(context, net, state);
      if (crowded) {
        cache = cache || document.createElement("canvas");
        cache.width = canvas.width; cache.height = canvas.height;
        cache.getContext("2d").drawImage(canvas, 0, 0);
        cache.view = Object.assign({}, state.view);
      }
      if (!box.dataset.drawn) { box.dataset.drawn = String(Math.round(performance.now() - begun)); }
    }

    // while a crowded picture moves, the last one is shifted; the next one is drawn when it rests
    function repaint(moving) {
      if (moving && crowded && cache) {
        var old = cache.view, grow = state.view.scale / old.scale;
        context.clearRect(0, 0, state.view.width, state.view.height);
        context.drawImage(cache, state.view.x - old.x * grow, state.view.y - old.y * grow, state.view.width * grow, state.view.height * grow);
        clearTimeout(later);
        later = setTimeout(function () { repaint(false); }, 160);
        return;
      }
      if (!pending) { pending = requestAnimationFrame(paint); }
    }

    function tell() {
      var words = [];
      if (time.moments.length) {
        words.push((time.until.length ? "until " + V.say(time.until[state.frame], "") : "from " + V.say(time.moments[state.frame], "")) + " " + time.unit + (time.until.length ? "" : " on"));
        words.push(state.down.words.length ? state.down.words.join("; ") : time.down.length ? "nothing is down" : "");
        time.tables.forEach(function (row) {
          // a bin of a series is (its begin, its end]; a moment of `net` lasts until the next one
          var begin = time.moments[state.frame], binned = time.until.length > 0;
          var end = binned ? time.until[state.frame] : state.frame + 1 < time.moments.length ? time.moments[state.frame + 1] : Infinity;
          var stops = row[1] >= 0 ? row[1] : row[0];
          if ((binned ? stops <= end : stops < end) && (row[3] < 0 || (binned ? row[3] > begin : row[3] >= begin))) {
            words.push("hosts stopped at " + V.say(row[1], "") + (row[3] < 0 ? ", no new tables before the end" : ", new tables at " + V.say(row[3], "")));
          }
        });
      }
      if (state.share < 100) { words.push("the busiest " + Number(state.share.toPrecision(2)) + " % of " + net.from.length + " channels are drawn"); }
      told.textContent = words.filter(Boolean).join("; ");
    }

    function update() { sort(); tell(); showLegend(); showPanel(); repaint(false); }

    function showLegend() {
      legend.replaceChildren();
      [["links", state.links], ["routers", state.routers]].forEach(function (pair) {
        var measure = pair[1];
        if (!measure) { return; }
        var one = legend.appendChild(element("div"));
        one.appendChild(element("span", pair[0] + ": " + V.named(measure)));
        var scale = one.appendChild(element("div", null, { class: "scale" }));
        scale.appendChild(element("span", V.say(measure.low, measure.unit)));
        var bar = scale.appendChild(element("i"));
        bar.style.background = "linear-gradient(to right, " + data.scale.join(",") + ")";
        scale.appendChild(element("span", V.say(measure.high, measure.unit)));
      });
    }

    function showPanel() {
      if (state.way) { state.way.show(state.way.step); }
      else if (state.chosen >= 0) { V.showRouter(panel, net, state, state.chosen); }
      else { panel.replaceChildren(element("p", "Click a router, or type its number: its ports, virtual channels and caches appear here.", { class: "soft" })); }
      panel.querySelectorAll(".scroll").forEach(function (box) { HopforgeTables.watch(box, box.nextElementSibling); });
      tellMore();
    }

    function choose(router) {
      state.chosen = router;
      if (controls.router) { controls.router.value = router < 0 ? "" : String(router); }
      if (controls.packet) { controls.packet.value = "0"; }
      if (controls.source) { controls.source.value = controls.target.value = ""; }
      if (controls.step) { follow(null); return; }
      showPanel(); repaint(false);
    }

    // a way: channels, the router of each stop, and what the panel shows of a stop
    function follow(way) {
      state.way = way;
      controls.step.disabled = !way;
      if (!way) { showPanel(); repaint(false); return; }
      state.chosen = -1;
      if (controls.router) { controls.router.value = ""; }
      controls.step.max = String(way.routers.length - 1);
      setStep(0);
    }

    function packetWay(number) {
      var packet = data.packets[number], stops = packet.stops, channels = [];
      stops.forEach(function (stop) {
        var c = stop.router >= 0 && stop.router < data.routers && stop.out_port >= 0 ? V.channelAt(net, stop.router, stop.out_port) : -1;
        if (c >= 0) { channels.push(c); }
      });
      var routers = stops.map(function (stop, step) {
        var near = step === 0 ? stops[1] : stop.router < 0 ? stops[step - 1] : stop;
        return near ? near.router : -1;
      });
      return { channels: channels, routers: routers, show: function (step) { V.showStop(panel, packet, step); } };
    }

    function pairWay() {
      var source = parseInt(controls.source.value, 10), target = parseInt(controls.target.value, 10);
      if (!(source >= 0 && source < data.routers && target >= 0 && target < data.routers)) { follow(null); return; }
      var way = V.pairWay(net, controls.path ? Number(controls.path.value) : 0, source, target);
      way.show = function (step) { V.showWay(panel, net, state, way, step); };
      follow(way);
      setStep(way.routers.length - 1);  // all of it at first
    }

    function setStep(step) {
      var way = state.way;
      way.step = Math.max(0, Math.min(step, way.routers.length - 1));
      way.router = way.routers[way.step];
      controls.step.value = String(way.step);
      showPanel(); repaint(false);
    }

    function endOfPair(name) {
      var found = labelled(top, name, element("input", null, { type: "number", min: "0", max: String(data.routers - 1), placeholder: "0–" + (data.routers - 1) }));
      found.addEventListener("change", pairWay);
      return found;
    }

    function stopSlider() {
      controls.step = labelled(top, "stop", slider(1, 0, "stop of the way"));
      controls.step.disabled = true;
      controls.step.addEventListener("input", function () { setStep(Number(controls.step.value)); });
    }

    function setFrame(frame) {
      state.frame = (frame + frames) % frames;
      controls.time.value = String(state.frame);
      update();
    }

    function zoom(by, x, y) {
      var view = state.view;
      if (!view) { return; }
      var least = V.fit(net, view.width, view.height).scale * 0.5, most = 160 / data.spacing;
      var scale = Math.max(least, Math.min(Math.max(most, least * 4), view.scale * by));
      by = scale / view.scale;
      x = x === undefined ? view.width / 2 : x; y = y === undefined ? view.height / 2 : y;
      view.x = x - (x - view.x) * by; view.y = y - (y - view.y) * by; view.scale = scale;
      state.fitted = false;
      repaint(true);
    }

    function pan(dx, dy) { state.view.x += dx; state.view.y += dy; state.fitted = false; repaint(true); }

    function whole() { state.fitted = true; size(); repaint(false); }

    function play() {
      controls.play.textContent = playing ? "▶" : "⏸";
      if (playing) { clearInterval(playing); playing = 0; return; }
      playing = setInterval(function () { setFrame(state.frame + 1); }, crowded ? 900 : 350);
    }

    function build() {
      if (links.length) {
        controls.links = labelled(top, "links", choice(links.map(function (one) { return one.name; }).concat("no values")));
        controls.links.addEventListener("change", function () { state.links = links[Number(controls.links.value)] || null; update(); });
      }
      if (routers.length) {
        controls.routers = labelled(top, "routers", choice(routers.map(function (one) { return one.name; }).concat("no values")));
        controls.routers.addEventListener("change", function () { state.routers = routers[Number(controls.routers.value)] || null; update(); });
      }
      controls.router = labelled(top, "router", element("input", null, { type: "number", min: "0", max: String(data.routers - 1), placeholder: "0–" + (data.routers - 1) }));
      controls.router.addEventListener("change", function () {
        var router = parseInt(controls.router.value, 10);
        choose(router >= 0 && router < data.routers ? router : -1);
      });
      if (links.length) {
        controls.share = labelled(top, "busiest links", slider(200, 200 * Math.cbrt(state.share / 100), "share of the links that is drawn, the busiest"));
        controls.share.min = "8";  // fine steps where few are drawn
        controls.share.addEventListener("input", function () { state.share = 100 * Math.pow(Number(controls.share.value) / 200, 3); update(); });
      }
      if (frames > 1) {
        var moving = top.appendChild(element("div", null, { class: "together" }));  // on one line on a small screen, too
        controls.play = moving.appendChild(element("button", "▶", { type: "button", "aria-label": "play" }));
        controls.play.addEventListener("click", play);
        controls.time = labelled(moving, "time", slider(frames - 1, 0, "time"));
        controls.time.classList.add("long");
        controls.time.addEventListener("input", function () { setFrame(Number(controls.time.value)); });
      }
      if (data.packets.length) {
        controls.packet = labelled(top, "packet", choice(["none"].concat(data.packets.map(function (one) { return one.name; }))));
        controls.packet.addEventListener("change", function () {
          var number = Number(controls.packet.value) - 1;
          follow(number < 0 ? null : packetWay(number));
        });
        stopSlider();
      }
      if (data.ways.length) {
        controls.source = endOfPair("way from");
        controls.target = endOfPair("to");
        if (data.ways.length > 1) {
          controls.path = labelled(top, "path", choice(data.ways.map(function (_, number) { return String(number); })));
          controls.path.addEventListener("change", pairWay);
        }
        stopSlider();
      }
      var zooming = top.appendChild(element("div", null, { class: "together" }));
      [["+", 1.4], ["−", 1 / 1.4]].forEach(function (one) {
        zooming.appendChild(element("button", one[0], { type: "button", "aria-label": one[1] > 1 ? "zoom in" : "zoom out" })).addEventListener("click", function () { zoom(one[1]); });
      });
      zooming.appendChild(element("button", "whole", { type: "button" })).addEventListener("click", whole);
    }

    V.touch(canvas, { pan: pan, zoom: zoom, click: function (x, y) { choose(V.nearest(net, state.view, x, y)); } });
    canvas.addEventListener("keydown", function (event) {
      var ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }, way = ways[event.key];
      if (way && event.shiftKey) { pan(-60 * way[0], 60 * way[1]); }
      else if (way && state.way) { setStep(state.way.step + (way[0] || way[1])); }
      else if (way) { var next = state.chosen < 0 ? 0 : V.beside(net, state.chosen, way[0], way[1]); if (next >= 0) { choose(next); } }
      else if (event.key === "+" || event.key === "=") { zoom(1.3); }
      else if (event.key === "-") { zoom(1 / 1.3); }
      else if (event.key === "0") { whole(); }
      else if (event.key === "]" && frames > 1) { setFrame(state.frame + 1); }
      else if (event.key === "[" && frames > 1) { setFrame(state.frame - 1); }
      else if (event.key === " " && frames > 1) { play(); }
      else if (event.key === "Escape") { choose(-1); }
      else { return; }
      event.preventDefault();
    });
    // small screens: the picture first, the controls folded below it
    var small = window.matchMedia("(max-width: 800px)"), fold = box.querySelector(".fold");
    function unfold() { fold.open = !small.matches; }
    unfold();
    small.addEventListener("change", unfold);
    window.addEventListener("resize", function () { if (size()) { repaint(false); } });
    window.addEventListener("hopforge-theme", function () { repaint(false); });
    if (size()) { state.share = V.legible(net, state.view.width, state.view.height); }
    if (!state.links) { state.share = 100; }
    build(); sort(); tell(); showLegend(); showPanel();
    paint();  // at once: nothing to wait for
    if (data.packets.length && !links.length) { controls.packet.value = "1"; follow(packetWay(0)); }
  }

  // fingers and mouse: drag to move, wheel or two fingers to zoom, a click without a move
  V.touch = function (canvas, act) {
    var fingers = new Map(), moved = 0;
    function place(event) { var box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; }
    canvas.addEventListener("pointerdown", function (event) {
      fingers.set(event.pointerId, place(event)); moved = fingers.size > 1 ? 99 : 0;
      if (canvas.setPointerCapture) { try { canvas.setPointerCapture(event.pointerId); } catch (e) { /* a pointer that is gone */ } }
    });
    canvas.addEventListener("pointermove", function (event) {
      var old = fingers.get(event.pointerId), now = place(event);
      if (!old) { return; }
      fingers.set(event.pointerId, now);
      if (fingers.size === 1) {
        moved += Math.hypot(now[0] - old[0], now[1] - old[1]);
        if (moved > 4) { act.pan(now[0] - old[0], now[1] - old[1]); }
      } else if (fingers.size === 2) {
        var other = Array.from(fingers.entries()).filter(function (one) { return one[0] !== event.pointerId; })[0][1];
        var before = Math.hypot(old[0] - other[0], old[1] - other[1]), after = Math.hypot(now[0] - other[0], now[1] - other[1]);
        if (before > 0) { act.zoom(after / before, (now[0] + other[0]) / 2, (now[1] + other[1]) / 2); }
      }
    });
    function up(event) {
      var at = fingers.get(event.pointerId);
      fingers.delete(event.pointerId);
      if (at && event.type === "pointerup" && moved <= 4) { act.click(at[0], at[1]); }
    }
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("wheel", function (event) {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) { return; }  // the page scrolls
      event.preventDefault();
      var at = place(event);
      act.zoom(Math.exp(-event.deltaY * 0.0016), at[0], at[1]);
    }, { passive: false });
  };

  var networks = JSON.parse(holder.textContent);
  document.querySelectorAll(".network").forEach(function (box) {
    var data = networks[Number(box.dataset.network)], begin = function () { if (!box.started) { box.started = true; new Viewer(box, data); } };
    window.addEventListener("beforeprint", begin);
    if (!("IntersectionObserver" in window)) { begin(); return; }
    if (box.getBoundingClientRect().top < window.innerHeight + 400) { begin(); return; }
    var watcher = new IntersectionObserver(function (entries) {
      if (entries.some(function (entry) { return entry.isIntersecting; })) { watcher.disconnect(); begin(); }
    }, { rootMargin: "600px" });
    watcher.observe(box);
  });
})();
