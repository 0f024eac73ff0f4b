"use strict";
// Draws the pictures of a report from the data in the page. Every text from the study is escaped before plotly sees it.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const redraws = [];

  const cividis = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
  const magma = ["#000004", "#180f3d", "#440f76", "#721f81", "#9e2f7f", "#cd4071", "#f1605d", "#fd9668", "#feca8d", "#fcfdbf"];
  const scale = (colours) => colours.map((colour, n) => [n / (colours.length - 1), colour]);

  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const series = (n) => colour("c" + (n % 8));
  const faded = (hex, share) => hex + Math.round(255 * share).toString(16).padStart(2, "0");
  const text = (words) => String(words).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const number = (value) => String(Number(value.toPrecision(3)));

  // On a log scale: 1, 2 and 5 of each decade, or the decades alone where there are many.
  function ticks([low, high]) {
    const decades = Math.log10(high / low), steps = decades < 2.5 ? [1, 2, 5] : [1], found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += Math.max(1, Math.ceil(decades / 8))) {
      steps.forEach((step) => found.push(Number((step * 10 ** power).toPrecision(1))));
    }
    const inside = found.filter((value) => value >= 0.999 * low && value <= 1.001 * high);
    if (inside.length < 2) { // less than a step of them: evenly spread numbers
      const step = [1, 2, 5, 10].map((each) => each * 10 ** Math.floor(Math.log10((high - low) / 4))).find((each) => (high - low) / each <= 5);
      inside.length = 0;
      for (let n = Math.ceil(low / step - 1e-9); n * step <= high * (1 + 1e-12); n += 1) inside.push(Number((n * step).toPrecision(6)));
    }
    return { tickvals: inside, ticktext: inside.map((value) => (value >= 1e-3 && value < 1e4 ? String(value) : value >= 1e4 && value < 1e9 ? value.toLocaleString("en") : value.toExponential())) };
  }

  function axis(own, more) {
    const look = { gridcolor: colour("faint"), linecolor: colour("rule"), zeroline: false, automargin: true, ticks: "outside", tickcolor: colour("rule") };
    if (!own) return Object.assign(look, more);
    const ends = [own.values[0], own.values[own.values.length - 1]];
    Object.assign(look, { title: { text: text(own.name) }, range: own.log ? ends.map(Math.log10) : ends });
    if (own.log) Object.assign(look, { type: "log" }, ticks(ends));
    return Object.assign(look, more);
  }

  function draw(where, traces, layout) {
    const whole = Object.assign({
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("ink") },
      width: where.clientWidth, height: where.clientHeight, margin: { l: 50, r: 10, t: 28, b: 40 }, hovermode: "closest",
      legend: { orientation: "h", y: -0.22, yanchor: "top", x: 0 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("quiet"), activecolor: colour("c0") },
      hoverlabel: { bgcolor: colour("raised"), bordercolor: colour("rule"), font: { color: colour("ink") } },
    }, layout);
    return Plotly.react(where, traces, whole, {
      // Named one by one: plotly's own list has a button that uploads the picture.
      displaylogo: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]], plotlyServerURL: "",
    });
  }

  function band(x, lower, upper, name, fill, more) {
    return Object.assign({
      x: x.concat(x.slice().reverse()), y: upper.concat(lower.slice().reverse()),
      type: "scatter", mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: fill, name: name, hoverinfo: "skip",
    }, more);
  }

  // The same as two smooth curves, of which the second is filled to the first.
  function smoothBand(x, lower, upper, name, fill) {
    const edge = (y, more) => Object.assign({ x: x, y: y, type: "scatter", mode: "lines", line: { width: 0, shape: "spline" }, name: name, hoverinfo: "skip" }, more);
    return [edge(lower, { showlegend: false }), edge(upper, { fill: "tonexty", fillcolor: fill })];
  }

  function line(x, own, name, look, more) {
    return Object.assign({
      x: x, y: own.mean, type: "scatter", mode: "lines", line: look, name: name,
      customdata: own.lower.map((low, n) => number(low) + " to " + number(own.upper[n])),
      hovertemplate: "%{x:.4g}: %{y:.4f}<br>" + text(own.interval || "interval") + ": %{customdata}<extra></extra>",
    }, more);
  }

  function drawCurve(section, own) {
    const where = section.querySelector("[data-draw=curve]"), along = own.axes[0], x = along.values, seen = own.seen;
    const learners = own.bands.filter((one) => !one.guaranteed), promised = own.bands.find((one) => one.guaranteed);
    redraws.push(() => {
      const traces = [];
      if (promised) traces.push(band(x, promised.lower, promised.upper, text(promised.interval + " interval, " + promised.learner), faded(series(0), 0.16)));
      learners.forEach((one, n) => {
        const shown = n === 0 || one.learner === (promised || {}).learner ? true : "legendonly";
        traces.push(band(x, one.lower, one.upper, text(one.interval + " interval, " + one.learner), faded(series(n), 0.34), { visible: shown }));
      });
      traces.push({
        x: seen.theta[along.name], y: seen.low.map((low, n) => (low + seen.high[n]) / 2), type: "scatter", mode: "markers", name: "share of satisfied runs",
        marker: { color: colour("dot"), size: 4 }, error_y: { type: "data", symmetric: true, array: seen.low.map((low, n) => (seen.high[n] - low) / 2), width: 0, thickness: 1, color: colour("dot") },
        customdata: seen.runs, hovertemplate: "%{x:.4g}: frequency %{y:.4f} of %{customdata} runs<extra></extra>",
      });
      learners.forEach((one, n) => traces.push(line(x, one, text("mean, " + one.learner), { color: series(n), width: 2 })));
      draw(where, traces, { xaxis: axis(along), yaxis: axis(null, { title: { text: "probability" }, rangemode: "tozero" }) });
    });
  }

  // A map over two parameters; `z[row][column]`, a row for each value up.
  function drawMap(where, title, across, up, z, hover, colours, dots, unit) {
    const top = Math.max(...z.map((row) => Math.max(...row)));
    const traces = [{
      x: across.values, y: up.values, z: z, type: "contour", colorscale: scale(colours), zmin: 0, zmax: top > 0.5 && colours === cividis ? 1 : top || 1,
      contours: { coloring: "heatmap", showlabels: true, labelfont: { size: 10, color: "#ffffff" } }, ncontours: 9, line: { width: 0.7, color: "rgba(255,255,255,.65)" },
      text: hover, hovertemplate: text(across.name) + " %{x:.4g}, " + text(up.name) + " %{y:.4g}<br>%{text}<extra></extra>",
      colorbar: { thickness: 12, outlinewidth: 0, tickfont: { size: 11 }, title: { text: unit || "probability", side: "right", font: { size: 11 } } },
    }];
    if (dots) traces.push(dots);
    draw(where, traces, { title: { text: title, font: { size: 13 }, x: 0.02, y: 0.99, yanchor: "top" }, xaxis: axis(across), yaxis: axis(up), showlegend: false });
  }

  const table = (size, value) => Array.from({ length: size }, (_, row) => Array.from({ length: size }, (_, column) => value(row, column)));
  const said = (one, n) => "mean " + number(one.mean[n]) + ", interval " + number(one.lower[n]) + " to " + number(one.upper[n]);

  function twoMaps(section, across, up, one, at, interval, dots) {
    const size = across.values.length, hover = table(size, (row, column) => said(one, at(row, column)));
    const mean = table(size, (row, column) => one.mean[at(row, column)]);
    const width = table(size, (row, column) => Number((one.upper[at(row, column)] - one.lower[at(row, column)]).toFixed(4)));
    drawMap(section.querySelector("[data-draw=mean]"), "mean", across, up, mean, hover, cividis, null);
    drawMap(section.querySelector("[data-draw=width]"), "width, " + text(interval), across, up, width, hover, magma, dots, "width of the interval");
  }

  function options(select, words) {
    words.forEach((one, n) => select.append(new Option(one, n)));
    return select;
  }

  function drawMaps(section, own) {
    const [across, up] = own.axes, size = up.values.length, seen = own.seen;
    const select = options(section.querySelector("[data-choose=band]"), own.bands.map((one) => one.learner + ", " + one.interval));
    const redraw = () => {
      const one = own.bands[Number(select.value)];
      const dots = {
        x: seen.theta[across.name], y: seen.theta[up.name], type: "scatter", mode: "markers", name: "points with runs",
        marker: { size: 3.5, color: "rgba(255,255,255,.55)" },
        customdata: seen.low.map((low, n) => (low === seen.high[n] ? number(low) : number(low) + " to " + number(seen.high[n])) + " of " + seen.runs[n] + " runs"),
        hovertemplate: "frequency %{customdata}<extra></extra>",
      };
      twoMaps(section, across, up, one, (row, column) => column * size + row, one.interval, dots);
    };
    select.addEventListener("change", redraw);
    redraws.push(redraw);
  }

  // Slices through a point of the grid. Pairs of parameters stand in the order of itertools.combinations.
  function drawSlices(section, own) {
    const axes = own.axes, size = axes[0].values.length, many = axes.length;
    const pair = (i, j) => i * many - (i * (i + 1)) / 2 + (j - i - 1);
    const pick = (tables, i, j) => {
      const [one, other] = i < j ? [i, j] : [j, i], found = tables[pair(one, other)];
      return { one: found, at: (a, b) => (i < j ? a * size + b : b * size + a) };
    };
    const choose = (name) => section.querySelector("[data-choose=" + name + "]");
    const learner = options(choose("learner"), own.learners), key = (name) => section.querySelector("[data-say=" + name + "]");
    const through = options(choose("through"), own.through.map((one) => one.words));
    const moved = options(choose("moved"), axes.map((one) => one.name));
    const across = options(choose("across"), axes.map((one) => one.name)), up = options(choose("up"), axes.map((one) => one.name));
    const place = choose("place"), output = section.querySelector("output"), panels = section.querySelector(".slices");
    up.value = 1;
    place.max = size - 1;
    const charts = axes.map((one) => {
      const chart = document.createElement("div");
      chart.className = "chart slice";
      chart.setAttribute("role", "img");
      chart.setAttribute("aria-label", "The probability along " + one.name);
      panels.append(chart);
      return chart;
    });
    // The guarantee is that of the first learner.
    const promisedBy = (point) => (Number(learner.value) === 0 ? point.guaranteed : null);
    const reset = () => { place.value = own.through[Number(through.value)].at[axes[Number(moved.value)].name]; };

    // What is predicted along parameter i while parameter j is at its place n.
    function along(tables, i, j, n) {
      const { one, at } = pick(tables, i, j), found = {};
      for (const name of ["mean", "lower", "upper"]) found[name] = Array.from({ length: size }, (_, m) => one[name][at(m, n)]);
      return found;
    }

    function redrawSlices() {
      const point = own.through[Number(through.value)], j = Number(moved.value), n = Number(place.value);
      const guaranteed = promisedBy(point);
      key("credible").textContent = own.intervals.credible + " interval";
      key("guaranteed").textContent = (own.intervals.guaranteed || "") + " interval";
      key("promised").hidden = !guaranteed;
      output.textContent = axes[j].name + " = " + number(axes[j].values[n]);
      axes.forEach((one, i) => {
        const [other, fixed] = i === j ? [(j + 1) % many, point.at[axes[(j + 1) % many].name]] : [j, n];
        const believed = along(point.credible[own.learners[Number(learner.value)]], i, other, fixed), x = one.values, here = i === j ? n : point.at[one.name];
        believed.interval = own.intervals.credible;
        const traces = [];
        if (guaranteed) {
          const promised = along(guaranteed, i, other, fixed);
          traces.push(...smoothBand(x, promised.lower, promised.upper, text(own.intervals.guaranteed), faded(series(0), 0.16)));
        }
        traces.push(...smoothBand(x, believed.lower, believed.upper, text(own.intervals.credible), faded(series(0), 0.34)));
        traces.push(line(x, believed, "mean", { color: series(0), width: 2, shape: "spline" }));
        traces.push({ x: [x[here]], y: [believed.mean[here]], type: "scatter", mode: "markers", marker: { color: colour("c1"), size: 8 }, name: "the point", hoverinfo: "skip" });
        draw(charts[i], traces, { xaxis: axis(one), yaxis: axis(null, { title: { text: "probability" }, range: [-0.02, 1.02] }), showlegend: false, margin: { l: 46, r: 8, t: 8, b: 40 } });
      });
    }

    function redrawMaps() {
      if (across.value === up.value) up.value = (Number(across.value) + 1) % many;
      const point = own.through[Number(through.value)], i = Number(across.value), j = Number(up.value);
      const guaranteed = promisedBy(point), { one, at } = pick(guaranteed || point.credible[own.learners[Number(learner.value)]], i, j);
      twoMaps(section, axes[i], axes[j], one, (row, column) => at(column, row), own.intervals[guaranteed ? "guaranteed" : "credible"], null);
    }

    reset();
    through.addEventListener("change", () => { reset(); redrawSlices(); redrawMaps(); });
    learner.addEventListener("change", () => { redrawSlices(); redrawMaps(); });
    moved.addEventListener("change", () => { reset(); redrawSlices(); });
    place.addEventListener("input", redrawSlices);
    [across, up].forEach((select) => select.addEventListener("change", redrawMaps));
    redraws.push(redrawSlices, redrawMaps);
  }

  // Where the whole band is above the threshold, and where it is below, with borders drawn between the points of the grid.
  // The fill of a constraint of plotly is where it does NOT hold.
  function sidesOf(across, up, one, at, threshold, hover) {
    const size = across.values.length, z = (value) => table(size, (row, column) => value(at(row, column)));
    const region = (values, fill) => ({
      x: across.values, y: up.values, z: values, type: "contour", autocontour: false, showscale: false, hoverinfo: "skip", showlegend: false,
      contours: { type: "constraint", operation: "<", value: 0 }, fillcolor: colour(fill), line: { color: colour("quiet"), width: 1 },
    });
    return [
      region(z((n) => one.lower[n] - threshold), "above"), region(z((n) => threshold - one.upper[n]), "below"),
      { x: across.values, y: up.values, z: z((n) => one.mean[n]), type: "contour", autocontour: false, showscale: false, hoverinfo: "skip",
        contours: { coloring: "none", start: threshold, end: threshold, size: 1 }, line: { color: colour("ink"), width: 1.4, dash: "dash" } },
      { x: across.values, y: up.values, z: z((n) => one.mean[n]), type: "heatmap", opacity: 0, showscale: false, text: hover,
        hovertemplate: text(across.name) + " %{x:.4g}, " + text(up.name) + " %{y:.4g}<br>%{text}<extra></extra>" },
    ];
  }

  // The side of each point of a table in words, with the band.
  const sideOf = (one, n, threshold) => (threshold === null ? "" : one.lower[n] > threshold ? "above: " : one.upper[n] < threshold ? "below: " : "undecided: ") + said(one, n);

  function spentDots(spent, first, x, y) {
    const rows = spent.runs.map((_, n) => n).filter((n) => spent.first[n] === first), most = Math.max(...spent.runs);
    return {
      x: rows.map(x), y: rows.map(y), type: "scatter", mode: "markers", showlegend: false, customdata: rows.map((n) => spent.runs[n]),
      marker: { color: colour(first ? "c7" : "c0"), opacity: first ? 0.5 : 0.65, size: rows.map((n) => 3 + 11 * Math.sqrt(spent.runs[n] / most)), line: { width: 0.5, color: colour("page") } },
      hovertemplate: "%{x:.4g}, %{y:.4g}: %{customdata:,} runs<extra></extra>",
    };
  }

  function drawDecided(section, own) {
    const where = (name) => section.querySelector("[data-draw=" + name + "]"), kind = own.map.kind, axes = own.map.axes;
    const title = (words) => ({ text: words, font: { size: 13 }, x: 0.02, y: 0.99, yanchor: "top" });
    if (own.rounds) redraws.push(() => drawRounds(where("rounds"), own.rounds));
    if (kind === "point") return;
    if (kind === "curve") { redraws.push(() => drawStretches(where("sides"), where("spent"), own, title)); return; }
    const slices = kind === "slices", choose = (name) => section.querySelector("[data-choose=" + name + "]");
    let place = { value: 0 }, across = { value: 0 }, up = { value: 1 };
    if (slices) {
      place = options(choose("place"), own.map.through.map((one) => one.words));
      across = options(choose("across"), axes.map((one) => one.name));
      up = options(choose("up"), axes.map((one) => one.name));
      up.value = 1;
    }
    const redraw = () => {
      if (across.value === up.value) up.value = (Number(across.value) + 1) % axes.length;
      const i = Number(across.value), j = Number(up.value), [low, high] = i < j ? [i, j] : [j, i], point = own.map.through[Number(place.value)];
      const one = point.tables[low * axes.length - (low * (low + 1)) / 2 + (high - low - 1)], size = axes[0].values.length;
      const at = (row, column) => (i < j ? column * size + row : row * size + column);
      const hover = table(size, (row, column) => sideOf(one, at(row, column), own.threshold));
      const inside = !slices || point.words.includes("box"), box = own.box && inside ? [own.box[axes[i].name], own.box[axes[j].name]] : null;
      const shapes = box ? [{ type: "rect", x0: box[0][0], x1: box[0][1], y0: box[1][0], y1: box[1][1], line: { color: colour("ink"), width: 2 } }] : [];
      const marks = [];
      if (!slices && own.flags.length) marks.push({
        x: own.flags.map((flag) => flag[axes[i].name]), y: own.flags.map((flag) => flag[axes[j].name]), customdata: own.flags.map((flag) => flag.runs), type: "scatter", mode: "markers",
        marker: { symbol: "x", size: 8, color: colour("ink") }, showlegend: false, hovertemplate: "not shown after %{customdata:,} runs<extra></extra>",
      });
      if (own.best && (!slices || point.words.includes("best"))) marks.push({
        x: [own.best[axes[i].name]], y: [own.best[axes[j].name]], type: "scatter", mode: "markers", showlegend: false,
        marker: { symbol: "star", size: 15, color: colour("c1"), line: { width: 1, color: "#ffffff" } }, hovertemplate: "the best point<extra></extra>",
      });
      if (slices) {
        const others = Object.entries(point.values).filter(([name]) => name !== axes[i].name && name !== axes[j].name);
        section.querySelector("output").textContent = "with " + others.map(([name, value]) => name + " = " + number(value)).join(", ");
      }
      if (own.threshold === null) {
        drawMap(where("sides"), "mean", axes[i], axes[j], table(size, (row, column) => one.mean[at(row, column)]), hover, cividis, marks[0] || null);
      } else {
        draw(where("sides"), [...sidesOf(axes[i], axes[j], one, at, own.threshold, hover), ...marks], {
          title: title("sides"), xaxis: axis(axes[i], { showgrid: false }), yaxis: axis(axes[j], { showgrid: false }), showlegend: false, plot_bgcolor: colour("open"), shapes: shapes,
        });
      }
      const spent = own.runs, x = (n) => spent.theta[axes[i].name][n], y = (n) => spent.theta[axes[j].name][n];
      draw(where("spent"), [true, false].map((first) => spentDots(spent, first, x, y)), { title: title("runs"), xaxis: axis(axes[i]), yaxis: axis(axes[j]), showlegend: false });
    };
    if (slices) [place, across, up].forEach((select) => select.addEventListener("change", redraw));
    redraws.push(redraw);
  }

  // One parameter: stretches of it in the colours of their sides behind the mean and its band.
  function drawStretches(where, spentWhere, own, title) {
    const along = own.map.axes[0], x = along.values, one = own.map.through[0].tables[0], p = own.threshold, spent = own.runs, shapes = [];
    if (p !== null) {
      const side = x.map((_, n) => (one.lower[n] > p ? "above" : one.upper[n] < p ? "below" : "open"));
      const edge = (n) => (n <= 0 ? x[0] : n >= x.length ? x[x.length - 1] : along.log ? Math.sqrt(x[n - 1] * x[n]) : (x[n - 1] + x[n]) / 2);
      for (let start = 0, n = 1; n <= x.length; n += 1) {
        if (n === x.length || side[n] !== side[start]) {
          shapes.push({ type: "rect", yref: "paper", x0: edge(start), x1: edge(n), y0: 0, y1: 1, fillcolor: colour(side[start]), line: { width: 0 }, layer: "below" });
          start = n;
        }
      }
      shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: p, y1: p, line: { color: colour("ink"), width: 1.4, dash: "dash" } });
      if (own.box) shapes.push({ type: "rect", yref: "paper", x0: own.box[along.name][0], x1: own.box[along.name][1], y0: 0.005, y1: 0.995, line: { color: colour("ink"), width: 2 } });
    }
    const traces = [band(x, one.lower, one.upper, "band", faded(colour("c6").slice(0, 7), 0.3)), line(x, one, "mean", { color: colour("ink"), width: 2 })];
    if (own.best) traces.push({ x: [own.best[along.name]], y: [0], type: "scatter", mode: "markers", marker: { symbol: "star", size: 14, color: colour("c1") }, hovertemplate: "the best point: %{x:.4g}<extra></extra>" });
    draw(where, traces, { title: title(p === null ? "mean" : "sides"), xaxis: axis(along, { showgrid: false }), yaxis: axis(null, { title: { text: "probability" }, rangemode: "tozero" }), showlegend: false, shapes: shapes });
    const dots = [true, false].map((first) => spentDots(spent, first, (n) => spent.theta[along.name][n], (n) => spent.runs[n]));
    dots.forEach((trace) => Object.assign(trace, { hovertemplate: "%{x:.4g}: %{y:,} runs<extra></extra>", marker: Object.assign(trace.marker, { size: 6 }) }));
    draw(spentWhere, dots, { title: title("runs"), xaxis: axis(along), yaxis: axis(null, { type: "log", title: { text: "runs" }, dtick: 1 }), showlegend: false });
  }

  function drawRounds(where, own) {
    const last = own.runs[own.runs.length - 1], ends = [own.runs[0] / 1.2, 1.2 * Math.max(last, own.forecast ? own.forecast.runs[own.forecast.runs.length - 1] : 0)], traces = [];
    if (own.forecast) traces.push(band(own.forecast.runs, own.forecast.low, own.forecast.high, "a Sobol design, forecast", faded(colour("c7").slice(0, 7), 0.3)));
    traces.push({
      x: ends, y: [own.aim, own.aim], type: "scatter", mode: "lines", line: { color: colour("ink"), width: 1.4, dash: "dash" }, name: "the aim", hoverinfo: "skip",
    });
    traces.push({
      x: own.runs, y: own.figures, customdata: own.points, type: "scatter", mode: "lines+markers", line: { color: colour("c0"), width: 2 }, marker: { size: 7 }, name: "refinement",
      hovertemplate: "%{x:,} runs at %{customdata:,} points: %{y:" + (own.share ? ".2%" : ".4g") + "}<extra></extra>",
    });
    const low = Math.min(own.aim, ...own.figures), high = Math.max(own.aim, ...own.figures), marks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) [1, 2, 5].forEach((step) => marks.push(Number((step * 10 ** power).toPrecision(1))));
    const inside = marks.filter((value) => value >= low / 1.3 && value <= high * 1.3);
    draw(where, traces, {
      xaxis: axis(null, Object.assign({ type: "log", title: { text: "runs" }, range: ends.map(Math.log10) }, ticks(ends))),
      legend: { orientation: "h", y: -0.3, yanchor: "top", x: 0 },
      yaxis: axis(null, { type: "log", title: { text: own.name }, tickvals: inside, ticktext: inside.map((value) => (own.share ? number(100 * value) + " %" : String(value))), range: [Math.log10(low / 1.3), Math.log10(high * 1.3)] }),
    });
  }

  function drawCoverage(section, own) {
    const where = section.querySelector("[data-draw=coverage]"), levels = own.levels;
    redraws.push(() => {
      const traces = [band(levels, own.noise.low, own.noise.high, "95 % band of " + text(own.learner) + ", if its model is right", faded(colour("c7").slice(0, 7), 0.25))];
      traces.push({ x: [0, 1], y: [0, 1], type: "scatter", mode: "lines", line: { color: colour("quiet"), width: 1, dash: "dash" }, name: "perfectly calibrated", hoverinfo: "skip" });
      Object.entries(own.actual).forEach(([learner, actual], n) => traces.push({
        x: levels, y: actual, type: "scatter", mode: "lines+markers", line: { color: series(n), width: 2 }, marker: { size: 5 }, name: text(learner),
        hovertemplate: text(learner) + ": %{y:.1%} at %{x:.0%}<extra></extra>",
      }));
      // Two counts, of which one is too low and the other too high: what is right lies between them.
      if (own.guarantee) [["inside", "the frequency lies inside", "triangle-up"], ["met", "the interval overlaps that of the runs", "triangle-down"]].forEach(([key, words, symbol]) => traces.push({
        x: [own.guarantee.level], y: [own.guarantee[key]], type: "scatter", mode: "markers", marker: { size: 11, symbol: symbol, color: colour("ink") },
        name: "guaranteed: " + words, hovertemplate: "guaranteed at %{x:.0%}: " + words + " at %{y:.1%} of the points<extra></extra>",
      }));
      draw(where, traces, {
        xaxis: axis(null, { title: { text: "nominal level" }, range: [0, 1.02], tickformat: ".0%" }),
        yaxis: axis(null, { title: { text: "actual coverage" }, range: [0, 1.02], tickformat: ".0%" }),
      });
    });
  }

  // The error at each point: over one parameter its size is the height, over more the colour.
  function drawErrors(section, own) {
    const where = section.querySelector("[data-draw=errors]"), one = own.axes.length < 2, most = own.worst || 1e-9;
    const chosen = ["across", "up"].map((name) => section.querySelector("[data-choose=" + name + "]"));
    chosen.forEach((select, n) => { if (select) { options(select, own.axes.map((each) => each.name)).value = n; } });
    const redraw = () => {
      const [across, up] = chosen.map((select, n) => own.axes[select ? Number(select.value) : n]), all = own.error.map((_, n) => n);
      const hover = all.map((n) => "exact " + number(own.truth[n]) + ", mean minus exact " + number(own.error[n]) + (own.inside[n] ? "" : "<br>the interval misses it"));
      const symbol = own.inside.map((inside) => (inside ? "circle" : "x"));
      const dots = { type: "scatter", mode: "markers", x: across ? own.theta[across.name] : all, text: hover, hovertemplate: "%{text}<extra></extra>", showlegend: false };
      if (one) {
        Object.assign(dots, {
          y: own.error, marker: { size: 6, symbol: symbol, color: own.inside.map((inside) => colour(inside ? "c0" : "c1")) },
          error_y: { type: "data", symmetric: false, array: own.high.map((high, n) => high - own.error[n]), arrayminus: own.low.map((low, n) => own.error[n] - low), width: 0, thickness: 1, color: colour("dot") },
        });
      } else {
        Object.assign(dots, {
          y: own.theta[up.name],
          marker: { size: 9, symbol: symbol, color: own.error, colorscale: [[0, "#2166ac"], [0.5, "#d9d9d9"], [1, "#b2182b"]], cmin: -most, cmax: most, line: { width: 0.5, color: colour("ink") }, colorbar: { thickness: 12, outlinewidth: 0, tickfont: { size: 11 }, title: { text: "mean less exact", side: "right", font: { size: 11 } } } },
        });
      }
      draw(where, [dots], { xaxis: axis(across), yaxis: one ? axis(null, { title: { text: "mean less exact" } }) : axis(up) });
    };
    chosen.forEach((select) => { if (select) select.addEventListener("change", redraw); });
    redraws.push(redraw);
  }

  function drawRun(section, kind, own) {
    const where = section.querySelector("[data-draw=" + kind + "]"), names = Object.keys(own.states), lanes = own.lanes.slice(0, 12);
    const share = Math.min(0.6, 0.12 * lanes.length), shorter = (words) => (words.length > 40 ? words.slice(0, 20) + "…" + words.slice(-19) : words);
    redraws.push(() => {
      const traces = names.map((name, n) => ({
        x: own.times, y: own.states[name], type: "scatter", mode: "lines", line: { shape: "hv", color: series(n), width: 1.6 }, name: text(name),
        visible: own.named.includes(name) || names.length <= 6 ? true : "legendonly", hovertemplate: text(name) + " %{y} at %{x:.4g}<extra></extra>",
      }));
      lanes.forEach((lane, n) => {
        // The whole formula is read from time 0: that it is unknown from a later time on says nothing of the run.
        (n === 0 ? [["holds", 1]] : [["holds", 1], ["unknown", 0.25]]).forEach(([which, opacity]) => {
          const x = [], y = [];
          lane[which].forEach(([start, stop]) => { x.push(start, stop, null); y.push(n, n, null); });
          traces.push({
            x: x, y: y, yaxis: "y2", type: "scatter", mode: "lines+markers", showlegend: false, opacity: opacity, line: { width: 7, color: colour(kind === "satisfied" ? "c2" : "c1") },
            marker: { size: 5, symbol: "line-ns", color: colour("quiet") }, hovertemplate: text(lane.label) + (which === "holds" ? " holds" : " is unknown") + " at %{x:.4g}<extra></extra>",
          });
        });
      });
      traces.push({
        x: [0], y: [0], yaxis: "y2", type: "scatter", mode: "markers", showlegend: false, cliponaxis: false, name: "verdict",
        marker: { symbol: "diamond", size: 12, color: colour(kind === "satisfied" ? "c2" : "c1"), line: { width: 1.5, color: colour("page") } }, hovertemplate: kind + " at time 0<extra></extra>",
      });
      draw(where, traces, {
        xaxis: axis(null, { title: { text: "time" }, range: [-0.02 * own.end, own.end], anchor: "y2" }),
        yaxis: axis(null, { title: { text: own.whole ? "count" : "value" }, domain: [share + 0.06, 1], rangemode: "tozero" }),
        yaxis2: axis(null, { domain: [0, share], range: [lanes.length - 0.5, -1], showgrid: false, showticklabels: false, ticks: "" }),
        annotations: lanes.map((lane, n) => ({
          text: text(shorter(lane.label)), x: 0, y: n - 0.2, yref: "y2", xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 10, color: colour("quiet") },
        })),
      });
    });
  }

  // A table of the page as a file, which is made when it is asked for.
  function save(name, words) {
    const link = document.createElement("a"), address = URL.createObjectURL(new Blob([words], { type: "text/csv;charset=utf-8" }));
    Object.assign(link, { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  for (const [id, own] of Object.entries(data)) {
    const section = document.getElementById(id), kinds = { curve: drawCurve, maps: drawMaps, slices: drawSlices };
    if (own.function.kind in kinds) kinds[own.function.kind](section.querySelector(".function"), own.function);
    section.querySelector("[data-save=table]").addEventListener("click", () => save(own.table.name, own.table.text));
    if (own.decision) drawDecided(section.querySelector(".decision"), own.decision);
    if (own.coverage) drawCoverage(section, own.coverage);
    if (own.errors) drawErrors(section.querySelector(".errors"), own.errors);
    Object.entries(own.runs).forEach(([kind, run]) => drawRun(section, kind, run));
  }
  const all = () => redraws.forEach((redraw) => redraw());
  all();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  let waiting = 0, wide = innerWidth;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (innerWidth !== wide) { wide = innerWidth; all(); } }, 150);
  });
  // On paper the page is as wide as a sheet, and white; the pictures are drawn to that size before it is printed.
  addEventListener("beforeprint", () => { root.classList.add("paper"); all(); });
  addEventListener("afterprint", () => { root.classList.remove("paper"); all(); });
  root.dataset.drawn = "yes";
})();
