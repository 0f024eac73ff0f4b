// What the user edits: the model, the property, the parameters. It holds the document and has it checked as it changes.

import { $, make, rested, say } from "./dom.js";
import { count, short } from "./scales.js";
import { post } from "./wire.js";

const EMPTY = { language: "sateen", text: "", source: null, formula: "", negate: false, ranges: [], fixed: {}, learner: null, settings: {}, caps: {}, scale: null, split: true, constants: [], end: null, seed: 1, name: null };
const REST = { formula: 120, model: 250 };  // ms without a key before a check

/** The language that a text is surely in, or null. */
const languageOf = text => /^\s*<(\?xml|sbml)\b/.test(text) ? "sbml" : /^(\s|\/\/.*\n)*(ctmc|dtmc|mdp|stochastic)\s/.test(text) ? "prism" : null;

export class Editor {
  /** `onChange()` whenever the document or what is known of it changes. */
  constructor(onChange) {
    Object.assign(this, { onChange, doc: { ...EMPTY }, model: null, formula: null, proposals: [], turns: { model: 0, formula: 0 } });
    const checkModel = this.recheck = rested(REST.model, () => this.checkModel()), checkFormula = rested(REST.formula, () => this.checkFormula());
    $("model").oninput = () => {
      const text = $("model").value, language = this.doc.text ? null : languageOf(text);  // of what is pasted into an empty field
      if (language) $("language").value = language;
      this.#edit({ text, ...language ? { language } : {} }, "model");
      checkModel();
    };
    $("language").onchange = () => { this.#edit({ language: $("language").value }, "model"); this.checkModel(); };
    $("formula").oninput = () => { this.#edit({ formula: $("formula").value.replace(/\s*\n\s*/g, " ") }, "formula"); checkFormula(); };
    $("negate").onchange = () => { this.#edit({ negate: $("negate").checked }, "formula"); this.checkFormula(); };
    $("learner").onchange = () => this.#edit({ learner: $("learner").value || null, settings: {} });
    $("seed").oninput = () => $("seed").validity.valid && $("seed").value !== "" && this.#edit({ seed: Number($("seed").value) });
  }

  get ready() { return Boolean(this.model && this.formula && this.doc.ranges.length && !this.problems.length); }

  /** What is wrong with the ranges, in words. */
  get problems() {
    const found = [];
    for (const { name, low, high, log } of this.doc.ranges) {
      if (!Number.isFinite(low) || !Number.isFinite(high)) found.push(`${name} needs a range: numbers in "from" and "to".`);
      else if (low >= high) found.push(`${name}: ${short(low)} is not below ${short(high)}.`);
      else if (log && low <= 0) found.push(`${name}: a log scale needs a range above 0; untick log, or raise ${short(low)}.`);
    }
    for (const [name, value] of Object.entries(this.doc.fixed)) if (!Number.isFinite(value)) found.push(`${name} needs a value.`);
    if (this.model && !this.doc.ranges.length) found.push(this.#blackBox ? "Add the parameters that your function reads." : this.proposals.length ? "Tick at least one parameter to vary." : "The model has no parameter to vary: write a name without a value in a rate.");
    return found;
  }

  /** The middle of the ranges, along their scales. */
  get middle() {
    return Object.fromEntries(this.doc.ranges.map(({ name, low, high, log }) => [name, log ? Math.sqrt(low * high) : (low + high) / 2]));
  }

  /** Show another document and check it. */
  async load(doc) {
    this.doc = { ...EMPTY, ...structuredClone(doc) };
    Object.assign(this, { model: null, formula: null, proposals: [] });
    const closed = this.doc.text === null;
    $("model").value = this.doc.text ?? "";
    $("model").disabled = $("language").disabled = closed;
    $("language").value = this.doc.language;
    const source = this.doc.source ? `from ${this.doc.source}${closed ? ", which is read by the server" : ""}` : null;
    const { scale, split, learner } = this.doc;
    const read = [scale === null ? "" : `scale = ${JSON.stringify(scale)}`, split ? "" : "split = false"];
    $("source").textContent = [source, ...read, this.doc.note].filter(Boolean).join("; ");
    $("source").hidden = !$("source").textContent;
    $("formula").value = this.doc.formula;
    $("negate").checked = this.doc.negate;
    if (learner && ![...$("learner").options].some(option => option.value === learner)) $("learner").append(make("option", { value: learner, textContent: learner }));
    $("learner").value = learner ?? "";
    $("seed").value = this.doc.seed;
    this.#sayCarried();
    for (const part of ["model", "formula"]) {
      say($(`${part}-said`));
      $(part).removeAttribute("aria-invalid");
    }
    this.#drawRanges();
    await this.checkModel();
  }

  /** Show an error of the server where it belongs; false if it belongs to no field. */
  blame(refusal) {
    const field = { model: "model", formula: "formula", space: "space" }[refusal.kind];
    if (!field) return false;
    say($(`${field}-said`), refusal);
    if (field !== "space") $(field).setAttribute("aria-invalid", "true");
    return true;
  }

  async checkModel() {
    const known = await this.#check("model", this.doc.text !== "", reply => {
      const parts = this.#blackBox ? ["a Python function"] : [`${reply.species.length} species`, count(reply.reactions, "reaction"), count(reply.parameters.length, "parameter")];
      return [make("p", { className: "fine", textContent: `${parts.join(", ")} ✓` })];
    });
    if (!known) return;
    this.proposals = this.model?.parameters ?? [];
    if (this.model && !this.#blackBox) this.#propose();
    this.#drawRanges(true);
    this.onChange();
    await this.checkFormula();
  }

  async checkFormula() {
    if (!this.model) return;
    await this.#check("formula", this.doc.formula.trim() !== "", reply => {
      const horizon = reply.horizon === null ? "looks ahead without end" : `looks ${short(reply.horizon)} ahead`;
      const end = reply.end === null ? "" : `, read on each run up to time ${short(reply.end)}`;
      return [make("p", { className: "fine" }, make("code", { textContent: reply.text }), ` ${horizon}${end} ✓`)];
    });
    this.#drawRanges(true);
    this.onChange();
  }

  // ---- inside
  get #blackBox() { return this.doc.language === "black-box"; }

  /** Names are added by hand where the model does not tell them all: a function, or PRISM's constants without a value. */
  get #open() { return this.#blackBox || this.doc.language === "prism"; }

  #edit(changes, checked = null) {
    Object.assign(this.doc, changes);
    if (checked) this[checked] = null;
    if (checked === "model") this.formula = null;
    this.#sayCarried();
    this.onChange();
  }

  /** What a study sets and the page has no field for. */
  #sayCarried() {
    const { settings, caps } = this.doc, parts = Object.entries({ ...caps, ...settings }).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
    Object.assign($("carried"), { textContent: `From the study: ${parts.join(", ")}.`, hidden: !parts.length });
  }

  /** The document as far as its numbers are numbers: a model can be checked while its ranges are being typed. */
  get #settled() {
    const ranges = this.doc.ranges.filter(({ low, high }) => Number.isFinite(low) && Number.isFinite(high));
    const fixed = Object.fromEntries(Object.entries(this.doc.fixed).filter(([, value]) => Number.isFinite(value)));
    return { ...this.doc, ranges, fixed };
  }

  /** Have a part checked; null if a later check has overtaken this one. */
  async #check(part, filled, words) {
    const turn = ++this.turns[part], said = $(`${part}-said`);
    this[part] = null;
    if (!filled) {
      say(said);
      $(part).removeAttribute("aria-invalid");
      return true;
    }
    let reply, refusal = null;
    try {
      reply = await post(`check/${part}`, { doc: this.#settled });
    } catch (error) {
      refusal = error;
    }
    if (turn !== this.turns[part]) return null;
    $(part).toggleAttribute("aria-invalid", Boolean(refusal));
    if (refusal) {
      if (refusal.kind !== "busy" && refusal.kind !== "gone" && !this.blame(refusal)) say(said, refusal);
      this.onChange();
      return true;
    }
    this[part] = reply;
    const warnings = (reply.warnings ?? []).map(textContent => make("pre", { className: "warning", textContent }));
    const notes = (reply.notes ?? []).map(textContent => make("p", { className: "fine", textContent }));
    say(said, [...words(reply), ...warnings, ...notes]);
    return true;
  }

  /** Keep what the user chose; give every other parameter of the model a range or its value. */
  #propose() {
    const names = new Set(this.proposals.map(each => each.name));
    const ranges = this.doc.ranges.filter(each => names.has(each.name));
    const fixed = Object.fromEntries(Object.entries(this.doc.fixed).filter(([name]) => names.has(name) || this.#open));
    const fresh = this.proposals.filter(({ name }) => !(name in fixed) && !ranges.some(each => each.name === name));
    // What has no value must vary; of the others two at most, since a map has two axes.
    const order = [...fresh].sort((a, b) => (a.value !== null) - (b.value !== null));
    const vary = new Set(order.filter(({ value }, k) => value === null || ranges.length + k < 2).map(each => each.name));
    for (const { name, value, low, high, log } of fresh) {
      if (vary.has(name)) ranges.push({ name, low, high, log: Boolean(log) });
      else fixed[name] = value;
    }
    Object.assign(this.doc, { ranges, fixed });
  }

  #vary(name, vary) {
    const known = this.proposals.find(each => each.name === name) ?? {};
    if (vary) {
      this.doc.ranges = [...this.doc.ranges, { name, low: known.low ?? null, high: known.high ?? null, log: Boolean(known.log) }];
      const { [name]: _, ...fixed } = this.doc.fixed;
      this.doc.fixed = fixed;
    } else {
      const range = this.doc.ranges.find(each => each.name === name);
      this.doc.ranges = this.doc.ranges.filter(each => each.name !== name);
      this.doc.fixed = { ...this.doc.fixed, [name]: known.value ?? range.low };
    }
    this.#drawRanges();
    this.onChange();
  }

  /** With `keep`, what is being typed stays as it is, such as "0.", and so does the caret. */
  #drawRanges(keep = false) {
    const matter = this.formula?.parameters;
    const proposed = this.proposals.map(each => each.name);
    const names = [...new Set([...proposed, ...proposed.length && !this.#open ? [] : [...this.doc.ranges.map(each => each.name), ...Object.keys(this.doc.fixed)]])];
    const typing = $("ranges").contains(document.activeElement) ? document.activeElement : null, { value, selectionStart, selectionEnd } = typing ?? {};
    const number = (label, value, store) => make("input", {
      type: "text", inputMode: "decimal", value: value ?? "", "aria-label": label, size: 6,
      oninput: event => { store(event.target.value.trim() === "" ? NaN : Number(event.target.value)); this.#sayProblems(); this.onChange(); },
    });
    $("ranges").tBodies[0].replaceChildren(...names.map(name => {
      const range = this.doc.ranges.find(each => each.name === name), constant = proposed.length > 0 && !proposed.includes(name);
      const idle = matter && !constant && !matter.includes(name);
      const tick = make("input", { type: "checkbox", checked: Boolean(range), disabled: constant, title: constant ? "the model cannot be read without a value of it" : "", "aria-label": `vary ${name}`, onchange: event => this.#vary(name, event.target.checked) });
      const cells = range ? [
        make("td", {}, number(`${name} from`, range.low, value => { range.low = value; })),
        make("td", {}, number(`${name} to`, range.high, value => { range.high = value; })),
        make("td", {}, make("input", { type: "checkbox", checked: range.log, "aria-label": `${name} on a log scale`, onchange: event => { range.log = event.target.checked; this.#sayProblems(); this.onChange(); } })),
      ] : [make("td", { colSpan: 3 }, number(`value of ${name}`, this.doc.fixed[name], value => { this.doc.fixed[name] = value; if (this.#open) this.recheck(); }))];
      const title = idle ? "does not matter for this property" : "";
      return make("tr", { className: idle ? "idle" : "", title }, make("td", {}, tick), make("th", { scope: "row", textContent: name }), ...cells);
    }));
    if (this.#open) $("ranges").tBodies[0].append(this.#adder(names));
    const again = typing && $("ranges").querySelector(`[aria-label="${CSS.escape(typing.getAttribute("aria-label"))}"]`);
    again?.focus();
    if (keep && again?.type === "text") {
      again.value = value;
      again.setSelectionRange(selectionStart, selectionEnd);
    }
    this.#sayProblems();
  }

  /** A row in which one more name is typed. */
  #adder(names) {
    const what = this.#blackBox ? "parameter" : "constant";
    const add = event => {
      const name = event.target.value.trim();
      if (!name || names.includes(name)) return;
      if (this.#blackBox) this.doc.ranges = [...this.doc.ranges, { name, low: 0.1, high: 10, log: true }];
      else this.doc.fixed = { ...this.doc.fixed, [name]: 1 };
      this.#drawRanges();
      this.onChange();
      if (!this.#blackBox) this.checkModel();
    };
    return make("tr", {}, make("td"), make("td", { colSpan: 4 }, make("input", { type: "text", placeholder: `name of a ${what}`, "aria-label": `Add a ${what}`, onchange: add })));
  }

  #sayProblems() {
    const problems = this.problems;
    const idle = this.formula?.parameters ? this.doc.ranges.filter(({ name }) => !this.formula.parameters.includes(name)).map(each => each.name) : [];
    const lines = [...problems, ...idle.length ? [`${idle.join(", ")} cannot change the probability of this property.`] : []];
    say($("space-said"), lines.map(textContent => make("p", { textContent })), problems.length ? "bad" : "");
  }
}
