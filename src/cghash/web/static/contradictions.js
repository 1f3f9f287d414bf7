// Answers that cannot all hold, with what they were about, and a way to take one back.

import { get, remove } from "./api.js";
import { button, byId, count, el, several, toast } from "./dom.js";
import { address, face } from "./items.js";

const SHOWN = 20; // contradictions at a time

/** total: how many contradictions there are; told(summary) is called when an answer was taken back. */
export function drawContradictions(total, told) {
  const box = byId("contradictions");
  box.hidden = total === 0;
  box.querySelector("summary").textContent = several(total, "contradiction");
  box.ontoggle = () => box.open && fill(box, told);
  if (box.open) fill(box, told);
}

/** Draws the first ones anew, or those from `start` on behind what is there. */
async function fill(box, told, start = 0) {
  try {
    const found = await get("/api/answers/contradictions", { start, count: SHOWN });
    const items = new Map(found.items.map((item) => [item.row, item]));
    const lines = found.contradictions.map((one) => contradiction(one, items, told));
    const list = box.querySelector("ul");
    const before = start ? [...list.children].slice(0, start) : [];
    const left = found.total - start - lines.length;
    list.replaceChildren(...before, ...lines, ...(left > 0 ? [more(box, told, start + lines.length, left)] : []));
  } catch (error) {
    toast(error.message);
  }
}

function more(box, told, start, left) {
  const next = button(() => fill(box, told, start), { class: "quiet" }, `Show ${Math.min(SHOWN, left)} more`);
  return el("li", { class: "more" }, `${several(left, "more contradiction")}. `, next);
}

function contradiction({ reason, answers, count: all }, items, told) {
  const rest = all - answers.length;
  return el("li", {}, `${reason.charAt(0).toUpperCase()}${reason.slice(1)}:`,
    answers.map((answer) => line(answer, items, told)),
    rest ? el("p", {}, `… and ${count(rest)} more of them.`) : []);
}

function line(answer, items, told) {
  const back = button(() => takeBack(answer.id, told), { class: "quiet wish" }, `Take back ${answer.id}`);
  const [near, far] = answer.choice === "left" ? [answer.left, answer.right] : [answer.right, answer.left];
  const tiny = (item) =>
    el("a", { class: "tiny", href: address(item), title: item.title }, face(item, 96, item.title));
  const [anchor, nearer, farther] = [answer.anchor, near, far].map((row) => tiny(items.get(row)));
  return el("div", { class: "said" }, anchor, " nearer ", nearer, " than ", farther, back);
}

async function takeBack(id, told) {
  try {
    const { summary } = await remove(`/api/answers/${id}`);
    toast(`Answer ${id} is taken back.`);
    told(summary);
  } catch (error) {
    toast(error.message);
  }
}
