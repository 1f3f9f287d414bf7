// What an item looks like: its image, its text, or a strip of its numbers.

import { el, icon } from "./dom.js";

const STRIP = 24; // numbers of an item that its strip shows

let ranges = new Map(); // the least and most of each number: strips of different items can be compared
let workspaceKey = "";

/** What is known of a workspace without its items; images of two that were served here must not be mixed up. */
export const keyOf = ({ key = "", title, kind, items, dimension }) => [key, title, kind, items, dimension].join("|");

/** To be called before an item is drawn. */
export function setUpItems(workspace) {
  workspaceKey = encodeURIComponent(keyOf(workspace));
  const numbers = workspace.attributes.filter(({ kind, least, most }) => kind === "number" && most > least);
  ranges = new Map(numbers.map((attribute) => [attribute.name, attribute]));
}

/** Images of a few pixels (digits) are enlarged with sharp edges. */
const sharpen = (event) => event.target.classList.toggle("pixels", event.target.naturalWidth <= 64);
const missing = (event) => event.target.replaceWith(el("span", { class: "missing" }, icon("image")));

/** Browsers keep images by their address, for a day. */
export const imageAddress = (item, size) => `${item.image}?size=${size}&of=${workspaceKey}`;

function picture(item, size, alt) {
  const image = el("img", { alt, decoding: "async", on: { load: sharpen, error: missing } });
  image.src = imageAddress(item, size);
  return image;
}

function strip(item) {
  const known = [...ranges.values()].filter(({ name }) => typeof item.attributes[name] === "number");
  const cells = known.slice(0, STRIP).map(({ name, least, most }) => {
    const share = (item.attributes[name] - least) / (most - least);
    return el("span", { css: { "--share": share.toFixed(3) }, title: `${name}: ${item.attributes[name]}` });
  });
  return el("span", { class: "strip", "aria-hidden": "true" }, cells);
}

/** Lists carry the first 200 characters of a text. */
const CUT = 200;
const cut = (text) => (text.length === CUT ? `${text}…` : text);

/** The face of an item, by what it has. `alt` is empty where its title stands beside it. */
export function face(item, size = 160, alt = "") {
  if (item.image) return el("span", { class: "face" }, picture(item, size, alt));
  if (item.text) return el("span", { class: "face words" }, el("span", {}, cut(item.text)));
  return el("span", { class: "face bare" }, el("b", {}, item.title), strip(item));
}

/** What stands below a face: the title of a text is how it begins, which the face shows already. */
export const caption = (item) => (item.text && !item.image ? item.id : item.title);

/** Face and caption, as the content of a link or a button; a bare item's face is its title. */
export const faceAndCaption = (item, size = 160) =>
  (item.image || item.text ? [face(item, size), el("span", { class: "title" }, caption(item))] : [face(item, size)]);

export const address = (item) => `/?item=${item.row}`;

/** A row of small items, each a link to its neighbours; mark(item) says in words what is special about one, or null. */
export const faces = (items, size = 96, mark = () => null) => el("ul", { class: "faces" }, items.map((item) => {
  const words = mark(item);
  const title = words ? `${item.title}, ${words}` : item.title;
  const sign = words ? [icon("only"), el("span", { class: "unseen" }, `, ${words}`)] : null;
  const marked = { class: words ? "marked" : null };
  return el("li", {}, el("a", { href: address(item), title, ...marked }, face(item, size, item.title), sign));
}));
