// Which bits differ, on demand: a small card beside the button that asked for it.

import { byId, el, several } from "./dom.js";

const MARGIN = 8;

export function bitsButton(result, total) {
  const words = several(result.differing, "bit differs", "bits differ");
  return el("button", { type: "button", class: "quiet differ", "aria-haspopup": "dialog",
    on: { click: (event) => showBits(event.currentTarget, result, total) } }, words);
}

function showBits(button, { bits }, total) {
  const card = byId("bits-card");
  const differing = new Set(bits);
  const cells = Array.from({ length: total }, (_, bit) => el("span", { class: differing.has(bit) ? "differs" : "" , title: `bit ${bit}` }));
  const words = bits.length ? `${several(bits.length, "bit")} of ${total}: ${bits.join(", ")}` : `None of ${total}: the codes are the same.`;
  card.replaceChildren(el("p", {}, words), el("div", { class: "code", "aria-hidden": "true" }, cells));
  card.showPopover();
  place(card, button.getBoundingClientRect());
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
