// Runs: their verdicts as chips, and one of them drawn: species as steps, and when each part of the formula holds.

import { line } from "./colours.js";
import { $, make, shape } from "./dom.js";
import { short, ticks } from "./scales.js";

const SIGNS = { true: "✓", false: "✗", undecided: "?" };
const WORDS = { true: "satisfies the property", false: "violates the property", undecided: "is undecided" };
const MOST_SHOWN = 8;  // species drawn unasked

/** The chips of one batch, appended; `onChoose(run, chip)` when one is clicked. */
export function addChips(batch, runs, onChoose) {
  $("chips").append(...runs.map(run => make("button", {
    type: "button", className: `chip ${run.verdict}`, textContent: SIGNS[run.verdict],
    "aria-label": `run ${batch * 20 + run.run + 1} ${WORDS[run.verdict]}`, "aria-pressed": "false",
    onclick: event => onChoose(run, event.currentTarget),
  })));
}

/** Which species are drawn: those the reader chose, else those of the formula and the first ones. */
function firstShown(run) {
  const named = run.species.filter(name => run.bars.some(bar => new RegExp(`(?<![\\w.])${name.replace(/[^\w]/g, "\\$&")}(?![\\w.])`).test(bar.text)));
  return new Set([...named, ...run.species].slice(0, Math.max(MOST_SHOWN, named.length)));
}

export class RunView {
  constructor(element) {
    Object.assign(this, { element, run: null, shown: new Set() });
    new ResizeObserver(() => this.run && this.draw()).observe(element);
  }

  show(run, title) {
    if (!this.run || this.run.species.join() !== run.species.join()) this.shown = firstShown(run);
    Object.assign(this, { run, title });
    this.draw();
  }

  clear() {
    this.run = null;
    this.element.replaceChildren();
    delete this.element.dataset.verdict;
  }

  draw() {
    const { run, element, title } = this, width = Math.max(240, element.clientWidth);
    const keys = make("div", { className: "keys", role: "group", "aria-label": "Species shown" }, ...run.species.map((name, k) => {
      const { colour, dash } = line(k), on = this.shown.has(name);
      const stroke = shape("line", { x1: 0, x2: 18, y1: 5, y2: 5, "stroke-width": 2.5, "stroke-dasharray": dash });
      stroke.style.stroke = colour;
      const button = make("button", { type: "button", className: "key", "aria-pressed": on }, shape("svg", { width: 18, height: 10, "aria-hidden": true }, stroke), ` ${name}`);
      button.onclick = () => { this.shown[on ? "delete" : "add"](name); this.draw(); element.querySelectorAll(".key")[k].focus(); };
      return button;
    }));
    element.dataset.verdict = run.verdict;
    element.replaceChildren(
      make("h3", {}, make("span", { className: `chip ${run.verdict}`, "aria-hidden": "true", textContent: SIGNS[run.verdict] }), ` ${title} ${WORDS[run.verdict]}`),
      ...run.species.length ? [keys, this.#steps(width)] : [],
      ...run.bars.length ? [make("h4", { textContent: "When each part holds; the verdict is at time 0" }), this.#bars(width), make("p", { className: "legend quiet" },
        make("span", { className: "swatch yes" }), " holds  ", make("span", { className: "swatch no" }), " does not  ", make("span", { className: "swatch open" }), " beyond the run")] : [],
      ...run.note ? [make("p", { className: "quiet", textContent: run.note })] : [],
    );
  }

  #across(width) {
    const left = 44, inner = width - left - 14, end = this.run.end || 1;
    return { left, inner, end, X: t => left + inner * Math.min(t, end) / end };
  }

  #steps(width) {
    const { run } = this, height = 190, bottom = 22, { left, inner, end, X } = this.#across(width);
    const drawn = run.species.map((name, k) => [name, k]).filter(([name]) => this.shown.has(name));
    const high = drawn.reduce((most, [, k]) => run.states[k].reduce((a, b) => Math.max(a, b), most), 1);
    const low = drawn.reduce((least, [, k]) => run.states[k].reduce((a, b) => Math.min(a, b), least), 0);
    const Y = v => 6 + (height - bottom - 12) * (high - v) / (high - low);
    const svg = shape("svg", { width, height, role: "img", "aria-label": `Counts of ${drawn.map(([name]) => name).join(", ") || "no species"} from time 0 to ${short(end)}` });
    for (const value of ticks({ low, high }, 4)) {
      svg.append(shape("line", { class: "grid", x1: left, x2: left + inner, y1: Y(value), y2: Y(value) }), shape("text", { x: left - 6, y: Y(value) + 4, "text-anchor": "end" }, short(value)));
    }
    for (const value of ticks({ low: 0, high: end }, 6)) {
      svg.append(shape("line", { class: "grid", x1: X(value), x2: X(value), y1: height - bottom, y2: height - bottom + 4 }), shape("text", { x: X(value), y: height - 5, "text-anchor": "middle" }, short(value)));
    }
    for (const [, k] of drawn) {
      const states = run.states[k];
      let path = `M${X(0).toFixed(1)},${Y(states[0]).toFixed(1)}`;
      for (let i = 1; i < run.times.length; i++) if (states[i] !== states[i - 1]) path += `H${X(run.times[i]).toFixed(1)}V${Y(states[i]).toFixed(1)}`;
      const { colour, dash } = line(k), drawnLine = shape("path", { d: `${path}H${X(end).toFixed(1)}`, class: "steps", "stroke-dasharray": dash });
      drawnLine.style.stroke = colour;
      svg.append(drawnLine);
    }
    return svg;
  }

  #bars(width) {
    const { run } = this, row = 34, { left, end, X } = this.#across(width);
    const svg = shape("svg", { width, height: row * run.bars.length + 4, role: "img", "aria-label": run.bars.map(bar => `${bar.text}: ${this.#when(bar)}`).join("; ") });
    run.bars.forEach((bar, k) => {
      const y = row * k + 16, span = (a, b, given) => shape("rect", { x: X(a), width: Math.max(2.5, X(b ?? end) - X(a)), ...given });
      svg.append(shape("text", { x: 4 + 10 * bar.depth, y: y - 4, class: "part" }, bar.text));
      for (const [a, b] of bar.unknown) if (a < end) svg.append(span(a, b, { y: y + 1, height: 9, class: "bar-open" }));
      for (const [a, b] of bar.false) svg.append(span(a, b, { y: y + 4.5, height: 2, class: "bar-no" }));
      for (const [a, b] of bar.true) svg.append(span(a, b, { y, height: 11, class: "bar-yes" }));
      const verdict = k === 0 ? { true: "bar-yes", false: "bar-no" }[run.verdict] : null;  // that of the whole property is at time 0
      svg.append(verdict ? shape("rect", { class: verdict, x: left - 2, y: y - 1, width: 4, height: 13 })
        : shape("line", { class: "grid", x1: left, x2: left, y1: y - 1, y2: y + 12 }));
    });
    return svg;
  }

  #when(bar) {
    const spans = bar.true.map(([a, b]) => `${short(a)} to ${short(b ?? this.run.end)}`);
    return spans.length ? `holds from ${spans.join(", ")}` : "never holds";
  }
}
