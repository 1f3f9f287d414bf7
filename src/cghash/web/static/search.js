// The search page: all items to scroll through, or the neighbours of one of them, of a text, a vector or an image.

import { get, post, postImage } from "./api.js";
import { imageOf, setUpAsking } from "./asking.js";
import { announce, byId, count, el, noProblem, problem, several, toast } from "./dom.js";
import { Filters } from "./filters.js";
import { VirtualGrid } from "./grid.js";
import { address, caption, face, faceAndCaption, learnRanges } from "./items.js";
import { ItemPages } from "./pages.js";
import { drawColumns, modelName } from "./results.js";
import { readState, writeState } from "./state.js";

const PAGE = 24;
const MOST = 1000;

let workspace;
let models; // the newest first
let filters;
let state;
let trail = []; // [{query, words}], the last one is shown
let shown = PAGE; // neighbours asked for
let asking = new AbortController();
let wholeItem = null; // the item asked about, with all of its text

const pages = new ItemPages(
  (start, number, signal) => get("/api/items", { start, count: number, filter: state.filters }, { signal }),
  {
    arrived: (first, last) => grid.refresh(first, last),
    failed: (error) => toast(`${error.message} Some items are missing.`, { word: "Try again", run: () => pages.want(grid.first, grid.last) }),
  },
);

const grid = new VirtualGrid(byId("grid"), {
  label: "Items",
  looked: (first, last) => {
    const screen = last - first + 1; // one more on either side, for who scrolls on
    pages.want(Math.max(0, first - screen), Math.min(grid.total - 1, last + screen));
  },
  fill: (link, index) => {
    const item = pages.item(index);
    if (!item) {
      link.replaceChildren(el("span", { class: "face waiting" }), el("span", { class: "title" }, "…"));
      return;
    }
    link.href = address(item);
    link.onclick = (event) => choose(event, item);
    link.replaceChildren(...faceAndCaption(item));
  },
});

function choose(event, item) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open({ item: item.row }, item.title);
}

// ---- where we are

/** Ask something new: a step in the browser's history. */
function open(query, words) {
  go({ query }, [...trail, { query, words }]);
}

function go(change, newTrail = trail) {
  history.replaceState({ ...history.state, offset: grid.offset }, "");
  state = { ...state, ...change };
  trail = newTrail;
  history.pushState({ trail, query: state.query }, "", writeState(state));
  shown = PAGE;
  scrollTo({ top: 0, behavior: "instant" });
  render();
}

/** The same question in another way: no step back for every move of a slider. */
function adjust(change) {
  state = { ...state, ...change };
  history.replaceState({ ...history.state, trail, query: state.query }, "", writeState(state));
  render();
}

function restore() {
  const kept = history.state ?? {};
  state = readState(location.search, kept);
  trail = kept.trail ?? (state.query ? [{ query: state.query, words: null }] : []);
  shown = PAGE;
  render(kept.offset ?? 0);
}

function render(offset = 0) {
  noProblem();
  filters.show(state.filters);
  byId("browse").hidden = state.query !== null;
  byId("found").hidden = state.query === null;
  if (state.query === null) browse(offset);
  else find();
}

// ---- all items

async function browse(offset) {
  document.title = `Search · ${workspace.title}`;
  asking.abort();
  pages.reset();
  try {
    const { total } = await get("/api/items", { start: 0, count: 1, filter: state.filters });
    const words = total === workspace.items ? several(total, "item") : `${count(total)} of ${several(workspace.items, "item")}`;
    byId("browse-count").textContent = `${words}. Choose one to see what is near it.`;
    announce(words);
    grid.show(total, offset);
    if (total === 0) problem("No item passes the filters.", [["Remove them", () => adjust({ filters: [] })]]);
  } catch (error) {
    problem(error.message, state.filters.length ? [["Remove the filters", () => adjust({ filters: [] })]] : undefined);
  }
}

// ---- neighbours

const modelOf = (choice) => (choice === "" ? workspace.current ?? "vectors" : choice);
const bitsOf = (model) => models.find((one) => one.version === model)?.bits ?? null;

function ask(choice, signal) {
  const model = modelOf(choice);
  const most = bitsOf(model);
  const bits = most && state.bits && state.bits < most ? state.bits : null;
  const query = state.query;
  if (!query.image) return post("/api/search", { ...query, k: shown, model, bits, filters: state.filters, details: true }, { signal });
  return postImage("/api/search/image", { k: shown, model, bits, filter: state.filters, details: true }, imageOf(query.image), { signal });
}

async function whole(row, signal) {
  if (row === undefined) return null;
  if (wholeItem?.row !== row) wholeItem = await get(`/api/items/${row}`, {}, { signal });
  return wholeItem;
}

async function find() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  drawControls();
  if (state.query.image && !imageOf(state.query.image)) {
    byId("found").hidden = true;
    problem("The image is no longer here: choose or drop it again.", [["All items", () => go({ query: null }, [])]]);
    return;
  }
  byId("columns").setAttribute("aria-busy", "true");
  try {
    const choices = state.beside === "" ? [state.model] : [state.model, state.beside];
    const [item, ...answers] = await Promise.all([whole(state.query.item, signal), ...choices.map((choice) => ask(choice, signal))]);
    if (signal.aborted) return;
    drawFound(item, answers);
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("found").hidden = true;
    problem(error.message, [["All items", () => go({ query: null }, [])]]);
  } finally {
    if (!signal.aborted) byId("columns").removeAttribute("aria-busy");
  }
}

function drawFound(item, answers) {
  const [{ results, milliseconds }] = answers;
  const words = item?.title ?? wordsOf(state.query);
  trail.at(-1).words = words;
  document.title = `${words} · ${workspace.title}`;
  drawTrail();
  drawQuery(item, words);
  const number = results.length;
  byId("found-note").replaceChildren(`The ${several(number, "nearest", "nearest")} of ${several(workspace.items, "item")}, in ${milliseconds.toFixed(1)} ms. `,
    ...(workspace.current ? [] : ["No model yet: these are near by their vectors. ", el("a", { href: "/teach" }, "Teach"), " a while, then learn."]));
  announce(`${several(number, "neighbour")} of ${words}.`);
  drawColumns(byId("columns"), answers, { item: state.query.item ?? null, open: (item) => open({ item: item.row }, item.title) });
  byId("more").hidden = number < shown || shown >= MOST;
}

const wordsOf = ({ text, vector, image }) => text ?? image ?? `a vector of ${vector.length} numbers`;

function drawTrail() {
  const steps = [{ query: null, words: "All items" }, ...trail];
  const crumbs = steps.map(({ query, words }, at) => {
    const last = at === steps.length - 1;
    const href = writeState({ ...state, query });
    const back = (event) => {
      event.preventDefault();
      go({ query }, trail.slice(0, at));
    };
    return el("li", {}, last ? el("span", { "aria-current": "location" }, words) : el("a", { href, on: { click: back } }, words ?? "…"));
  });
  const cut = crumbs.length > 6 ? [crumbs[0], el("li", {}, "…"), ...crumbs.slice(-4)] : crumbs;
  byId("trail").replaceChildren(el("ol", {}, cut));
}

function drawQuery(item, words) {
  const host = byId("query");
  if (item) {
    const facts = Object.entries(item.attributes).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value ?? "–"))));
    const look = item.text ? el("div", { class: "whole", tabindex: "0", role: "group", "aria-label": "Text" }, item.text) : face(item, 320, item.title);
    host.replaceChildren(look, el("div", { class: "about" }, el("h2", {}, caption(item)), el("dl", { class: "facts" }, facts)));
    return;
  }
  const picture = state.query.image ? el("span", { class: "face" }, previewOf(state.query.image)) : null;
  host.replaceChildren(...[picture, el("div", { class: "about" }, el("h2", {}, words))].filter(Boolean));
}

function previewOf(key) {
  const image = el("img", { alt: "The image searched by" });
  image.src = URL.createObjectURL(imageOf(key));
  image.onload = () => URL.revokeObjectURL(image.src);
  return image;
}

// ---- model, bits, beside

function options(select, first, chosen) {
  const entries = [first, ...models.map(({ version, bits, answers }) => [version, `Version ${version}: ${several(bits, "bit")}, ${several(answers, "answer")}`]),
    ["vectors", modelName("vectors")]];
  select.replaceChildren(...entries.filter(Boolean).map(([value, words]) => el("option", { value }, words)));
  select.value = String(chosen);
}

function drawControls() {
  const { current } = workspace;
  options(byId("model"), current ? ["", `Current (version ${current})`] : null, current ? state.model : state.model || "vectors");
  options(byId("beside"), ["", "nothing"], state.beside);
  const most = Math.max(0, ...[state.model, ...(state.beside === "" ? [] : [state.beside])].map((choice) => bitsOf(modelOf(choice)) ?? 0));
  byId("bits-field").hidden = most < 2;
  byId("bits").max = most;
  byId("bits").value = Math.min(state.bits ?? most, most);
  drawBits();
}

function drawBits() {
  const { value, max } = byId("bits");
  byId("bits-shown").textContent = value === max ? `all ${max}` : `${value} of ${max}`;
}

function setUpControls() {
  const chosen = (select) => (select.value === "" || select.value === "vectors" ? select.value : Number(select.value));
  for (const name of ["model", "beside"]) byId(name).addEventListener("change", (event) => adjust({ [name]: chosen(event.target) }));
  let pause;
  byId("bits").addEventListener("input", ({ target }) => {
    drawBits();
    clearTimeout(pause);
    pause = setTimeout(() => adjust({ bits: target.value === target.max ? null : Number(target.value) }), 100);
  });
  byId("more").addEventListener("click", () => {
    shown = Math.min(MOST, shown * 2);
    find();
  });
}

async function start() {
  try {
    [workspace, { models }] = await Promise.all([get("/api/workspace"), get("/api/models")]);
    models.reverse();
  } catch (error) {
    problem(error.message);
    return;
  }
  learnRanges(workspace.attributes);
  filters = new Filters(workspace.attributes, (chosen) => adjust({ filters: chosen }));
  setUpAsking(workspace, (query) => open(query, wordsOf(query)));
  setUpControls();
  history.scrollRestoration = "manual";
  addEventListener("popstate", restore);
  restore();
}

start();
