// The wire to the server: requests with the token, the stream of states, frames as arrays.

const KEY = "sateen-token";
const HEARTBEAT = 25_000;  // ms without a line from the server, which sends one every 10 s

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", location.pathname);
}
const authorization = () => ({ Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` });

/** What the server refuses: its error object, or one of kind "gone" if it does not answer. */
export class Refusal extends Error {
  constructor(error) {
    super(error.message);
    Object.assign(this, { kind: "server", line: null, column: null, remedy: null }, error);
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(`/api/${path}`, { ...options, headers: { ...authorization(), ...options.headers } });
  } catch {
    throw new Refusal({ kind: "gone", message: "The server does not answer." });
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const kind = response.status === 401 || response.status === 403 ? "auth" : "server";
  throw new Refusal(body.error ?? { kind, message: `The server answered with status ${response.status}.` });
}

async function answer(response) {
  const body = await response.json();
  if (body.error && !("phase" in body)) throw new Refusal(body.error);
  return body;
}

export const get = async path => answer(await request(path));

export const post = async (path, body = {}) => answer(await request(path, {
  method: "POST",
  headers: { "Content-Type": "application/json", "X-Sateen": "1" },
  body: JSON.stringify(body),
}));

export const download = async path => (await request(path)).blob();

/** The newest frame after number `after`, or null. */
export async function frameAfter(after) {
  const response = await request(`frame?after=${after}`);
  return response.status === 204 ? null : parseFrame(await response.arrayBuffer());
}

/** A frame: its header, and each array. A number is the square of its share of 65,535, times the array's scale. */
export function parseFrame(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const frame = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const count = frame.nx * frame.ny;
  frame.arrays.forEach((name, k) => {
    const start = 4 + size + 2 * count * k;
    frame[name] = Float32Array.from(new Uint16Array(buffer.slice(start, start + 2 * count)), x => frame.scale[name] * (x / 65535) ** 2);
  });
  return frame;
}

/** Follow the server's states for ever. EventSource cannot carry a header, so the stream is read by fetch. */
export async function listen(onState, onConnection) {
  for (let pause = 500; ; pause = Math.min(2 * pause, 8000)) {
    const control = new AbortController();
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => control.abort(), HEARTBEAT);
    };
    try {
      alive();
      const response = await request("events", { signal: control.signal });
      onConnection("ok");
      pause = 250;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let kept = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        alive();
        const events = (kept + value).split("\n\n");
        kept = events.pop();
        for (const event of events) {
          const data = event.split("\n").filter(line => line.startsWith("data:")).map(line => line.slice(5)).join("\n");
          if (data) onState(JSON.parse(data).state);
        }
      }
    } catch (error) {
      if (error.kind === "auth") return onConnection("refused");
    } finally {
      clearTimeout(timer);
    }
    onConnection("lost", pause);
    await new Promise(done => setTimeout(done, pause));
  }
}
