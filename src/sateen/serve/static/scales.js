// Ranges, numbers as words, and ticks.

/** The value at `unit` of a range, 0 to 1 along its scale. */
export const valueAt = ({ low, high, log }, unit) => log ? low * (high / low) ** unit : low + (high - low) * unit;

/** Where a value lies in a range, 0 to 1 along its scale. */
export const unitOf = ({ low, high, log }, value) => log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);

/** A number in few digits. */
export function short(value, digits = 3) {
  if (!Number.isFinite(value)) return String(value);
  const text = Number(value.toPrecision(digits));
  return Math.abs(text) >= 1e5 || (text && Math.abs(text) < 1e-3) ? text.toExponential().replace("e+", "e") : String(text);
}

/** A probability with as many digits as its band deserves. */
export function probability(value, width = 0) {
  const digits = width > 0 ? Math.min(12, Math.max(2, 1 - Math.floor(Math.log10(width)))) : 3;
  return value.toFixed(digits);
}

export const count = (n, noun) => `${Math.round(n).toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

/** A place in words, with so many of its parameters: of a map, those on the axes come first. */
export function place(theta, most = 4) {
  const parts = Object.entries(theta).map(([name, value]) => `${name} = ${short(value)}`);
  return parts.length <= most + 1 ? parts.join(", ") : `${parts.slice(0, most).join(", ")} and ${parts.length - most} more`;
}

/** Round values for an axis of about `most` ticks. */
export function ticks({ low, high, log }, most = 6) {
  if (log) {
    const decades = Math.log10(high / low);
    const steps = decades > most ? [1] : decades * 3 > most ? [1, 3] : decades > .7 ? [1, 2, 5] : null;
    if (steps) {
      const skip = Math.max(1, Math.ceil(decades / most));
      const found = [];
      for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
        for (const s of steps) {
          const value = s * 10 ** e;
          if (e % skip === 0 && value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) found.push(value);
        }
      }
      return found;
    }
  }
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find(s => s * power >= raw) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}
