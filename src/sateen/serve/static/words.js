// What the page says of the state it is in.

import { count } from "./scales.js";

const PHASES = {
  starting: "Starting", empty: "Nothing is running", checking: "Checking", compiling: "Compiling the simulator", preview: "Preview", learning: "Learning",
  paused: "Paused", stopping: "Stopping", stopped: "Stopped", certifying: "Certifying", failed: "Failed",
};

export const phase = state => PHASES[state.phase] ?? state.phase;

export const counts = state => state.runs ? `${count(state.runs, "run")} at ${count(state.points, "point")}` : "";

export const worker = state => state.worker === "starting" ? "(the worker is starting)" : "";

/** What stands in place of the map while there is none. */
export function overlay(state, ready) {
  switch (state.phase) {
    case "empty":
    case "stopped":
    case "paused": return ready ? "Ready. Press Start: the first map comes from 32 points and sharpens as runs stream in."
      : "Open a model or type one, write a property, and press Start.";
    case "compiling":
    case "checking": return "Compiling the simulator for this model and property. A preview comes first.";
    case "failed": return "There is no map: the work ended with an error.";
    case "starting": return "";
    default: return "Making the first runs…";
  }
}

/** Sentences below the map: what the reader should know about what is shown. */
export function notes(state, frame, edited) {
  const found = [];
  const constant = frame?.constant ?? state.constant;
  if (state.message) found.push(state.message);
  if (frame?.preview) found.push("This preview comes from the reference simulator while the fast one compiles. Its runs are not counted.");
  if (edited) found.push("You have edited the document since. The map and its runs are of the document as it was started; Start learns the new one.");
  if (constant) {
    const [did, value] = constant === "true" ? ["satisfied", 1] : ["violated", 0];
    found.push(`Every run so far ${did} the property, so f may be ${value} everywhere. The band says how sure that is. If you expected otherwise, look at a run, the time bounds and the ranges.`);
  }
  if (state.undecided) found.push(`${count(state.undecided, "run")} ended undecided, at a limit of events or time. They count for neither side, and the band is wider for them.`);
  if (state.worker === "restarted" && !state.message) found.push("The worker process ended unexpectedly and another took over. Counted runs are kept.");
  if (state.tabs > 1) found.push(`This session is open in ${state.tabs} tabs. What one does, all show.`);
  return found;
}

/** How much of the map is above, below and unsure. */
export function shares(frame, p) {
  let above = 0, below = 0;
  frame.mean.forEach((_, k) => {
    if (frame.lower[k] > p) above++;
    else if (frame.upper[k] < p) below++;
  });
  const all = frame.mean.length, percent = n => n && n < all / 200 ? "under 1 %" : `${Math.round(100 * n / all)} %`;
  return `Believed at ${Math.round(frame.level * 100)} % a point: above p on ${percent(above)} of the ${frame.y ? "map" : "range"}, below on ${percent(below)}, unsure (hatched) on ${percent(all - above - below)}.`;
}
