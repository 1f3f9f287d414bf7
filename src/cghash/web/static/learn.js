// The learn page: from answers to a model version, followed as it is learned, then judged.

import { get, post } from "./api.js";
import { lineChart } from "./charts.js";
import { announce, byId, count, duration, figure, noProblem, numbers, percent, problem, several, toast }
  from "./dom.js";
import { setUpItems } from "./items.js";
import { follow, GOING, Progress } from "./jobs.js";
import { drawReport } from "./report.js";
import { drawVersions } from "./versions.js";

let models = { models: [], current: null };
let progress;
let saidBit = 0; // the last bit that was read out

// ---- before

const NONE = "No answers yet: a model can be learned from the vectors alone. "
  + "It gets better with every answer on the teach page.";

function drawStart({ answers, test, since_model: sinceModel }) {
  const taught = answers - test;
  const kept = test ? ` ${count(test)} more kept apart as the test.` : "";
  byId("learn-from").textContent = taught
    ? `${several(taught, "answer")} to learn from, ${count(sinceModel)} of them new since the version in use.${kept}`
    : NONE;
}

function wanted() {
  const words = byId("C").value.trim().replace(",", ".");
  const C = words === "" ? null : Number(words);
  return { bits: Number(byId("bits").value), hash_function: byId("hash-function").value, C };
}

async function learn(event) {
  event.preventDefault();
  const parameters = wanted();
  if (Number.isNaN(parameters.C)) {
    toast("C must be a positive number, or empty.");
    byId("C").focus();
    return;
  }
  try {
    const { job } = await post("/api/jobs", parameters);
    watch(job);
    announce("Learning has begun.");
  } catch (error) {
    toast(error.message);
    if (error.status === 409) resume();
  }
}

// ---- while it learns

const LOST = "Connection lost, trying again. The learning goes on with the server.";

function watch(job) {
  noProblem();
  progress = new Progress(job.id);
  saidBit = 0;
  byId("report").hidden = true;
  byId("running").hidden = false;
  byId("start").hidden = true;
  byId("cancel").disabled = false;
  byId("cancel").onclick = () => cancel(job.id);
  drawJob(job);
  follow(job.id, {
    changed: (now) => {
      byId("connection").hidden = true;
      if (GOING.includes(now.state)) drawJob(now);
      else ended(now);
    },
    lost: (why) => {
      byId("connection").hidden = false;
      byId("connection").textContent = why === null ? LOST : `${why} Trying again.`;
    },
    gone: (why) => over(`It cannot be followed any more: ${why}`),
  });
}

function drawJob({ state, progress: now }) {
  const { stage = "Waiting", bit = 0, bits = 0, objective, gap, satisfied, seconds, seconds_left: left } = now ?? {};
  const words = state === "cancelling" ? "Stopping" : `${stage.charAt(0).toUpperCase()}${stage.slice(1)}`;
  byId("running-stage").textContent = bit ? `${words}: bit ${bit} of ${bits}` : words;
  if (bits) byId("progress").value = bit / bits;
  else byId("progress").removeAttribute("value");
  numbers(byId("running-numbers"), [["objective", figure(objective)], ["gap to the bound", percent(gap)],
    ["of triplets satisfied", percent(satisfied)], ["so far", duration(seconds)], ["left, about", duration(left)]]);
  progress.add({ bit, objective });
  drawProgress();
  sayNow(bit, bits, left);
}

function drawProgress() {
  const { points } = progress;
  if (points.length < 2) return;
  const objective = { name: "objective", x: points.map(([bit]) => bit), y: points.map(([, value]) => value) };
  byId("running-chart").replaceChildren(
    lineChart({ series: [objective], label: "The objective, bit by bit", xLabel: "bits", from: 0 }));
}

/** A screen reader hears every quarter, not every bit. */
function sayNow(bit, bits, left) {
  if (!bits || bit - saidBit < bits / 4) return;
  saidBit = bit;
  announce(`Bit ${bit} of ${bits}, ${duration(left)} left.`);
}

async function cancel(id) {
  byId("cancel").disabled = true;
  try {
    await post(`/api/jobs/${id}/cancel`);
  } catch (error) {
    toast(error.message);
    byId("cancel").disabled = false;
  }
}

function stopped() {
  byId("running").hidden = true;
  byId("running-chart").replaceChildren();
  byId("start").hidden = false;
}

function over(words) {
  stopped();
  toast(words, null, 20);
  announce(words);
}

async function ended(job) {
  stopped();
  if (job.state === "done") {
    await reload();
    show(job.version);
    announce(`Version ${job.version} is learned.`);
    byId("report").focus();
    return;
  }
  const failed = `Learning failed: ${job.message || "no reason was given"}`;
  over(job.state === "cancelled" ? "Cancelled: no version was made." : failed);
}

// ---- after

/** What a version is compared with: the one of its report, the one in use, the one before; the first, the vectors. */
function opponent(version) {
  const numbered = models.models.map((model) => model.version);
  const before = Math.max(0, ...numbered.filter((one) => one < version.version));
  const candidates = [version.report?.against, models.current, before];
  return candidates.find((one) => one && one !== version.version && numbered.includes(one)) ?? "vectors";
}

function show(number, against = null) {
  const version = models.models.find((model) => model.version === number);
  if (!version) return;
  const about = { version, against: against ?? opponent(version), current: models.current };
  drawReport(byId("report"), { ...about, use: (chosen) => use(chosen, number) });
}

async function use(chosen, shown = null) {
  const before = models.current;
  try {
    await post("/api/models/current", { version: chosen });
    await reload();
    if (shown) show(shown, shown === chosen ? before : null);
    const back = before && before !== chosen ? { word: "Undo", run: () => use(before, shown) } : null;
    toast(`Version ${chosen} is in use.`, back);
  } catch (error) {
    toast(error.message);
  }
}

function compare(number) {
  show(number, models.current);
  byId("report").focus();
  byId("report").scrollIntoView({ block: "start" });
}

async function reload() {
  const [list, summary] = await Promise.all([get("/api/models"), get("/api/answers/summary")]);
  models = { ...list, models: list.models.toReversed() };
  drawStart(summary);
  drawVersions(models, { use: (number) => use(number), compare });
}

/** A job that runs is followed again; of one that ended and is not in use, the report is shown. */
async function resume() {
  const { jobs } = await get("/api/jobs");
  const going = jobs.find((job) => GOING.includes(job.state));
  if (going) {
    watch(going);
    return;
  }
  const newest = Math.max(0, ...models.models.map((model) => model.version));
  if (newest && newest !== models.current) show(newest);
}

async function start() {
  try {
    const [workspace] = await Promise.all([get("/api/workspace"), reload()]);
    setUpItems(workspace);
    const now = models.models.find((model) => model.version === models.current);
    byId("bits").value = now?.bits ?? 64;
    byId("learn-form").addEventListener("submit", learn);
    byId("start").hidden = false;
    await resume();
  } catch (error) {
    problem(error.message);
  }
}

start();
