// Lines and hatches over a grid of values, in units of the grid: node (i, j) lies at (i, j).

/** The segments on which a field is zero, by marching squares: a flat list x0, y0, x1, y1, … */
export function zeros(field, nx, ny) {
  const found = [];
  for (let j = 0; j < ny - 1; j++) {
    for (let i = 0; i < nx - 1; i++) {
      const k = j * nx + i;
      const a = field[k], b = field[k + 1], c = field[k + nx + 1], d = field[k + nx];
      const low = a < 0;
      if (low === b < 0 && low === c < 0 && low === d < 0) continue;
      const cut = [];
      if (low !== b < 0) cut.push(i + a / (a - b), j);
      if (b < 0 !== c < 0) cut.push(i + 1, j + b / (b - c));
      if (c < 0 !== d < 0) cut.push(i + d / (d - c), j + 1);
      if (d < 0 !== low) cut.push(i, j + a / (a - d));
      if (cut.length === 8 && (a + b + c + d < 0) !== low) found.push(...cut.slice(6), ...cut.slice(0, 6));  // a saddle: joined through its middle
      else found.push(...cut);
    }
  }
  return found;
}

/** The value at a place between nodes. */
export function between(values, nx, ny, x, y) {
  const i = Math.min(nx - 2, Math.max(0, Math.floor(x))), s = x - i;
  if (ny === 1) return values[i] + s * (values[i + 1] - values[i]);
  const j = Math.min(ny - 2, Math.max(0, Math.floor(y))), t = y - j, k = j * nx + i;
  return (1 - t) * (values[k] + s * (values[k + 1] - values[k])) + t * (values[k + nx] + s * (values[k + nx + 1] - values[k + nx]));
}

/** Diagonal strokes where `inside(x, y)`, over a sheet of width by height pixels. */
export function hatch(context, width, height, inside, gap = 7, step = 2) {
  context.beginPath();
  for (let start = -height; start < width; start += gap) {
    let begun = null;
    const first = Math.max(0, -start), last = Math.min(height, width - start);
    for (let down = first; down <= last; down += step) {
      const hit = inside(start + down, down);
      if (hit && begun === null) begun = down;
      if (begun !== null && (!hit || down + step > last)) {
        context.moveTo(start + begun, begun);
        context.lineTo(start + down, down);
        begun = null;
      }
    }
  }
  context.stroke();
}
