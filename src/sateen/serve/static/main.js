// The page: it joins the editor, the map, the runs and the dialogs to the server's state.

import { certifyDialog, fetchReport, openDialog, saveDialog } from "./dialogs.js";
import { $, make, newest, rested, say, whole } from "./dom.js";
import { Editor } from "./editor.js";
import { MapView, worded } from "./map.js";
import { RunsPanel } from "./panel.js";
import { place, short, unitOf, valueAt } from "./scales.js";
import { frameAfter, get, listen, post } from "./wire.js";
import * as words from "./words.js";

const body = document.body, DRAFT = "sateen-draft";
let state = { phase: "starting", runs: 0, points: 0, frame: 0, claims: [], tabs: 1 };
let hello = null, frame = null, started = null, view = null, sampled = null, told = "";

const editor = new Editor(() => {
  sessionStorage.setItem(DRAFT, JSON.stringify(editor.doc));
  refresh();
  sampleSoon();
});
const map = new MapView($("map"), {
  onPick: theta => runs.pick(theta),
  onPoint: (value, theta) => {
    $("readout").textContent = value ? `${place(theta)}: ${worded(value, frame.level)}` : "";
    $("readout").title = value ? place(theta, Infinity) : "";
  },
});

const runs = new RunsPanel({ onPicked: picked => map.set({ picked }), onChange: refresh, level: () => frame && !frame.preview ? frame.level : null });

// ---- what the server says
function onState(next) {
  if (starting) { held = next; return; }
  if (next.version < state.version) return;  // an answer and the events come by two ways
  const before = state;
  state = next;
  if (!hello) boot();
  body.dataset.phase = state.phase;
  if (before.campaign !== undefined && state.campaign !== before.campaign) {
    runs.forget();
    if (state.campaign !== mine) adopt();
  }
  if (!state.frame && state.phase !== "stopping") dropFrame();
  else if (state.frame !== frame?.frame) pull();
  const sentence = [words.phase(state), state.claims.filter(each => each.done).at(-1)?.sentence].filter(Boolean).join(". ");
  if (sentence !== told) $("live").textContent = told = sentence;  // one announcement a change, not one a tick
  refresh();
}

let starting = false, held = null;  // between asking for another campaign and its first state, what comes is of the one before
/** The answer has come; if it was a refusal, the one before goes on. */
function settle() {
  starting = false;
  if (held) onState(held);
  held = null;
}
let mine;  // the campaign that this tab asked for
/** Take the state that an own request has led to. */
function own(next) {
  const last = held?.version > next.version ? held : next;
  [starting, held, problem] = [false, null, null];
  mine = next.campaign;
  onState(last);
}

/** Another tab has opened or started something: show its document. */
async function adopt() {
  hello = await get("hello").catch(() => hello);
  if (hello.open) show(hello.open, true);
}

let epoch = 0;  // frames that were asked for before a new start or opening are not shown after it
const pull = newest(async () => {
  const asked = epoch;
  const next = await frameAfter(frame?.frame ?? 0).catch(() => null);
  if (!next || !state.frame || starting || asked !== epoch) return;
  frame = next;
  performance.clearMeasures("frame");
  const start = performance.now();
  map.set({ frame });
  performance.measure("frame", { start });
  if (!viewing) adoptView();
  Object.assign($("map").dataset, { frame: frame.frame, points: frame.points, runs: frame.runs, preview: frame.preview });
  refresh();
  if (state.frame > frame.frame) pull();
});

function dropFrame() {
  epoch++;
  if (!frame) return;
  frame = null;
  for (const name of ["frame", "points", "runs", "preview"]) delete $("map").dataset[name];
  map.set({ frame: null });
}

const running = () => ["compiling", "preview", "learning", "certifying"].includes(state.phase);

// ---- what is shown
function refresh() {
  const { phase } = state, edited = Boolean(started && frame && JSON.stringify(started) !== JSON.stringify(editor.doc));
  const online = body.dataset.connection === "ok", going = running();
  const halted = phase === "paused" || (phase === "stopped" && Boolean(state.session));
  const learned = online && Boolean(frame && !frame.preview);
  body.toggleAttribute("data-edited", edited);
  $("session").textContent = state.session ?? "";
  $("phase").textContent = online ? words.phase(state) : "No connection";
  $("counts").textContent = words.counts(state);
  $("worker").textContent = online ? words.worker(state) : "";
  $("start").disabled = !(online && editor.ready) || phase === "stopping";
  $("start").textContent = going || frame ? "Start again" : "Start";
  $("pause").disabled = !online || !(going || halted);
  $("pause").textContent = halted ? "Resume" : "Pause";
  $("stop").disabled = !online || !(going || phase === "paused");
  $("save").disabled = !(learned && state.runs);
  $("report").disabled = !(online && state.saved);
  $("sample").disabled = !(online && editor.ready);
  $("refine-unsure").disabled = !learned;
  $("refine-here").disabled = !(learned && runs.picked);
  $("certify").disabled = !learned || phase === "certifying";
  $("another").disabled = !(online && runs.picked && runs.batches);
  $("mode").disabled = Boolean(frame && !frame.y);
  $("preview").hidden = !frame?.preview;
  for (const label of document.querySelectorAll(".axis")) label.hidden = !(frame && view);
  $("overlay").textContent = frame ? "" : words.overlay(state, editor.ready);
  $("notes").replaceChildren(...words.notes(state, frame, edited).map(textContent => make("p", { className: "note", textContent })));
  $("map-title").textContent = `f(${frame ? [frame.x.name, frame.y?.name].filter(Boolean).join(", ") : "θ"})`;
  $("p-said").textContent = frame ? words.shares(frame, map.p) : "";
  showClaims();
  showBanner();
}

let claimed = "";
function showClaims() {
  const content = JSON.stringify(state.claims);
  if (content === claimed) return;  // so that an opened certificate stays open
  claimed = content;
  $("claims").firstElementChild.replaceChildren(...state.claims.map(claim => make("li", { className: `${claim.done ? "done" : ""} ${claim.holds === false ? "unshown" : ""}` },
    make("p", { className: "sentence", textContent: claim.sentence || `Testing the threshold ${short(claim.threshold)} with fresh runs…` }),
    claim.note ? make("p", { className: "quiet", textContent: claim.note }) : null,
    claim.done ? null : make("progress", typeof claim.progress === "number" ? { value: claim.progress, max: 1, "aria-label": "progress" } : { "aria-label": "progress" }),
    claim.text ? make("details", {}, make("summary", { textContent: "certificate" }), make("pre", { textContent: claim.text })) : null)));
}

function showBanner() {
  const { connection } = body.dataset, error = state.error;
  const shown = connection === "refused" ? "This page has no valid key. Open the address that `sateen serve` printed, with all that stands after the #."
    : connection === "lost" ? "The server does not answer. It may have been stopped: start `sateen serve` again, and open the address that it prints. This page keeps trying."
      : error ? whole(error) : problem;
  $("banner").hidden = !shown;
  if ($("banner").textContent !== (shown || "")) $("banner").replaceChildren(...shown ? [make("pre", { textContent: shown })] : []);
}

let problem = null;  // what the last request of this tab was refused for
/** Ask the server; a refusal is shown at the field to blame, or in the banner. */
async function act(path, content = {}) {
  problem = null;
  try {
    const reply = await post(path, content);
    if (reply.state) own(reply.state);
    return reply;
  } catch (refusal) {
    if (!editor.blame(refusal)) problem = whole(refusal);
    refresh();
    return null;
  }
}

// ---- axes and sliders
let viewing = 0;
const sendView = newest(async () => {
  viewing++;
  try {
    await post("view", view);
    await pull();
    await new Promise(done => setTimeout(done, 60));
  } catch (refusal) {
    problem = whole(refusal);
    refresh();
  } finally {
    viewing--;
  }
});

/** Show the axes and sliders that the frame was made for. */
function adoptView() {
  if (!started) return;
  const same = view && JSON.stringify([view.x, view.y, view.sliders]) === JSON.stringify([frame.view.x, frame.view.y ?? null, frame.view.sliders]);
  if (same) return;
  view = { x: frame.view.x, y: frame.view.y ?? null, sliders: { ...frame.view.sliders } };
  drawAxes();
}

function drawAxes() {
  const names = started.ranges.map(each => each.name);
  const options = (chosen, more = []) => [...names.map(name => [name, name]), ...more].map(([value, textContent]) => make("option", { value, textContent, selected: value === chosen }));
  $("x-axis").replaceChildren(...options(view.x));
  $("y-axis").replaceChildren(...options(view.y ?? "", [["", "none"]]));
  $("y-axis").disabled = names.length < 2;
  $("sliders").replaceChildren(...started.ranges.filter(({ name }) => name in view.sliders).map(range => {
    const shown = make("output", { textContent: short(view.sliders[range.name]) });
    const input = make("input", {
      type: "range", min: 0, max: 1, step: 0.01, value: unitOf(range, view.sliders[range.name]), "aria-label": range.name,
      oninput: () => {
        view.sliders[range.name] = valueAt(range, Number(input.value));
        shown.textContent = short(view.sliders[range.name]);
        sendView();
      },
    });
    return make("label", {}, make("span", { textContent: range.name }), input, shown);
  }));
}

function changeAxes(x, y) {
  const sliders = {};
  for (const range of started.ranges) {
    if (range.name !== x && range.name !== y) sliders[range.name] = view.sliders[range.name] ?? editorMiddle(range);
  }
  view = { x, y: y || null, sliders };
  drawAxes();
  sendView();
}
const editorMiddle = range => valueAt(range, 0.5);
$("x-axis").onchange = () => changeAxes($("x-axis").value, $("x-axis").value === view.y ? view.x : view.y);
$("y-axis").onchange = () => changeAxes($("y-axis").value === view.x ? view.y ?? otherThan(view.x) : view.x, $("y-axis").value);
const otherThan = name => started.ranges.find(each => each.name !== name).name;

// ---- mode, points, threshold
for (const radio of document.querySelectorAll("[name=mode]")) radio.onchange = () => map.set({ mode: radio.value });
$("points").onchange = () => map.set({ showPoints: $("points").checked });
function threshold(p) {
  performance.clearMeasures("threshold");
  const start = performance.now();
  map.set({ p });
  performance.measure("threshold", { start });
  $("map").dataset.threshold = p;
  $("p-said").textContent = frame ? words.shares(frame, p) : "";
}
$("p").oninput = () => { $("p-value").value = $("p").value; threshold(Number($("p").value)); };
$("p-value").oninput = () => {
  if (!$("p-value").validity.valid || $("p-value").value === "") return;
  $("p").value = $("p-value").value;
  threshold(Number($("p-value").value));
};

// ---- runs
const sample = seed => runs.sample(editor.doc, editor.middle, seed, refusal => editor.blame(refusal));
const sampleSoon = rested(400, () => {
  const key = JSON.stringify([editor.doc.text, editor.doc.formula, editor.doc.ranges, editor.doc.fixed]);
  if (!editor.ready || key === sampled || starting || running() || (frame && !body.hasAttribute("data-edited"))) return;
  sampled = key;
  sample(editor.doc.seed);
});
$("sample").onclick = () => sample(editor.doc.seed + runs.samples);
$("another").onclick = () => runs.pick(runs.picked, runs.batches);

// ---- the campaign
$("start").onclick = async () => {
  const before = started;
  started = structuredClone(editor.doc);
  view = null;
  dropFrame();
  starting = true;
  const begun = await act("campaign", { doc: started, name: null });
  settle();
  if (begun) return;
  started = before;
  pull();
};
$("pause").onclick = () => act($("pause").textContent === "Resume" ? "resume" : "pause");
$("stop").onclick = () => act("stop");
$("refine-unsure").onclick = () => act("refine", { where: "unsure", threshold: map.p, runs: null });
$("refine-here").onclick = () => act("refine", { where: { theta: runs.picked }, threshold: null, runs: null });
$("report").onclick = () => fetchReport(state.saved.replace(/\.toml$/, "")).catch(refusal => { problem = whole(refusal); refresh(); });

/** Show a document; `learned` if the server has a campaign of it. */
function show(doc, learned) {
  started = learned ? doc : null;
  view = null;
  sampled = null;
  return editor.load(doc).then(() => {
    if (learned) started = structuredClone(editor.doc);
    if (frame) adoptView();
    refresh();
  });
}
openDialog({
  onAsked: asked => { if (asked) starting = true; else settle(); },
  onOpened: (doc, next) => { dropFrame(); show(doc, Boolean(next.frame)); own(next); },
  onNew: () => { editor.load({}); $("model").focus(); },
});
const savedName = () => state.saved?.replace(/\.toml$/, "");
/** The name under which this was saved, or one that no study has. */
async function freeName(stem) {
  if (stem === savedName()) return stem;
  const files = new Set((await get("hello")).files.map(({ path }) => path));
  for (let n = 1; ; n++) {
    const name = n === 1 ? stem : `${stem}-${n}`;
    if (!files.has(`${name}.toml`)) return name;
  }
}
saveDialog({
  proposed: () => savedName() ?? state.session ?? "study",
  free: freeName,
  onSaved: reply => { $("live").textContent = `Saved as ${reply.path}`; problem = null; },
});
certifyDialog({ threshold: () => map.p, onState: own });

// ---- start
let greeting = get("hello");  // asked for at once, for use when the first state is there
greeting.catch(() => null);
/** After the first state: what can be opened, and what is open. */
async function boot() {
  hello = {};
  try {
    hello = await (greeting ?? get("hello"));
  } catch (refusal) {
    hello = greeting = null;
    problem = whole(refusal);
    return refresh();
  }
  document.title = `sateen: ${hello.folder}`;
  $("learner").replaceChildren(make("option", { value: "", textContent: "the usual one" }), ...hello.learners.map(value => make("option", { value, textContent: value })));
  const open = hello.open, draft = JSON.parse(sessionStorage.getItem(DRAFT)), learned = state.frame > 0 || state.runs > 0;
  if (!learned && draft && (!open || draft.source === open.source)) await show(draft, false);  // a reload keeps what was typed
  else if (open) await show(open, learned);
  body.dataset.ready = "yes";
  performance.mark("ready");
  if (open) pull();
}
listen(onState, connection => {
  body.dataset.connection = connection;
  refresh();
});
refresh();
