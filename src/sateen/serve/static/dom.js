// Small helpers to make elements. Text is set as text, never as markup.

export const $ = id => document.getElementById(id);

/** An element with properties and children; `data-` and `aria-` names become attributes. */
export function make(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.includes("-")) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter(child => child !== null));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes. */
export function shape(tag, given = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** An error with what to do about it: a message of several lines, as Python words it, says that itself. */
export const whole = ({ message, remedy }) => remedy && !message.includes("\n") ? `${message}\n  ${remedy}` : message;

/** The lines of a message: a line with a caret below it, and the caret, stay in one piece, and the others wrap. */
function pointed(text) {
  const lines = text.split("\n"), caret = line => /^\s*\^+\s*$/.test(line ?? "");
  return lines.map((textContent, k) => make("span", { textContent, className: caret(textContent) || caret(lines[k + 1]) ? "exact" : "wraps" }));
}

/** Show a message below a field: nothing, words, or an error with its caret and what to do. */
export function say(element, content = null, kind = "") {
  element.className = `said ${kind}`;
  if (content === null) return element.replaceChildren();
  if (!(content instanceof Error)) return element.replaceChildren(...[content].flat());
  element.className = "said bad";
  element.replaceChildren(make("pre", {}, ...pointed(whole(content))));
}

/** `act` after `rest` ms without another call. */
export function rested(rest, act) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, rest);
  };
}

/** One call at a time; while one is under way only the newest waits. */
export function newest(act) {
  let busy = false, waiting = null;
  return async function run(...given) {
    if (busy) { waiting = given; return; }
    busy = true;
    try {
      await act(...given);
    } finally {
      busy = false;
      if (waiting) {
        const next = waiting;
        waiting = null;
        run(...next);
      }
    }
  };
}
