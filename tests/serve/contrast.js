// The luminance of the page's background, and the least contrast of text that is shown and can be used (WCAG 2).
() => {
  const parse = text => {
    const numbers = text.match(/[\d.]+/g).map(Number);
    return numbers.length === 3 ? [...numbers, 1] : numbers;
  };
  const over = (top, under) => [0, 1, 2].map(k => top[k] * top[3] + under[k] * (1 - top[3])).concat(1);
  const behind = element => {
    if (!element) return [255, 255, 255, 1];
    const colour = parse(getComputedStyle(element).backgroundColor);
    return colour[3] === 1 ? colour : over(colour, behind(element.parentElement));
  };
  const luminance = colour => {
    const [r, g, b] = colour.slice(0, 3).map(c => c / 255).map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let least = { contrast: 21, where: "" };
  for (const element of document.querySelectorAll("body *")) {
    const written = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!written || !element.checkVisibility() || element.closest(":disabled, .unseen, option, [aria-pressed=false]:not(.chip)")) continue;
    const style = getComputedStyle(element), under = behind(element);
    const ink = over(parse(element instanceof SVGElement ? style.fill : style.color), under);
    const [dark, light] = [luminance(ink), luminance(under)].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < least.contrast) least = { contrast, where: element.outerHTML.slice(0, 120) };
  }
  return { ...least, page: luminance(behind(document.body)) };
}
