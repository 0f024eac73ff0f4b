// Colours that colour-blind eyes can tell apart: cividis for values, Okabe and Ito's for lines.

const CIVIDIS = [
  [0, 34, 78], [0, 46, 106], [26, 56, 111], [50, 67, 109], [67, 78, 108], [83, 90, 109], [97, 101, 111], [111, 112, 115], [125, 124, 120],
  [140, 136, 120], [155, 148, 118], [171, 160, 114], [188, 174, 108], [205, 187, 99], [222, 201, 88], [240, 216, 70], [254, 232, 56],
];

const pack = (r, g, b) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

/** 256 colours as pixels, for a value between 0 and 1 of its scale. */
export const PIXELS = new Uint32Array(256).map((_, i) => {
  const at = i / 255 * 16, k = Math.min(15, Math.floor(at)), part = at - k;
  return pack(...CIVIDIS[k].map((from, c) => Math.round(from + part * (CIVIDIS[k + 1][c] - from))));
});

/** A colour of the style sheet, such as "--ink": it differs between light and dark. */
export const styled = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A colour of the style sheet, written as #rrggbb there, as a pixel. */
export function pixel(name) {
  const hex = parseInt(styled(name).slice(1), 16);
  return pack(hex >> 16, hex >> 8 & 255, hex & 255);
}

/** The colour of species number k; beyond eight they are also dashed. */
export const line = k => ({ colour: `var(--c${k % 8})`, dash: ["", "5 3", "1.5 2.5"][Math.floor(k / 8) % 3] });
