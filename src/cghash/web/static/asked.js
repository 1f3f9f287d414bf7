// What was asked, above its answers: the item, the text, the vector or the image, and the way that led there.

import { imageOf } from "./asking.js";
import { byId, el, put } from "./dom.js";
import { caption, face } from "./items.js";

const LONGEST_TRAIL = 6;

export const wordsOf = ({ text, vector, image }) => text ?? image ?? `a vector of ${vector.length} numbers`;

/** steps: [{words, href, go}] from all items on; the last one is where we are. */
export function drawTrail(steps) {
  const crumbs = steps.map(({ words, href, go }, at) => {
    const follow = (event) => {
      event.preventDefault();
      go();
    };
    const here = at === steps.length - 1;
    const link = () => el("a", { href, on: { click: follow } }, words ?? "…");
    return el("li", {}, here ? el("span", { "aria-current": "location" }, words) : link());
  });
  const cut = crumbs.length > LONGEST_TRAIL ? [crumbs[0], el("li", {}, "…"), ...crumbs.slice(-4)] : crumbs;
  byId("trail").replaceChildren(el("ol", {}, cut));
}

/** item: the whole item that was asked about; null where it was something else. */
export function drawAsked(item, query) {
  if (item) {
    put(byId("query"), look(item), el("div", { class: "about" }, el("h2", {}, caption(item)), facts(item)));
    return;
  }
  const picture = query.image ? el("span", { class: "face" }, preview(query.image)) : null;
  put(byId("query"), picture, el("div", { class: "about" }, el("h2", {}, wordsOf(query))));
}

const look = (item) => (item.text && !item.image
  ? el("div", { class: "whole", tabindex: "0", role: "group", "aria-label": "Text" }, item.text)
  : face(item, 320, item.title));

const facts = ({ attributes }) => el("dl", { class: "facts" }, Object.entries(attributes).map(([name, value]) =>
  el("div", {}, el("dt", {}, name), el("dd", {}, String(value ?? "–")))));

function preview(key) {
  const image = el("img", { alt: "The image searched by" });
  image.src = URL.createObjectURL(imageOf(key));
  image.onload = () => URL.revokeObjectURL(image.src);
  return image;
}
