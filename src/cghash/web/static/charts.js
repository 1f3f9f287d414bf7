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
  const points = series.map(({ x, y }) => x.map((at, i) => [at, y[i]]).filter((pair) => pair.every(finite)));
  const xs = points.flat().map(([at]) => at);
  const ys = points.flat().map(([, value]) => value);
  const x = scale(xFrom ?? Math.min(...xs), xTo ?? Math.max(...xs), EDGE.left, WIDTH - EDGE.right);
  const y = scale(from ?? Math.min(...ys), to ?? Math.max(...ys), HEIGHT - EDGE.bottom, EDGE.top);
  const path = (line) => `M${line.map(([at, value]) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    ticks(...y.domain, 4).map((value) => horizontal(y(value), figure(value))),
    ticks(...x.domain, 6).map((value) => centred(x(value), HEIGHT - EDGE.bottom + 16, figure(value))),
    centred((EDGE.left + WIDTH - EDGE.right) / 2, HEIGHT - 3, xLabel),
    points.map((line, i) => svg("path", { class: CLASSES[i], d: path(line) })));
  const keys = series.map(({ name }, i) => key(name, CLASSES[i]));
  return el("figure", {}, el("figcaption", {}, keys), drawing, table(series, xLabel, label));
}

function scale(least, most, low, high) {
  const spread = most - least || Math.abs(most) || 1;
  const place = (value) => low + ((value - least) / spread) * (high - low);
  place.domain = [least, least + spread];
  return place;
}

const centred = (x, y, words) => svg("text", { x, y, "text-anchor": "middle" }, words);

const horizontal = (y, words) => svg("g", {},
  svg("path", { class: "axis", d: `M${EDGE.left} ${y}H${WIDTH - EDGE.right}` }),
  svg("text", { x: EDGE.left - 6, y: y + 4, "text-anchor": "end" }, words));

const key = (name, line) => el("span", { class: "key" },
  svg("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" }, svg("path", { class: line, d: "M0 5H26" })), name);

function table(series, xLabel, label) {
  const [{ x }] = series;
  const every = Math.max(1, Math.ceil(x.length / ROWS));
  const rows = x.map((_, i) => i).filter((i) => i % every === 0 || i === x.length - 1);
  const head = [xLabel, ...series.map(({ name }) => name)].map((word) => el("th", { scope: "col" }, word));
  const line = (i) => [el("th", { scope: "row" }, figure(x[i])), series.map(({ y }) => el("td", {}, figure(y[i])))];
  const body = rows.map((i) => el("tr", {}, line(i).flat()));
  return el("details", {}, el("summary", {}, "The numbers"),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
      el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body))));
}
