// The search page: all items to scroll through, or the neighbours of one of them, of a text, a vector or an image.

import { get, post, postImage } from "./api.js";
import { drawAsked, drawTrail, wordsOf } from "./asked.js";
import { imageOf, setUpAsking } from "./asking.js";
import { Choices } from "./choices.js";
import { announce, byId, count, el, noProblem, problem, put, several, toast } from "./dom.js";
import { Filters } from "./filters.js";
import { VirtualGrid } from "./grid.js";
import { address, faceAndCaption, setUpItems } from "./items.js";
import { ItemPages } from "./pages.js";
import { drawColumns } from "./results.js";
import { readState, writeState } from "./state.js";

const PAGE = 24;
const MOST = 1000;

let workspace;
let filters;
let choices;
let state;
let trail = []; // [{query, words}], the last one is shown
let shown = PAGE; // neighbours asked for
let asking = new AbortController();
let asked = null; // the item asked about, with all of its text

// ---- where we are

/** Ask something new: a step in the browser's history. */
function open(query, words) {
  go({ query }, [...trail, { query, words }]);
}

function go(change, newTrail) {
  history.replaceState({ ...history.state, offset: grid.offset }, "");
  state = { ...state, ...change };
  trail = newTrail;
  history.pushState({ trail, query: state.query }, "", writeState(state));
  shown = PAGE;
  scrollTo({ top: 0, behavior: "instant" });
  render();
}

const goToAll = () => go({ query: null }, []);

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

const pages = new ItemPages(
  (start, number, signal) => get("/api/items", { start, count: number, filter: state.filters }, { signal }),
  {
    arrived: (first, last) => grid.refresh(first, last),
    failed: (error) => toast(`${error.message} Items are missing.`, { word: "Try again", run: () => grid.report() }),
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
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // another tab: the address will do
  event.preventDefault();
  open({ item: item.row }, item.title);
}

async function browse(offset) {
  document.title = `Search · ${workspace.title}`;
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  pages.reset();
  try {
    const { total } = await get("/api/items", { start: 0, count: 1, filter: state.filters }, { signal });
    if (signal.aborted) return; // another question was asked meanwhile
    const all = several(workspace.items, "item");
    const words = total === workspace.items ? all : `${count(total)} of ${all}`;
    byId("browse-count").textContent = `${words}. Choose one to see what is near it.`;
    announce(words);
    grid.show(total, offset);
    if (total === 0) problem("No item passes the filters.", [["Remove them", () => adjust({ filters: [] })]]);
  } catch (error) {
    if (error.name === "AbortError") return;
    problem(error.message, state.filters.length ? [["Remove the filters", () => adjust({ filters: [] })]] : undefined);
  }
}

// ---- neighbours

function search(choice, signal) {
  const how = { k: shown, model: choices.model(choice), bits: choices.bits(choice, state.bits), details: true };
  const { query } = state;
  if (!query.image) return post("/api/search", { ...query, ...how, filters: state.filters }, { signal });
  return postImage("/api/search/image", { ...how, filter: state.filters }, imageOf(query.image), { signal });
}

async function whole(row, signal) {
  if (row === undefined) return null;
  if (asked?.row !== row) asked = await get(`/api/items/${row}`, {}, { signal });
  return asked;
}

function nothingFound(words) {
  byId("found").hidden = true;
  problem(words, [["All items", goToAll]]);
}

async function find() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  choices.show(state);
  if (state.query.image && !imageOf(state.query.image)) {
    nothingFound("The image is no longer here: choose or drop it again.");
    return;
  }
  byId("columns").setAttribute("aria-busy", "true");
  try {
    const models = state.beside === "" ? [state.model] : [state.model, state.beside];
    const searches = models.map((choice) => search(choice, signal));
    const [item, ...answers] = await Promise.all([whole(state.query.item, signal), ...searches]);
    if (!signal.aborted) drawFound(item, answers);
  } catch (error) {
    if (error.name !== "AbortError") nothingFound(error.message);
  } finally {
    if (!signal.aborted) byId("columns").removeAttribute("aria-busy");
  }
}

function drawFound(item, answers) {
  const words = item?.title ?? wordsOf(state.query);
  trail.at(-1).words = words;
  document.title = `${words} · ${workspace.title}`;
  drawTrail([{ query: null, words: "All items" }, ...trail].map((step, at) => ({
    words: step.words,
    href: writeState({ ...state, query: step.query }),
    go: () => go({ query: step.query }, trail.slice(0, at)),
  })));
  drawAsked(item, state.query);
  drawNote(answers[0]);
  announce(`${several(answers[0].results.length, "neighbour")} of ${words}.`);
  drawColumns(byId("columns"), answers, { item: state.query.item ?? null, choose });
  byId("more").hidden = answers[0].results.length < shown || shown >= MOST;
}

function drawNote({ results, milliseconds }) {
  const [number, all] = [several(results.length, "nearest", "nearest"), several(workspace.items, "item")];
  const words = `The ${number} of ${all}, in ${milliseconds.toFixed(1)} ms. `;
  const teach = el("a", { href: "/teach" }, "Teach");
  const next = ["No model yet: these are near by their vectors. ", teach, " a while, then learn."];
  put(byId("found-note"), words, workspace.current ? null : next);
}

async function start() {
  try {
    const [about, { models }] = await Promise.all([get("/api/workspace"), get("/api/models")]);
    workspace = about;
    choices = new Choices({ current: about.current, models: models.toReversed() }, adjust);
  } catch (error) {
    problem(error.message);
    return;
  }
  setUpItems(workspace);
  filters = new Filters(workspace.attributes, (chosen) => adjust({ filters: chosen }));
  setUpAsking(workspace, (query) => open(query, wordsOf(query)));
  byId("more").addEventListener("click", () => {
    shown = Math.min(MOST, shown * 2);
    find();
  });
  history.scrollRestoration = "manual";
  addEventListener("popstate", restore);
  restore();
}

start();
