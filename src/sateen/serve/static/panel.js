// The panel of runs: 20 at a place that was clicked, each of them drawn when asked for; or a sample, before that.

import { $, say } from "./dom.js";
import { RunView, addChips } from "./runs.js";
import { place, probability } from "./scales.js";
import { post } from "./wire.js";

const HINT = "Click the map to make 20 runs at a point.";

export class RunsPanel {
  /** `onPicked(theta)` when another place is picked, or none; `onChange()` after an answer; `level()` is that of the band, or null while there is none. */
  constructor({ onPicked, onChange, level }) {
    Object.assign(this, { onPicked, onChange, level, picked: null, batches: 0, samples: 0, turn: 0 });
    this.view = new RunView($("run"));
  }

  /** Forget all runs: they are of another question. What is still asked for is void. */
  forget() {
    this.#begin(null);
    this.view.clear();
    this.#clear();
    this.#say({}, () => HINT);
  }

  /** Twenty runs at a place; a later click makes this one's answer void. */
  async pick(theta, batch = 0) {
    const turn = this.#begin(theta, batch);
    this.#say(theta, where => `Running 20 at ${where}…`);
    try {
      const level = this.level(), band = level === null ? null : post("predict", { points: [theta], level }).catch(() => null);
      const [reply, believed] = await Promise.all([post("runs", { theta, count: 20, batch }), band]);
      if (turn !== this.turn) return;
      if (batch === 0) this.#clear();
      this.batches = batch + 1;
      for (const key of Object.keys(this.tally)) this.tally[key] += reply[key];
      addChips(batch, reply.runs, (run, chip) => this.#choose(theta, batch, reply.by, run, chip));
      this.#tell(theta, believed);
      $("chips").dataset.click = turn;
      if (batch === 0) $("chips").firstElementChild.click();
    } catch (refusal) {
      if (turn !== this.turn) return;
      this.#say(theta, where => where);
      say($("runs-said"), refusal);
    }
    this.onChange();
  }

  /** One run at a place, before anything is learned; `blame(refusal)` shows what is wrong with the document. */
  async sample(doc, theta, seed, blame) {
    const turn = this.#begin(null);
    try {
      const reply = await post("run", { doc, theta, seed });
      if (turn !== this.turn) return;
      this.#clear();
      this.#say(theta, where => `Sample at the middle of the ranges: ${where}`);
      this.view.show(reply, "This run");
      $("run").dataset.sample = ++this.samples;
    } catch (refusal) {
      if (turn === this.turn && refusal.kind !== "busy" && !blame(refusal)) say($("runs-said"), refusal);
    }
    this.onChange();
  }

  // ---- inside
  #begin(picked, batches = 0) {
    Object.assign(this, { picked, batches });
    this.onPicked(picked);
    say($("runs-said"));
    return ++this.turn;
  }

  #clear() {
    $("chips").replaceChildren();
    $("runs-count").textContent = "";
    this.tally = { holds: 0, fails: 0, undecided: 0 };
  }

  /** Words about a place; the whole of one with many parameters is in the tip. */
  #say(theta, words) {
    Object.assign($("runs-place"), { textContent: words(place(theta)), title: place(theta, Infinity) });
  }

  #tell(theta, believed) {
    const { holds, fails, undecided } = this.tally, width = believed ? believed.upper[0] - believed.lower[0] : 0;
    const number = name => probability(believed[name][0], width);
    const belief = believed ? `; believed f = ${number("mean")} (${number("lower")} to ${number("upper")})` : "";
    this.#say(theta, where => `At ${where}${belief}`);
    $("runs-count").textContent = `${holds} of ${holds + fails + undecided} runs satisfy the property${undecided ? `, ${undecided} undecided` : ""}`;
  }

  /** Show one run of a batch with its explanation: the very run, `by` the simulator that made the batch. */
  async #choose(theta, batch, by, run, chip) {
    const turn = this.turn;
    for (const each of $("chips").children) each.setAttribute("aria-pressed", each === chip);
    try {
      const reply = await post("run", { theta, run: run.run, batch, by });
      if (turn === this.turn && chip.getAttribute("aria-pressed") === "true") this.view.show(reply, `Run ${batch * 20 + run.run + 1}`);
    } catch (refusal) {
      if (turn === this.turn && refusal.kind !== "busy") say($("runs-said"), refusal);
    }
  }
}
