// Which bits differ, on demand: a small card beside the button that asked for it.

import { button, byId, el, several } from "./dom.js";

const MARGIN = 8;

export function bitsButton(result, total) {
  const show = (event) => showBits(event.currentTarget, result, total);
  const words = several(result.differing, "bit differs", "bits differ");
  return button(show, { class: "quiet differ", "aria-haspopup": "dialog" }, words);
}

function showBits(opener, { bits }, total) {
  const card = byId("bits-card");
  const differing = new Set(bits);
  const cell = (bit) => el("span", { class: differing.has(bit) ? "differs" : null, title: `bit ${bit}` });
  const cells = Array.from({ length: total }, (_, bit) => cell(bit));
  const named = `${several(bits.length, "bit")} of ${total}: ${bits.join(", ")}`;
  const words = bits.length ? named : `None of ${total}: the codes are the same.`;
  card.replaceChildren(el("p", {}, words), el("div", { class: "code", "aria-hidden": "true" }, cells));
  card.showPopover();
  place(card, opener.getBoundingClientRect());
  card.tabIndex = -1;
  card.focus();
}

/** Below the button, or above where there is no room; never past the edge of the screen. */
function place(card, { left, top, bottom }) {
  const { offsetWidth: width, offsetHeight: height } = card;
  const below = bottom + MARGIN + height < innerHeight;
  card.style.left = `${Math.max(MARGIN, Math.min(left, document.documentElement.clientWidth - width - MARGIN))}px`;
  card.style.top = `${below ? bottom + MARGIN : Math.max(MARGIN, top - height - MARGIN)}px`;
}
