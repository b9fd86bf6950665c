(function () {
  "use strict";
  var root = document.documentElement;
  var palettes = {
    light: ["#0072b2", "#d55e00", "#009e73", "#b0568e", "#a66f00", "#3a8fbf"],
    dark: ["#56b4e9", "#ff8f4d", "#2fcf9f", "#e39ac6", "#f0b429", "#9ec9e8"]
  };
  var element = document.getElementById("figures");
  var figures = element ? JSON.parse(element.textContent) : [];

  function css(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }

  function layoutOf(figure) {
    var narrow = window.innerWidth < 600;
    var layout = JSON.parse(JSON.stringify(figure.layout));
    layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.font = { family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", size: narrow ? 11 : 13, color: css("--ink") };
    layout.colorway = palettes[root.dataset.theme];
    // the value of a bar that lies stands at its right end
    layout.margin = Object.assign({ l: narrow ? 48 : 64, r: figure.height ? 44 : 12, t: 34, b: 52 }, layout.margin);
    layout.legend = Object.assign({ orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, layout.legend);
    layout.hoverlabel = { bgcolor: css("--panel"), bordercolor: css("--line"), font: { color: css("--ink") } };
    layout.modebar = { color: css("--soft"), activecolor: css("--accent"), bgcolor: "rgba(0,0,0,0)" };
    Object.keys(layout).filter(function (key) { return /^[xy]axis/.test(key); }).concat(["xaxis", "yaxis"]).forEach(function (key) {
      layout[key] = Object.assign({ gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true, exponentformat: "SI" }, layout[key]);
      if (layout[key].title) { layout[key].title = Object.assign({ standoff: 8 }, layout[key].title); }
    });
    shortenNames(figure.data, layout.xaxis, narrow ? 14 : 30);
    PlotShapes.spaceNames(figure.data, layout.xaxis, narrow);
    return layout;
  }

  // long names below an axis would leave no room for the plot; the whole name is told where one points
  function shortenNames(data, axis, most) {
    var names = new Set();
    data.forEach(function (trace) {
      if (trace.orientation !== "h") { (trace.x || []).forEach(function (value) { if (typeof value === "string") { names.add(value); } }); }
    });
    if (axis.tickvals || !Array.from(names).some(function (name) { return name.length > most; })) { return; }
    axis.tickvals = Array.from(names);
    axis.ticktext = axis.tickvals.map(function (name) { return name.length > most ? name.slice(0, most - 1) + "…" : name; });
  }

  // the columns of a plot whose axes the reader chooses -> series and axes
  function chosen(index) {
    var box = document.querySelector('.axes[data-plot="' + (index + 1) + '"]');
    var want = {};
    box.querySelectorAll("select, input").forEach(function (control) {
      want[control.name] = control.type === "checkbox" ? control.checked : control.value;
    });
    return want;
  }

  function explore(figure, index) {
    var want = chosen(index), columns = figure.columns, groups = new Map();
    var by = want.by ? columns[want.by] : null, error = columns[want.y + "_interval"];
    function titled(name) { return figure.units[name] ? name + ", " + figure.units[name] : name; }
    var x = columns[want.x], numbers = x.every(function (value) { return value === null || typeof value === "number"; });
    x.forEach(function (_, row) {
      var name = by ? String(by[row] === null ? "–" : by[row]) : want.y;
      if (!groups.has(name)) { groups.set(name, []); }
      groups.get(name).push(row);
    });
    var traces = Array.from(groups.entries()).map(function (entry, number) {
      var rows = entry[1], pick = function (column) { return rows.map(function (row) { return column[row]; }); };
      if (numbers && want.style === "lines") { rows.sort(function (a, b) { return x[a] - x[b]; }); }
      var trace = { name: entry[0], x: pick(x), y: pick(columns[want.y]) };
      if (want.style === "bars") { trace.type = "bar"; } else {
        trace.type = rows.length > 5000 ? "scattergl" : "scatter";
        trace.mode = want.style === "markers" ? "markers" : "lines+markers";
        trace.line = { dash: ["solid", "dash", "dot", "dashdot"][Math.floor(number / 6) % 4] };
        trace.marker = { size: rows.length > 300 ? 4 : 6, symbol: ["circle", "square", "diamond", "cross"][Math.floor(number / 6) % 4] };
      }
      if (error) { trace.error_y = { type: "data", array: pick(error), thickness: 1, width: 3 }; }
      return trace;
    });
    if (want.style === "markers" && traces.length <= 4 && x.length <= 1200) {  // one point on another stays in sight
      traces.forEach(function (trace, number) { if (number) { trace.marker.symbol = "circle-open"; trace.marker.size += 3 * number; } });
    }
    if (want.style === "lines" && traces.length > 1 && traces.length <= 24) { PlotShapes.tellCovered(traces); }
    return {
      data: traces,
      layout: {
        xaxis: { title: { text: titled(want.x) }, type: numbers ? (want.logx ? "log" : "linear") : "category" },
        yaxis: { title: { text: titled(want.y) }, type: want.logy ? "log" : "linear" },
        showlegend: by !== null
      }
    };
  }

  // named one by one: plotly's own choice has a button that sends the data to a server
  var buttons = [["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"], ["toImage"]];
  var touch = [["zoomIn2d", "zoomOut2d", "resetScale2d"]];
  var drawn = new Set();

  function drawOne(index) {
    var narrow = window.innerWidth < 600, figure = figures[index];
    var shown = PlotShapes.lieDown(figure.columns ? explore(figure, index) : figure, narrow);
    var place = document.getElementById("figure-" + (index + 1));
    var most = narrow ? 40 : 100, width = place.clientWidth - 76;
    shown.data.forEach(function (trace) {  // the names of series have their room above the plot
      if (trace.name && trace.name.length > most) { trace.name = trace.name.slice(0, most / 2 - 1) + "…" + trace.name.slice(-most / 2); }
    });
    var lines = shown.layout.showlegend === false ? 0 : PlotShapes.legendLines(shown.data, width);
    var height = shown.height || Number(place.dataset.height);
    place.style.height = height + 19 * Math.max(0, lines - 2) + "px";
    place.style.maxWidth = !narrow && figure.columns && PlotShapes.fewBars(shown) ? "560px" : "";
    var layout = layoutOf(shown);
    if (narrow) { layout.dragmode = false; }  // a finger scrolls the page
    var options = { responsive: true, displaylogo: false, displayModeBar: true, modeBarButtons: narrow ? touch : buttons };
    drawn.add(index);
    Plotly.react("figure-" + (index + 1), shown.data, layout, options);
  }

  function redraw() {
    drawn.forEach(drawOne);
    window.dispatchEvent(new Event("hopforge-theme"));
  }

  // the first plots at once, the others when the reader comes near
  var atOnce = 12;
  function draw() {
    var watcher = "IntersectionObserver" in window ? new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (!entry.isIntersecting) { return; }
        watcher.unobserve(entry.target);
        drawOne(Number(entry.target.id.split("-")[1]) - 1);
      });
    }, { rootMargin: "800px" }) : null;
    figures.forEach(function (_, index) {
      if (index < atOnce || !watcher) { drawOne(index); } else { watcher.observe(document.getElementById("figure-" + (index + 1))); }
    });
  }

  window.addEventListener("beforeprint", function () { figures.forEach(function (_, index) { drawOne(index); }); });

  document.querySelectorAll(".axes").forEach(function (box) {
    box.addEventListener("change", function () { drawOne(Number(box.dataset.plot) - 1); });
  });

  var system = window.matchMedia("(prefers-color-scheme: dark)");
  if (system.addEventListener) {
    system.addEventListener("change", function () {
      var saved = null;
      try { saved = localStorage.getItem("hopforge-theme"); } catch (e) { /* a page without storage */ }
      if (!saved) { root.dataset.theme = system.matches ? "dark" : "light"; redraw(); }
    });
  }

  document.getElementById("theme").addEventListener("click", function () {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("hopforge-theme", root.dataset.theme); } catch (e) { /* a page without storage */ }
    redraw();
  });

  document.querySelectorAll("table").forEach(function (table) {
    table.querySelectorAll("th button").forEach(function (button, index) {
      button.addEventListener("click", function () {
        var head = button.parentNode, up = head.getAttribute("aria-sort") !== "ascending";
        table.querySelectorAll("th").forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        var body = table.tBodies[0];
        Array.from(body.rows).sort(function (a, b) {
          var left = a.cells[index], right = b.cells[index];
          var x = left.dataset.value, y = right.dataset.value, order;
          if (x !== undefined && y !== undefined) { order = Number(x) - Number(y); }
          else if (x !== undefined) { return -1; }  // what is no number stays last
          else if (y !== undefined) { return 1; }
          else { order = left.textContent.localeCompare(right.textContent, "en", { numeric: true }); }
          return up ? order : -order;
        }).forEach(function (row) { body.appendChild(row); });
      });
    });
  });

  // what a table hides at its right and below is said under it
  function tellMore(box, hint) {
    var words = [], rows = box.querySelectorAll("tbody tr").length;
    var right = box.scrollWidth - box.clientWidth - box.scrollLeft > 4, below = box.scrollHeight - box.clientHeight - box.scrollTop > 4;
    if (right) { words.push("more " + (box.querySelector("table") ? "columns " : "") + "at the right"); }
    if (below) { words.push("more rows below (" + rows + " in all)"); }
    box.classList.toggle("more-right", right); box.classList.toggle("more-below", below);
    if (hint) { hint.hidden = !words.length; hint.textContent = words.length ? "Scroll: " + words.join(", ") + "." : ""; }
  }
  window.HopforgeTables = { watch: function (box, hint) {
    function tell() { tellMore(box, hint); }
    box.tabIndex = 0;
    box.addEventListener("scroll", tell);
    new ResizeObserver(function () { setTimeout(tell, 0); }).observe(box);  // what is told may change sizes
    tell();
    return tell;  // where what is in the box changes, and not its size
  } };
  document.querySelectorAll(".item .scroll").forEach(function (box) { HopforgeTables.watch(box, box.parentNode.querySelector(".hint")); });

  document.querySelectorAll(".filter").forEach(function (input) {
    input.addEventListener("input", function () {
      var words = input.value.toLowerCase().split(/\s+/);
      input.parentNode.querySelectorAll("tbody tr").forEach(function (row) {
        var text = row.textContent.toLowerCase();
        row.hidden = !words.every(function (word) { return text.includes(word); });
      });
    });
  });

  document.querySelectorAll("[data-copy]").forEach(function (button) {
    button.addEventListener("click", function () {
      if (navigator.clipboard) {
        navigator.clipboard.writeText(button.dataset.copy).then(function () { button.textContent = "copied"; });
      } else {  // a page without clipboard: mark the words
        window.getSelection().selectAllChildren(button.previousElementSibling);
      }
    });
  });

  draw();
})();
