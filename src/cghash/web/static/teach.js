// The teach page: one item, two candidates, and an answer by hand or by key.

import { get, newKey } from "./api.js";
import { drawContradictions } from "./contradictions.js";
import { announce, byId, count, el, icon, noProblem, numbers, percent, problem, several, toast } from "./dom.js";
import { faceAndCaption, keyOf, setUpItems } from "./items.js";
import { Outbox } from "./outbox.js";
import { Questions, SIZE } from "./questions.js";

const ENOUGH = 20; // answers since the model, from which on learning is suggested

const questions = new Questions();
const given = []; // [{question, key}], the last one is undone first
let outbox;
let question = null;
let since = 0; // when the question was shown
let asked = 0;

// ---- the question

async function ask() {
  question = null;
  byId("question").setAttribute("aria-busy", "true"); // what is still shown was answered
  try {
    question = await questions.next();
  } catch (error) {
    byId("question").hidden = true;
    problem(`${error.message} What you answered is kept.`, [["Try again", () => { noProblem(); ask(); }]]);
    return;
  }
  byId("question").hidden = question === null;
  if (question === null) problem("There is nothing to ask: a question needs three items.", [["See the items", "/"]]);
  else draw();
}

function draw() {
  const { anchor, left, right } = question;
  byId("anchor").replaceChildren(...faceAndCaption(anchor, SIZE));
  candidate(byId("left"), left, "left", "←");
  candidate(byId("right"), right, "right", "→");
  byId("question").removeAttribute("aria-busy");
  for (const id of ["anchor", "left", "right"]) restart(byId(id));
  asked += 1;
  announce(`Question ${asked}: is ${anchor.title} more like ${left.title} or more like ${right.title}?`);
  since = performance.now();
}

function candidate(button, item, side, arrow) {
  const key = el("kbd", { "aria-hidden": "true" }, arrow);
  button.replaceChildren(...faceAndCaption(item, SIZE), el("span", { class: "hint" }, key, `The ${side} one`));
}

function restart(element) {
  element.classList.remove("fresh");
  void element.offsetWidth; // the animation begins anew
  element.classList.add("fresh");
}

function answer(choice) {
  if (question === null) return;
  // a question answered again after an undo needs a key of its own: the first one is taken
  const key = question.again ? newKey() : question.key;
  const { anchor, left, right, source } = question;
  given.push({ question, key });
  const rows = { anchor: anchor.row, left: left.row, right: right.row };
  outbox.add({ key, ...rows, choice, source, seconds: (performance.now() - since) / 1000 });
  byId("undo").disabled = false;
  ask();
}

function undo() {
  const last = given.pop();
  if (!last) return;
  outbox.undo(last.key);
  if (question) questions.back(question);
  questions.back({ ...last.question, again: true });
  byId("undo").disabled = given.length === 0;
  announce("Undone.");
  ask();
}

const KEYS = {
  ArrowLeft: () => answer("left"),
  ArrowRight: () => answer("right"),
  ArrowDown: () => answer("unsure"),
  z: undo,
  Z: undo,
};

function pressed(event) {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  if (event.target.closest("summary, input, select, textarea") && event.key.startsWith("Arrow")) return;
  event.preventDefault();
  KEYS[event.key]();
}

// ---- so far

const UNTESTED = "Some questions are kept apart as an honest test. "
  + "Once you have answered a few of them, this says how often the model agrees with you.";

function drawSent() {
  const saved = outbox.waiting === 0;
  const words = saved ? "All saved" : `${outbox.waiting} to send`;
  const trouble = outbox.lost ? ": the server does not answer, trying again" : "";
  byId("sent").classList.toggle("saved", saved);
  byId("sent").replaceChildren(icon(saved ? "check" : "wait"), `${words}${trouble}`);
}

function drawSummary(summary) {
  const { answers, unsure, test, since_model: sinceModel, agreement, contradictions } = summary;
  numbers(byId("counts"), [["answers", count(answers)], ["could not tell", count(unsure)],
    ["kept apart as a test", count(test)], ["since the last model", count(sinceModel)]]);
  const { share, count: tested } = agreement.test;
  byId("agreement").textContent = share === null ? UNTESTED
    : `The model agrees with you on ${percent(share)} of ${several(tested, "answer")} that it never learns from.`;
  byId("next-step").replaceChildren(...(sinceModel < ENOUGH
    ? [`${several(ENOUGH - sinceModel, "more answer")}, and learning is worth it.`]
    : [el("a", { class: "button primary", href: "/learn" }, "Learn from them")]));
  drawContradictions(contradictions, drawSummary);
}

async function start() {
  try {
    const [workspace, summary] = await Promise.all([get("/api/workspace"), get("/api/answers/summary")]);
    setUpItems(workspace);
    outbox = new Outbox(keyOf(workspace), {
      changed: () => outbox && drawSent(),
      told: drawSummary,
      refused: (error) => toast(`An answer was refused: ${error.message}`),
    });
    drawSummary(summary);
    drawSent();
  } catch (error) {
    problem(error.message);
    return;
  }
  for (const choice of ["left", "right", "unsure"]) byId(choice).addEventListener("click", () => answer(choice));
  byId("undo").addEventListener("click", undo);
  document.addEventListener("keydown", pressed);
  ask();
}

start();
