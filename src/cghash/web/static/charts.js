// Line charts in SVG, small and by hand; the numbers stand beside them as a table for those who cannot see them.

import { el, figure, svg } from "./dom.js";

const WIDTH = 420;
const HEIGHT = 210;
const EDGE = { left: 46, right: 12, top: 10, bottom: 34 };
const CLASSES = ["curve", "curve second", "curve third"];
const ROWS = 20; // of the table: every so-manieth point

/** About `count` round numbers that span [least, most]. */
export function ticks(least, most, count = 5) {
  const raw = (most - least) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((one) => one * power >= raw) * power;
  const first = Math.ceil(least / step - 1e-9);
  return Array.from({ length: Math.floor(most / step + 1e-9) - first + 1 }, (_, at) => (first + at) * step);
}

const finite = (value) => value !== null && Number.isFinite(value);

/** series: [{name, x: [..], y: [..]}]; label: what the chart shows, in words; from: the least of the y axis. */
export function lineChart({ series, label, xLabel, from = null, to = null, xFrom = null, xTo = null }) {
  const points = series.map(({ x, y }) => x.map((at, i) => [at, y[i]]).filter(([at, value]) => finite(at) && finite(value)));
  const xs = points.flat().map(([at]) => at);
  const ys = points.flat().map(([, value]) => value);
  const x = scale(xFrom ?? Math.min(...xs), xTo ?? Math.max(...xs), EDGE.left, WIDTH - EDGE.right);
  const y = scale(from ?? Math.min(...ys), to ?? Math.max(...ys), HEIGHT - EDGE.bottom, EDGE.top);
  const path = (line) => line.map(([at, value], i) => `${i ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    ticks(...y.domain, 4).map((value) => horizontal(y(value), figure(value))),
    ticks(...x.domain, 6).map((value) => svg("text", { x: x(value), y: HEIGHT - EDGE.bottom + 16, "text-anchor": "middle" }, figure(value))),
    svg("text", { x: (EDGE.left + WIDTH - EDGE.right) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, xLabel),
    points.map((line, i) => svg("path", { class: CLASSES[i], d: path(line) })));
  return el("figure", {}, el("figcaption", {}, series.map(({ name }, i) => key(name, CLASSES[i]))), drawing, table(series, xLabel, label));
}

function scale(least, most, low, high) {
  const spread = most - least || Math.abs(most) || 1;
  const place = (value) => low + ((value - least) / spread) * (high - low);
  place.domain = [least, least + spread];
  return place;
}

const horizontal = (y, words) => svg("g", {},
  svg("path", { class: "axis", d: `M${EDGE.left} ${y}H${WIDTH - EDGE.right}` }),
  svg("text", { x: EDGE.left - 6, y: y + 4, "text-anchor": "end" }, words));

const key = (name, line) => el("span", { class: "key" },
  svg("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" }, svg("path", { class: line, d: "M0 5H26" })), name);

function table(series, xLabel, label) {
  const [{ x }] = series;
  const every = Math.max(1, Math.ceil(x.length / ROWS));
  const rows = x.map((_, i) => i).filter((i) => i % every === 0 || i === x.length - 1);
  return el("details", {}, el("summary", {}, "The numbers"), el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
    el("table", {}, el("thead", {}, el("tr", {}, [xLabel, ...series.map((one) => one.name)].map((word) => el("th", { scope: "col" }, word)))),
      el("tbody", {}, rows.map((i) => el("tr", {}, el("th", { scope: "row" }, figure(x[i])), series.map((one) => el("td", {}, figure(one.y[i])))))))));
}
