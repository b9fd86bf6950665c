// How plots stay readable: names that fit below an axis, bars that lie down, curves that cover each other.
var PlotShapes = (function () {
  "use strict";
  var MOST_HEIGHT = 2600;  // of bars that lie

  // names below an axis stand upright: only as many as have room beside each other
  function spaceNames(data, axis, narrow) {
    var names = axis.ticktext || Array.from(new Set([].concat.apply([], data.map(function (trace) {
      return trace.orientation === "h" || !trace.x || Array.isArray(trace.x[0]) ? [] : trace.x.filter(function (value) { return typeof value === "string"; });
    }))));
    if (!names.length) { return; }
    var longest = names.reduce(function (most, name) { return Math.max(most, String(name).length); }, 1);
    var room = Math.max(1, Math.floor((narrow ? 290 : 900) / (8 * longest + 12)));
    axis.tickangle = 0;
    if (names.length > room) { axis.dtick = Math.ceil(names.length / room); }
  }

  // a name in lines of so many letters at most, the last one cut where there are too many
  function inLines(name, most, count) {
    var lines = [""];
    name.split(" ").forEach(function (word) {
      var last = lines[lines.length - 1];
      if (last && last.length + 1 + word.length > most) { lines.push(word); } else { lines[lines.length - 1] = last ? last + " " + word : word; }
    });
    lines = lines.map(function (line) { return line.length > most ? line.slice(0, most - 1) + "…" : line; });
    return lines.length > count ? lines.slice(0, count - 1).concat(lines[count - 1].slice(0, most - 1) + "…") : lines;
  }

  // bars whose names would not stand beside each other lie, with their names at the left
  function lieDown(figure, narrow) {
    var bars = figure.data.length && figure.data.every(function (trace) { return trace.type === "bar" && trace.orientation !== "h"; });
    if (!bars || figure.layout.xaxis && figure.layout.xaxis.type !== "category" && figure.layout.xaxis.type !== "multicategory") { return figure; }
    var two = Array.isArray(figure.data[0].x[0]);
    var names = two ? figure.data[0].x[1] : Array.from(new Set([].concat.apply([], figure.data.map(function (trace) { return trace.x; }))));
    var letters = names.reduce(function (sum, name) { return sum + String(name).length + 2; }, 0);
    if (letters * 8 < (narrow ? 280 : figure.half ? 400 : 900)) { return figure; }
    var axes = figure.layout, swapped = Object.assign({}, axes, {
      xaxis: Object.assign({}, axes.yaxis, { automargin: true, nticks: narrow ? 4 : 12, tickangle: 0 }),
      yaxis: Object.assign({}, axes.xaxis, { autorange: "reversed", automargin: true, tickangle: 0, ticksuffix: " " })
    });
    var told = names.map(function (name) { return inLines(String(name), narrow ? 24 : 60, 3); });
    var lines = two ? 1 : told.reduce(function (most, one) { return Math.max(most, one.length); }, 1);
    var height = 120 + names.length * 13 * (lines + 1);
    if (!two) {  // as many names as have room
      var step = Math.ceil(height / MOST_HEIGHT);
      swapped.yaxis.tickvals = names.filter(function (_, row) { return row % step === 0; });
      swapped.yaxis.ticktext = told.filter(function (_, row) { return row % step === 0; }).map(function (one) { return one.join("<br>"); });
    }
    return { layout: swapped, height: Math.max(220, Math.min(MOST_HEIGHT, height)), data: figure.data.map(function (trace) {
      var turned = Object.assign({}, trace, { orientation: "h", x: trace.y, y: trace.x });
      if (turned.error_y) { turned.error_x = turned.error_y; delete turned.error_y; }
      ["texttemplate", "hovertemplate"].forEach(function (key) {
        if (turned[key]) { turned[key] = turned[key].replace(/%{([xy])/g, function (_, name) { return "%{" + (name === "x" ? "y" : "x"); }); }
      });
      return turned;
    }) };
  }

  // two or three bars over the whole width are blocks, not bars
  function fewBars(figure) {
    var bars = figure.data.filter(function (trace) { return trace.type === "bar" && trace.orientation !== "h"; });
    return bars.length > 0 && bars.length === figure.data.length && bars.length * new Set(bars[0].x).size <= 4;
  }

  // lines of a legend above a plot of this width: its columns are as wide as the longest name
  function legendLines(data, width) {
    if (data.length < 2) { return 0; }
    var longest = data.reduce(function (most, trace) { return Math.max(most, String(trace.name || "").length); }, 1);
    return Math.ceil(data.length / Math.max(1, Math.floor(width / (7.2 * longest + 48))));
  }

  // a curve that lies on an earlier one, or on most of it: thinner, dashed, and its name says so
  function tellCovered(traces) {
    traces.forEach(function (trace, number) {
      var values = trace.y.filter(function (value) { return typeof value === "number"; });
      var span = Math.max.apply(null, values) - Math.min.apply(null, values);
      for (var k = 0; k < number; k++) {
        var other = new Map(traces[k].x.map(function (x, row) { return [x, traces[k].y[row]]; })), both = 0, near = 0;
        trace.x.forEach(function (x, row) {
          var value = other.get(x);
          if (typeof value !== "number" || typeof trace.y[row] !== "number") { return; }
          both++;
          if (Math.abs(value - trace.y[row]) <= 0.01 * (span || Math.abs(value) || 1)) { near++; }
        });
        if (both > 2 && near >= 0.6 * both) {
          trace.line = Object.assign({}, trace.line, { dash: "dot", width: 1.6 });
          trace.marker = Object.assign({}, trace.marker, { symbol: "circle-open", size: 10 });
          trace.covers = (near < both ? "partly on " : "on ") + traces[k].name;
          return;
        }
      }
    });
    traces.forEach(function (trace) {
      if (trace.covers) { trace.name += " (" + trace.covers + ")"; delete trace.covers; }
    });
  }

  return { spaceNames: spaceNames, lieDown: lieDown, fewBars: fewBars, legendLines: legendLines, tellCovered: tellCovered };
})();
