// Elements and drawings. Text is always set as text: names come from the job, and are not HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with a class and children, which are elements or text. */
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A line of the latest values, from 0 to their greatest. */
export function spark(values) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 1e-9);
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, at) => `${(at * step).toFixed(2)},${(29 - (26 * (value ?? 0)) / most).toFixed(2)}`);
  const picture = draw("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (values.length > 1) {
    picture.append(draw("polygon", { class: "area", points: `0,30 ${points.join(" ")} 100,30` }));
    picture.append(draw("polyline", { class: "line", points: points.join(" ") }));
  }
  return picture;
}

/** A bar of parts [{part, className, title, opacity}]; parts are fractions of the whole. */
export function bar(parts, className = "bar") {
  const whole = make("div", className);
  for (const { part, className: name, title, opacity } of parts) {
    const piece = make("i", name);
    piece.style.width = `${100 * part}%`;
    if (opacity !== undefined) piece.style.opacity = opacity;
    if (title) piece.title = title;
    whole.append(piece);
  }
  return whole;
}

const TRAINER = { width: 104, height: 50 };
const PSERVER = { width: 168, height: 50 };
const SMALL = { width: 140, height: 50 };
const NARROW = 480;
const GAP = 16;
const ARC_GAP = 38;
const MOST_WIRES = 96;
const MOST_ARCS = 32;
const MOST_NODES = 60;

/** Pservers above, trainers below, and an arrow from each trainer that waits to those awaited. */
export function topology(pservers, trainers, arrows, width) {
  const size = width < NARROW ? SMALL : PSERVER;
  const above = placed(pservers.slice(0, MOST_NODES), size, width, 4, GAP);
  const between = above.bottom + 64;
  const below = placed(trainers.slice(0, MOST_NODES), TRAINER, width, between, arrows.length ? ARC_GAP : GAP);
  const depth = arrows.length ? 44 : 8;
  const height = below.bottom + depth;
  const picture = draw("svg", { class: "topology", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described(pservers, trainers, arrows) });
  picture.append(draw("defs", {}, arrowHead()));
  if (pservers.length * trainers.length <= MOST_WIRES) picture.append(...wires(above.nodes, below.nodes));
  for (const [from, to] of arrows.slice(0, MOST_ARCS)) {
    const [start, end] = [below.at.get(from), below.at.get(to)];
    if (start && end) picture.append(arc(start, end, start.y + TRAINER.height < below.bottom ? ARC_GAP - 8 : 40));
  }
  picture.append(...above.nodes.map((node) => box(node, size, `pserver ${node.className}`)));
  picture.append(...below.nodes.map((node) => box(node, TRAINER, `trainer ${node.className}`)));
  return picture;
}

function described(pservers, trainers, arrows) {
  const waits = arrows.map(([from, to]) => `trainer ${from} waits for trainer ${to}`);
  return [`${pservers.length} pservers, ${trainers.length} trainers`, ...waits].join("; ");
}

/** Rows of nodes, centred; returns them with x and y, by key, and where they end. */
function placed(nodes, size, width, top, gap) {
  const across = Math.max(1, Math.floor((width + GAP) / (size.width + GAP)));
  const columns = Math.ceil(nodes.length / Math.ceil(nodes.length / across)) || 1;
  const found = nodes.map((node, at) => {
    const row = Math.floor(at / columns);
    const inRow = Math.min(columns, nodes.length - row * columns);
    const left = (width - inRow * size.width - (inRow - 1) * GAP) / 2;
    const x = left + (at % columns) * (size.width + GAP);
    return { ...node, x, y: top + row * (size.height + gap), middle: x + size.width / 2 };
  });
  const rows = Math.ceil(nodes.length / columns);
  const bottom = top + rows * (size.height + gap) - (rows ? gap : 0);
  return { nodes: found, bottom, at: new Map(found.map((node) => [node.key, node])) };
}

function wires(above, below) {
  return above.flatMap((upper) => below.map((lower) => draw("line", {
    class: lower.className.includes("ended") || !upper.reached ? "wire off" : "wire",
    x1: upper.middle, y1: upper.y + PSERVER.height, x2: lower.middle, y2: lower.y,
  })));
}

function box(node, size, className) {
  const middle = { x: node.x + size.width / 2, "text-anchor": "middle" };
  return draw("g", { class: className },
    draw("rect", { class: "node", x: node.x, y: node.y, width: size.width, height: size.height, rx: 9 }),
    draw("text", { ...middle, y: node.y + 21 }, node.title),
    draw("text", { ...middle, y: node.y + 39, class: "soft" }, node.text));
}

/** An arrow to another trainer: below both if they stand in one row, else from row to row. */
function arc(from, to, most) {
  const under = TRAINER.height;
  const isBeside = from.y === to.y;
  const isDown = from.y < to.y;
  const start = isBeside || isDown ? from.y + under : from.y;
  const end = isDown ? to.y - 7 : to.y + under + 7;
  const bend = isBeside ? start + Math.min(most, 18 + Math.abs(from.middle - to.middle) / 8) : (start + end) / 2;
  return draw("path", {
    class: "arc", "marker-end": "url(#head)",
    d: `M${from.middle},${start} C${from.middle},${bend} ${to.middle},${bend} ${to.middle},${end}`,
  });
}

function arrowHead() {
  const head = { id: "head", markerWidth: 9, markerHeight: 9, refX: 4, refY: 4, orient: "auto", markerUnits: "userSpaceOnUse" };
  return draw("marker", head, draw("path", { class: "head", d: "M0,0 L8,4 L0,8 Z" }));
}
