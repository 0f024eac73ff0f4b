// The map of f over two parameters, or its curve over one, on a canvas of our own: under a millisecond a frame.

import { PIXELS, pixel, styled } from "./colours.js";
import { between, hatch, zeros } from "./contours.js";
import { probability, short, ticks, unitOf, valueAt } from "./scales.js";

const tickFont = () => `12px ${styled("--font")}`;
const FULL = { low: 0, high: 1, log: false };
const TOPS = [  // upper ends of the colours
  ...[-7, -6, -5, -4].flatMap(power => [1, 2, 5].map(first => Number(`${first}e${power}`))), 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1,
];

export class MapView {
  /** `onPick(theta)` after a click or Enter, `onPoint(value, theta)` when the pointer or crosshair is over a place or leaves. */
  constructor(canvas, { onPick, onPoint }) {
    Object.assign(this, { canvas, onPick, onPoint, frame: null, pointed: null, mode: "mean", p: 0.5, showPoints: false, picked: null, cross: null });
    this.context = canvas.getContext("2d");
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("pointermove", event => this.#point(this.#unit(event)));
    canvas.addEventListener("pointerleave", () => this.#point(this.cross));
    canvas.addEventListener("click", event => this.#pick(this.#unit(event)));
    canvas.addEventListener("keydown", event => this.#key(event));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => { this.cross = null; this.draw(); });
  }

  /** Change what is shown: any of frame, mode, p, showPoints, picked. */
  set(changes) {
    Object.assign(this, changes);
    this.draw();
    if ("frame" in changes) this.#point(this.pointed);
  }

  get #axes() {
    const { x, y } = this.frame;
    return { x, y: y ?? { name: "f", low: 0, high: this.#top("upper"), log: false }, flat: y !== null };
  }

  #top(name) {
    const most = this.frame[name].reduce((a, b) => Math.max(a, b), 0);
    return TOPS.find(top => most <= top * (1 + 1e-6)) ?? 1;
  }

  // ---- places
  #unit(event) {
    const box = this.canvas.getBoundingClientRect(), { left, top, width, height } = this.area;
    const x = (event.clientX - box.left - left) / width, y = 1 - (event.clientY - box.top - top) / height;
    return x < -0.01 || x > 1.01 || y < -0.01 || y > 1.01 ? null : [Math.min(1, Math.max(0, x)), Math.min(1, Math.max(0, y))];
  }

  #theta([u, v]) {
    const { x, y, flat } = this.#axes;
    return { [x.name]: valueAt(x, u), ...flat ? { [y.name]: valueAt(y, v) } : {}, ...this.frame.view.sliders };
  }

  /** Mean and band of the frame at a place, by interpolation between its nodes. */
  #value([u, v]) {
    const { nx, ny } = this.frame;
    const read = name => between(this.frame[name], nx, ny, u * (nx - 1), v * (ny - 1));
    return { mean: read("mean"), lower: read("lower"), upper: read("upper") };
  }

  #point(unit) {
    this.pointed = unit;
    if (!this.frame || !unit) return this.onPoint(null);
    this.onPoint(this.#value(unit), this.#theta(unit));
  }

  #pick(unit) {
    if (!this.frame || !unit) return;
    this.onPick(this.#theta(unit));
  }

  #key(event) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }[event.key];
    if (!this.frame || !(move || ["Enter", " ", "Escape"].includes(event.key))) return;
    event.preventDefault();
    if (event.key === "Escape") this.cross = null;
    else if (!this.cross) this.cross = [0.5, 0.5];
    else if (move) this.cross = this.cross.map((at, k) => Math.min(1, Math.max(0, at + move[k] * (event.shiftKey ? 0.1 : 0.02))));
    if (this.cross && !move && event.key !== "Escape") this.#pick(this.cross);
    this.#point(this.cross);
    this.draw();
  }

  // ---- drawing
  draw() {
    const { canvas, context: g } = this, ratio = devicePixelRatio || 1;
    const wide = canvas.clientWidth, high = canvas.clientHeight;
    if (!wide || !high) return;
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
    }
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, wide, high);
    if (!this.frame) return;
    const flat = this.#axes.flat;
    const left = this.#left(g), top = 12, width = wide - left - (flat ? 70 : 16), height = high - 56;
    this.area = { left, top, width, height };
    g.save();
    g.translate(left, top);
    g.save();
    g.beginPath();
    g.rect(0, 0, width, height);
    g.clip();
    if (flat) this.#surface(g, width, height);
    else this.#curve(g, width, height);
    this.#marks(g, width, height);
    g.restore();
    this.#frameLines(g, width, height);
    if (flat) this.#legend(g, width, height);
    g.restore();
  }

  #surface(g, width, height) {
    const { frame, mode, p } = this, { nx, ny, mean, lower, upper } = frame;
    const regions = mode === "regions", sx = (nx - 1) / width, sy = (ny - 1) / height;
    if (regions) this.#regions(g, width, height);
    else {
      const top = this.#scaleTop(), small = new OffscreenCanvas(nx, ny), ink = small.getContext("2d"), image = ink.createImageData(nx, ny);
      const pixels = new Uint32Array(image.data.buffer), value = mode === "width" ? k => upper[k] - lower[k] : k => mean[k];
      for (let k = 0; k < nx * ny; k++) pixels[(ny - 1 - Math.floor(k / nx)) * nx + k % nx] = PIXELS[Math.min(255, Math.max(0, value(k) / top * 255 | 0))];
      ink.putImageData(image, 0, 0);
      g.imageSmoothingEnabled = true;
      g.drawImage(small, -0.5 / sx, -0.5 / sy, width + 1 / sx, height + 1 / sy);  // nodes lie on the edges: half a cell reaches beyond
    }
    const unsure = (x, y) => {
      const at = [x * sx, (height - y) * sy];
      return between(lower, nx, ny, ...at) <= p && p <= between(upper, nx, ny, ...at);
    };
    g.lineWidth = 1;
    g.strokeStyle = regions ? styled("--quiet") : "rgba(255,255,255,.55)";
    hatch(g, width, height, unsure);
    const path = field => {
      const found = zeros(field.map(value => value - p), nx, ny);
      g.beginPath();
      for (let k = 0; k < found.length; k += 4) {
        g.moveTo(found[k] / sx, height - found[k + 1] / sy);
        g.lineTo(found[k + 2] / sx, height - found[k + 3] / sy);
      }
    };
    for (const edge of [lower, upper]) { path(edge); g.stroke(); }
    path(mean);
    g.lineCap = "round";
    for (const [colour, thick] of [["#000b", 4], ["#fff", 1.8]]) {
      Object.assign(g, { strokeStyle: colour, lineWidth: thick });
      g.stroke();
    }
  }

  /** Above, below and unsure in three colours, decided at every second pixel. */
  #regions(g, width, height) {
    const { frame: { nx, ny, lower, upper }, p } = this, [above, below, open] = ["--above", "--below", "--open"].map(pixel);
    const across = Math.ceil(width / 2), down = Math.ceil(height / 2);
    const small = new OffscreenCanvas(across, down), ink = small.getContext("2d"), image = ink.createImageData(across, down);
    const pixels = new Uint32Array(image.data.buffer);
    for (let j = 0, k = 0; j < down; j++) {
      for (let i = 0; i < across; i++, k++) {
        const x = (i + 0.5) / across * (nx - 1), y = (1 - (j + 0.5) / down) * (ny - 1);
        pixels[k] = between(lower, nx, ny, x, y) > p ? above : between(upper, nx, ny, x, y) < p ? below : open;
      }
    }
    ink.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(small, 0, 0, width, height);
  }

  #curve(g, width, height) {
    const { frame, p } = this, { nx, mean, lower, upper } = frame, { y } = this.#axes;
    const X = i => i / (nx - 1) * width, Y = value => height * (1 - unitOf(y, value));
    const trace = (values, first) => { for (let i = 0; i < nx; i++) g[i || !first ? "lineTo" : "moveTo"](X(i), Y(values[i])); };
    g.beginPath();
    trace(lower, true);
    for (let i = nx - 1; i >= 0; i--) g.lineTo(X(i), Y(upper[i]));
    g.closePath();
    g.fillStyle = styled("--band");
    g.fill();
    g.strokeStyle = styled("--quiet");
    g.lineWidth = 1;
    hatch(g, width, height, (x, down) => {
      const at = x / width * (nx - 1), value = y.high * (1 - down / height), low = between(lower, nx, 1, at, 0), high = between(upper, nx, 1, at, 0);
      return low <= p && p <= high && low <= value && value <= high;
    });
    g.beginPath();
    trace(mean, true);
    g.strokeStyle = styled("--c0");
    g.lineWidth = 2;
    g.stroke();
    g.beginPath();
    g.moveTo(0, Y(p));
    g.lineTo(width, Y(p));
    g.setLineDash([6, 4]);
    g.strokeStyle = styled("--ink");
    g.lineWidth = 1;
    g.stroke();
    g.setLineDash([]);
  }

  #marks(g, width, height) {
    const { frame, picked, cross } = this, { x, y, flat } = this.#axes;
    const at = (a, b) => [unitOf(x, a) * width, height * (1 - unitOf(y, b))];
    if (this.showPoints) {
      const slice = Object.keys(frame.view.sliders).length > 0;  // then the points lie elsewhere along the other parameters
      for (const [a, b, k, n] of frame.train) {
        const [px, py] = flat ? at(a, b) : slice ? [unitOf(x, a) * width, height - 4] : at(a, k / n);
        g.beginPath();
        g.arc(px, py, 2.2, 0, 7);
        g.fillStyle = flat ? "#ffffffd0" : styled("--dot");
        g.fill();
        if (flat) Object.assign(g, { strokeStyle: "#000a", lineWidth: 0.8 }).stroke();
      }
    }
    if (picked && x.name in picked) {
      const [px, py] = flat ? at(picked[x.name], picked[y.name]) : [unitOf(x, picked[x.name]) * width, null];
      for (const [colour, thick] of [["#000", 4], ["#fff", 2]]) {
        g.beginPath();
        if (flat) g.arc(px, py, 7, 0, 7);
        else { g.moveTo(px, 0); g.lineTo(px, height); }
        Object.assign(g, { strokeStyle: flat ? colour : styled("--c1"), lineWidth: flat ? thick : 1 }).stroke();
      }
    }
    if (cross && document.activeElement === this.canvas) {
      const px = cross[0] * width, py = (1 - cross[1]) * height;
      for (const [colour, thick] of [["#000", 3], ["#fff", 1]]) {
        g.beginPath();
        g.moveTo(px, 0);
        g.lineTo(px, height);
        if (flat) { g.moveTo(0, py); g.lineTo(width, py); }
        Object.assign(g, { strokeStyle: colour, lineWidth: thick }).stroke();
      }
    }
  }

  #frameLines(g, width, height) {
    const { x, y } = this.#axes;
    Object.assign(g, { strokeStyle: styled("--rule"), fillStyle: styled("--ink"), lineWidth: 1, font: tickFont() });
    g.strokeRect(-0.5, -0.5, width + 1, height + 1);
    g.beginPath();
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const value of ticks(x, width < 320 ? 4 : 7)) {
      const px = unitOf(x, value) * width;
      g.moveTo(px, height);
      g.lineTo(px, height + 5);
      g.fillText(short(value), px, height + 8);
    }
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const value of ticks(y, 6)) {
      const py = height * (1 - unitOf(y, value));
      g.moveTo(-5, py);
      g.lineTo(0, py);
      g.fillText(short(value), -8, py);
    }
    g.stroke();
    g.font = `600 13px ${styled("--font")}`;
    g.textAlign = "center";
    g.fillText(x.name + (x.log ? " (log)" : ""), width / 2, height + 34);
    const middle = 12 - this.area.left;
    g.translate(middle, height / 2);
    g.rotate(-Math.PI / 2);
    g.fillText(y.name + (y.log ? " (log)" : ""), 0, 0);
    g.rotate(Math.PI / 2);
    g.translate(-middle, -height / 2);
  }

  /** How wide the left margin is: the name of the axis stands beside the widest of its ticks. */
  #left(g) {
    g.font = tickFont();
    return Math.max(58, 30 + Math.max(...ticks(this.#axes.y, 6).map(value => g.measureText(short(value)).width)));
  }

  /** The upper end of the colours: a round number, so that the colours do not change with every frame. */
  #scaleTop() {
    if (this.mode !== "width") return this.#top("mean");
    const most = this.frame.upper.reduce((most, value, k) => Math.max(most, value - this.frame.lower[k]), 0);
    return TOPS.find(top => most <= top) ?? 1;
  }

  #legend(g, width, height) {
    const x = width + 14, thick = 12;
    Object.assign(g, { fillStyle: styled("--ink"), font: `12px ${styled("--font")}`, textAlign: "left", textBaseline: "middle", strokeStyle: styled("--rule") });
    if (this.mode === "regions") {
      const rows = [["--above", "> p"], ["--below", "< p"], ["--open", "unsure"]];
      rows.forEach(([name, words], k) => {
        g.fillStyle = styled(name);
        g.fillRect(x, 24 * k, thick, thick);
        g.strokeRect(x + 0.5, 24 * k + 0.5, thick - 1, thick - 1);
        g.fillStyle = styled("--ink");
        g.fillText(words, x + thick + 4, 24 * k + thick / 2);
      });
      return;
    }
    const top = this.#scaleTop(), scale = { ...FULL, high: top };
    const bar = new OffscreenCanvas(1, 256), ink = bar.getContext("2d"), image = ink.createImageData(1, 256);
    new Uint32Array(image.data.buffer).set(PIXELS.slice().reverse());
    ink.putImageData(image, 0, 0);
    g.drawImage(bar, x, 0, thick, height);
    g.strokeRect(x - 0.5, -0.5, thick + 1, height + 1);
    for (const value of ticks(scale, 5)) g.fillText(short(value), x + thick + 5, height * (1 - value / top));
    if (this.mode === "mean" && this.p <= top) {
      const y = height * (1 - this.p / top);
      g.beginPath();
      g.moveTo(x - 6, y - 4);
      g.lineTo(x - 1, y);
      g.lineTo(x - 6, y + 4);
      g.fill();
    }
  }
}

/** A value with its band in words. */
export function worded({ mean, lower, upper }, level) {
  const width = upper - lower, say = x => probability(x, width);
  return `f = ${say(mean)}, ${Math.round(level * 100)} % band ${say(lower)} to ${say(upper)}`;
}
