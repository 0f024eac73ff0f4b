// Opening, saving and certifying: three dialogs. The browser keeps the focus inside and Escape closes.

import { $, make, say } from "./dom.js";
import { short } from "./scales.js";
import { download, get, post } from "./wire.js";

for (const dialog of document.querySelectorAll("dialog")) {
  dialog.querySelector(".close").onclick = () => dialog.close();
}

/** Have a form do its work; an error is shown in it, success closes it. */
function work(name, act) {
  const dialog = $(`${name}-dialog`), said = $(`${name}-said`), form = dialog.querySelector("form");
  form.onsubmit = async event => {
    event.preventDefault();
    const button = form.querySelector(".primary");
    button.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (refusal) {
      say(said, refusal);
    } finally {
      button.disabled = false;
    }
  };
}

/** `onAsked(true)` before and `onAsked(false)` after something is opened, `onOpened(doc, state)` if it was; `onNew()` for an empty model. */
export function openDialog({ onAsked, onOpened, onNew }) {
  const dialog = $("open-dialog");
  $("new").onclick = () => { dialog.close(); onNew(); };
  const choose = async what => {
    say($("open-said"), [make("p", { textContent: "Opening…" })]);
    $("open-title").scrollIntoView();  // what is said stands below it
    onAsked(true);
    try {
      const { doc, state } = await post("open", what);
      say($("open-said"));
      dialog.close();
      onOpened(doc, state);
    } catch (refusal) {
      say($("open-said"), refusal);
    } finally {
      onAsked(false);
    }
  };
  const list = (title, items) => items.length ? [make("h3", { textContent: title }), make("ul", {}, ...items.map(([label, about, what]) =>
    make("li", {}, make("button", { type: "button", textContent: label, "data-open": Object.keys(what)[0], onclick: () => choose(what) }), make("span", { className: "quiet", textContent: about }))))] : [];
  $("open").onclick = async () => {
    say($("open-said"));
    $("open-lists").replaceChildren();
    dialog.showModal();
    try {
      const hello = await get("hello");
      $("open-lists").replaceChildren(
        ...list("Sessions", hello.sessions.map(({ name, formula, runs }) => [name, `${runs.toLocaleString("en")} runs of ${formula}`, { session: name }])),
        ...list(`Files in ${hello.folder}`, hello.files.map(({ path, kind }) => [path, kind, { path }])),
        ...list("Examples", hello.examples.map(({ name, title }) => [name, title, { example: name }])));
    } catch (refusal) {
      say($("open-said"), refusal);
    }
  };
}

/** `proposed()` is the name to begin with, `free(name)` promises one like it that no study has; `onSaved(reply)` after a study is saved. */
export function saveDialog({ proposed, free, onSaved }) {
  const field = $("save-name");
  $("save").onclick = async () => {
    const first = proposed();
    say($("save-said"));
    field.value = first;
    $("save-dialog").showModal();
    field.select();
    const name = await free(first).catch(() => first);
    if (field.value !== first || name === first || !$("save-dialog").open) return;  // the user has typed another one
    field.value = name;
    if (document.activeElement === field) field.select();
  };
  work("save", async () => onSaved(await post("save", { name: $("save-name").value })));
}

/** `threshold()` is the threshold of the map. */
export function certifyDialog({ threshold, onState }) {
  $("certify").onclick = () => {
    say($("certify-said"));
    $("certify-p").value = short(threshold(), 6);
    $("certify-dialog").showModal();
  };
  work("certify", async () => {
    const runs = $("certify-runs").value;
    const { state } = await post("certify", {
      threshold: Number($("certify-p").value), region: $("region").value, confidence: Number($("confidence").value), runs: runs ? Number(runs) : null,
    });
    onState(state);
  });
}

/** Download the report of a saved study. */
export async function fetchReport(name) {
  const address = URL.createObjectURL(await download(`report?name=${encodeURIComponent(name)}`));
  make("a", { href: address, download: `${name}.html` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
