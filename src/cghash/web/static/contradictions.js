// Answers that cannot all hold, with what they were about, and a way to take one back.

import { get, remove } from "./api.js";
import { button, byId, el, several, toast } from "./dom.js";
import { address, face } from "./items.js";

const LOOKED_THROUGH = 1000; // of the newest answers

/** contradictions: [{answers: ids, reason}]; told(summary) is called when an answer was taken back. */
export function drawContradictions(contradictions, told) {
  const box = byId("contradictions");
  box.hidden = contradictions.length === 0;
  box.querySelector("summary").textContent = several(contradictions.length, "contradiction");
  box.ontoggle = () => box.open && fill(box, contradictions, told);
  if (box.open) fill(box, contradictions, told);
}

async function fill(box, contradictions, told) {
  try {
    const { answers } = await get("/api/answers", { count: LOOKED_THROUGH });
    const known = new Map(answers.map((answer) => [answer.id, answer]));
    const lists = contradictions.map(async ({ answers: ids, reason }) => {
      const lines = await Promise.all(ids.map((id) => line(id, known.get(id), told)));
      return el("li", {}, `${reason.charAt(0).toUpperCase()}${reason.slice(1)}:`, lines);
    });
    box.querySelector("ul").replaceChildren(...await Promise.all(lists));
  } catch (error) {
    toast(error.message);
  }
}

async function line(id, answer, told) {
  const back = button(() => takeBack(id, told), { class: "quiet wish" }, `Take back ${id}`);
  if (!answer) return el("p", {}, `Answer ${id} `, back);
  const [near, far] = answer.choice === "left" ? [answer.left, answer.right] : [answer.right, answer.left];
  const items = await Promise.all([answer.anchor, near, far].map((row) => get(`/api/items/${row}`)));
  const tiny = (item) =>
    el("a", { class: "tiny", href: address(item), title: item.title }, face(item, 96, item.title));
  const [anchor, nearer, farther] = items.map(tiny);
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
