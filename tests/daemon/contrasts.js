// Contrasts of all texts with what is behind them, by the formula of WCAG 2: [{text, contrast}].
() => {
  const parsed = (color) => {
    const srgb = color.match(/^color\(srgb ([^)]+)\)$/);
    if (srgb) {
      const [r, g, b, a = "1"] = srgb[1].replace("/", " ").split(/\s+/);
      return [255 * r, 255 * g, 255 * b, Number(a)];
    }
    const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = (front, back) => front.slice(0, 3).map((value, at) => value * front[3] + back[at] * (1 - front[3]));
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const contrast = (one, other) => {
    const [less, more] = [light(one), light(other)].sort((a, b) => a - b);
    return (more + 0.05) / (less + 0.05);
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const box = at.tagName === "g" && at.querySelector(".node");
      layers.push(parsed(box ? getComputedStyle(box).fill : getComputedStyle(at).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reduceRight((back, front) => over(front, back), [255, 255, 255]);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    if (!text || element.closest("noscript") || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const back = behind(element);
    const front = over(parsed(element.closest("svg") ? style.fill : style.color), back);
    found.push({ text, contrast: contrast(front, back) });
  }
  return found;
}
