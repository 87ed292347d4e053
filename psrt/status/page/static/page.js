// The page of a job: a view a second by server-sent events, each drawn as a whole.

import { bar, make, spark, topology } from "/drawing.js";

const HISTORY = 90;
const HUES = 8;
const AGAIN_MS = 5000;
const MOST_BARS = 8;
const MOST_PLACES = 3;
const MOST_WHOLE = 24;
const MOST_BESIDE = 12;
const LEAST_BAR = 0.01;
const history = new Map();
const $ = (id) => document.getElementById(id);

// --- numbers as people read them ----------------------------------------------------------------

function count(value) {
  if (value === null || value === undefined) return "–";
  const [scale, unit] = [[1e9, " G"], [1e6, " M"], [1e4, " k"]].find(([size]) => Math.abs(value) >= size) ?? [1, ""];
  const scaled = unit === " k" ? value / 1e3 : value / scale;
  return digits(scaled) + unit;
}

function digits(value) {
  if (value >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 10 ? 1 : 2);
}

function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; value >= 1024 && at < units.length - 1; at += 1) value /= 1024;
  return `${at ? digits(value) : value} ${units[at]}`;
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
  return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
}

const percent = (part) => `${(100 * part).toFixed(part < 0.01 ? 2 : part < 0.1 ? 1 : 0)} %`;
const some = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// --- names of pservers --------------------------------------------------------------------------

let names = new Map();

/** Endpoints without the domain, if that leaves them different. */
function learnNames(view) {
  const endpoints = view.pservers.map((each) => each.endpoint);
  const brief = endpoints.map((each) => each.replace(/^([a-z][^.:]*)\.[^:]*(:\d+)$/i, "$1$2"));
  const isPlain = new Set(brief).size === endpoints.length;
  names = new Map(endpoints.map((each, at) => [each, isPlain ? brief[at] : each]));
}

const nameOf = (endpoint) => names.get(endpoint) ?? endpoint;

function places(view, endpoints) {
  if (endpoints.length > MOST_PLACES && endpoints.length === view.pservers.length) return "all pservers";
  const shown = endpoints.slice(0, MOST_PLACES).map(nameOf).join(", ");
  return endpoints.length > MOST_PLACES ? `${shown} and ${endpoints.length - MOST_PLACES} more` : shown;
}

// --- parts of the page --------------------------------------------------------------------------

function head(view) {
  const title = view.job || "no job yet";
  $("job").textContent = title;
  document.title = `${view.verdict.level === "ok" ? "" : "● "}${title} – psrt`;
  $("mode").hidden = !view.mode;
  $("mode").textContent = view.mode;
  const box = $("verdict");
  box.className = `verdict ${view.verdict.level}`;
  const since = view.verdict.since_s === null ? "" : `For ${seconds(view.verdict.since_s)}.`;
  set(box.querySelector(".said"), view.verdict.text);
  set(box.querySelector(".detail"), `${since} ${view.verdict.detail}`.trim());
  $("updated").textContent = `Updated ${new Date(1000 * view.at_s).toLocaleTimeString()}.`;
}

/** Set a text that is read out when it changes. */
function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tiles(view) {
  const figures = [
    [view.mode === "Sync" ? "Rounds a second" : "Steps a second", "steps_per_s", count],
    ["Rows pushed a second", "pushed_rows_per_s", count],
    ["Rows pulled a second", "pulled_rows_per_s", count],
    ["Calls a second", "calls_per_s", count],
    ["Rows", "rows", count],
    ["Memory of tables", "table_bytes", bytes],
  ];
  $("tiles").replaceChildren(...figures.map(([title, name, format]) => {
    const value = view.totals[name];
    const values = [...(history.get(name) ?? []), value].slice(-HISTORY);
    history.set(name, values);
    return make("div", "", make("dt", "", title), make("dd", "", format(value)), spark(values));
  }));
}

function waits(view) {
  const long = view.waits.filter((wait) => wait.is_long);
  const arrows = long.flatMap((wait) => wait.waiting.flatMap((from) => wait.missing.map((to) => [from, to])));
  $("topology").parentElement.classList.toggle("wide", view.trainers.length > MOST_BESIDE);
  const width = Math.max(240, $("topology").clientWidth);
  const pservers = view.pservers.map((each) => ({
    key: each.endpoint, reached: each.reached, className: each.reached ? "" : "lost",
    title: fitting(nameOf(each.endpoint), width < 480 ? 17 : 21), text: each.reached ? each.progress : "does not answer",
  }));
  $("topology").replaceChildren(topology(pservers, view.trainers.map(trainerNode), arrows, width));
  const quick = view.waits.length - long.length;
  const items = long.map((wait) => make("li", "",
    make("span", "time", seconds(wait.waited_s)), make("strong", "wait-text", wait.text),
    make("div", "soft small", [
      wait.silent_s === null ? "" : `silent for ${seconds(wait.silent_s)}`, `at ${places(view, wait.where)}`,
    ].filter(Boolean).join(" · "))));
  const others = quick ? `${some(quick, "short wait")} of under 5 s, as in every round` : "";
  const rest = make("li", "soft", [long.length ? "" : "Nobody waits for long.", others].filter(Boolean).join(" "));
  $("wait-list").replaceChildren(...items, ...(rest.textContent ? [rest] : []));
}

function trainerNode(each) {
  const ended = each.state === "completed" || each.state === "unseen";
  const culprit = each.is_awaited && each.is_long;
  const waiting = each.waits_for && each.is_long;
  const text = culprit ? (each.silent_s === null ? "never seen" : `silent ${seconds(each.silent_s)}`)
    : waiting ? `waits ${seconds(each.waited_s)}` : each.state;
  const className = culprit ? "culprit" : waiting ? "waits" : each.state === "lost" ? "lost" : ended ? "ended" : "";
  return { key: each.trainer, className, title: `trainer ${each.trainer}`, text };
}

/** A name that fits into a box; the end tells ports and hosts of one name apart. */
function fitting(name, most) {
  const half = Math.floor(most / 2);
  return name.length > most ? `${name.slice(0, half - 1)}…${name.slice(-half)}` : name;
}

/** A table of columns [title, cell of a record, is a number]. */
function table(columns, records) {
  const titles = columns.map(([title, , number]) => {
    const cell = make("th", number ? "number" : "", title);
    cell.scope = "col";
    return cell;
  });
  const rows = records.map((record) => make("tr", "", ...columns.map(([title, cell, number]) => {
    const found = cell(record);
    const element = make("td", `${number ? "number" : ""}${found === "–" ? " none" : ""}`.trim(), found);
    element.dataset.title = title;
    return element;
  })));
  return make("table", "", make("thead", "", make("tr", "", ...titles)), make("tbody", "", ...rows));
}

function trainers(view) {
  const state = (each) => {
    if (each.presence === "gone" || each.state === "lost") return make("span", "badge bad", each.state === "lost" ? "lost" : "gone");
    if (each.is_long) return make("span", `badge ${each.is_awaited ? "bad" : "wait"}`, each.is_awaited ? "awaited" : "waits");
    return make("span", `badge ${each.state === "running" ? "ok" : ""}`, each.state);
  };
  const rounds = view.mode === "Sync";
  const found = table([
    ["trainer", (each) => String(each.trainer)],
    ["state", state],
    ["last call", (each) => seconds(each.silent_s), true],
    ["waits for", (each) => (each.is_long && each.waits_for) || "–"],
    rounds ? ["behind the first", (each) => (each.late_s === null ? "–" : `${(1e3 * each.late_s).toFixed(1)} ms`), true]
      : ["staleness", (each) => (each.staleness === null ? "–" : each.staleness.toFixed(1)), true],
  ], view.trainers);
  const more = view.more_trainers ? [make("p", "soft small", `and ${some(view.more_trainers, "more trainer")}`)] : [];
  $("trainer-table").replaceChildren(...(view.trainers.length ? [found, ...more] : [none("No trainer has come yet.")]));
}

function pservers(view) {
  $("pserver-table").replaceChildren(table([
    ["pserver", (each) => keyed(view, each.endpoint)],
    ["progress", (each) => make("span", each.reached ? "whole" : "bad-text", each.reached ? each.progress : each.problem)],
    ["rows/s", (each) => count(each.pushed_rows_per_s), true],
    ["calls/s", (each) => count(each.calls_per_s), true],
    ["applying", (each) => (each.busy === null || each.busy === undefined ? "–" : percent(each.busy)), true],
    ...(view.pservers.some((each) => each.is_durable) ? [["not durable", (each) => count(each.durable_lag), true]] : []),
  ], view.pservers));
}

const hue = (view, endpoint) => `h${view.pservers.findIndex((each) => each.endpoint === endpoint) % HUES}`;
const key = (view, endpoint) => make("span", `key ${hue(view, endpoint)}`);
function keyed(view, endpoint) {
  const isShort = nameOf(endpoint).length <= MOST_WHOLE;
  const found = make("span", isShort ? "whole" : "", key(view, endpoint), nameOf(endpoint));
  found.title = endpoint;
  return found;
}

const none = (text) => make("p", "soft", text);
const label = (left, right) => make("div", "label", make("span", "", left), make("span", "soft", right));

function shards(view) {
  const reached = view.pservers.filter((each) => each.reached);
  $("legend").replaceChildren(...reached.map((each) => keyed(view, each.endpoint)));
  const sparse = view.tables.filter((each) => each.kind === "sparse");
  const rows = sparse.map((each) => make("div", "row",
    label(each.name, `${count(each.rows)} rows`), bar(pieces(view, each))));
  $("shard-map").replaceChildren(...(rows.length ? rows : [none("No sparse tables.")]));
}

/** The stripes of a table over its virtual shards; denser ones are stronger. */
function pieces(view, table) {
  const stripes = table.shards.flatMap((part) => part.stripes.map(([first, last, rows]) => ({
    endpoint: part.endpoint, first, last, rows, dense: rows / Math.max(1, last - first),
  }))).sort((one, other) => one.first - other.first);
  const densest = Math.max(...stripes.map((each) => each.dense), 1e-9);
  return stripes.map((each) => ({
    part: (each.last - each.first) / table.virtual_shards,
    className: hue(view, each.endpoint),
    opacity: 0.35 + 0.65 * (each.dense / densest),
    title: `shards ${each.first} to ${each.last - 1} at ${each.endpoint}: ${count(each.rows)} rows`,
  }));
}

function memory(view) {
  const reached = view.pservers.filter((each) => each.reached);
  const most = Math.max(...view.tables.map((each) => each.bytes), 1);
  const large = view.tables.filter((each, at) => at < MOST_BARS && each.bytes >= LEAST_BAR * most);
  const tables = large.map((each) => make("div", "row",
    label(each.name, each.kind === "dense" ? `${bytes(each.bytes)}, dense` : bytes(each.bytes)),
    bar(Object.entries(each.by_pserver).map(([endpoint, size]) => ({
      part: size / most, className: hue(view, endpoint), title: `${bytes(size)} at ${endpoint}`,
    })))));
  const small = view.tables.slice(large.length).reduce((sum, each) => sum + each.bytes, 0);
  const others = view.tables.length - large.length + view.more_tables;
  const more = others ? [none(`and ${some(others, "smaller table")}, ${bytes(small)}`)] : [];
  const processes = reached.map((each) => make("div", "row",
    label(nameOf(each.endpoint), `${bytes(each.memory_bytes)} of ${bytes(each.memory_limit_bytes)}`),
    bar([{ part: each.memory_bytes / Math.max(each.memory_limit_bytes, 1), className: hue(view, each.endpoint) }], "bar thin")));
  $("memory-map").replaceChildren(...tables, ...more);
  $("process-map").replaceChildren(...processes);
}

function hot(view) {
  const found = view.tables.filter((each) => each.hot?.length);
  const parts = found.map((each) => {
    const most = each.hot[0].fraction;
    const lines = each.hot.flatMap((id) => [
      make("code", "", id.id),
      bar([{ part: id.fraction / most, className: hue(view, id.endpoint), title: `at ${id.endpoint}` }]),
      make("span", "small", percent(id.fraction)),
    ]);
    return make("div", "row", label(each.name, "of its ids pulled"), make("div", "hot", ...lines));
  });
  $("hot-ids").replaceChildren(...(parts.length ? parts : [none("No ids have been pulled yet.")]));
}

function cuts(view) {
  const { cuts: found } = view;
  if (!found) return $("cut-list").replaceChildren(none("This job makes no cuts: its pservers have no --checkpoint-dir."));
  const facts = make("dl", "facts");
  const add = (title, text) => facts.append(make("dt", "", title), make("dd", "", text));
  const size = (cut) => (cut.bytes ? `, ${bytes(cut.bytes)}` : "");
  const { newest, writing, given_up: failed } = found;
  if (newest) {
    const age = newest.age_s === undefined ? "" : `, ${seconds(newest.age_s)} ago, took ${seconds(newest.took_s)}`;
    add("newest", make("strong", "", `cut ${newest.number}`));
    facts.lastChild.append(`${size(newest)}${age}`);
  } else add("newest", "none yet");
  if (writing) add("in progress", `cut ${writing.number}, for ${seconds(writing.for_s)}${size(writing)}`);
  else if (found.proposed) add("in progress", `cut ${found.proposed}, which trainers are about to take part in`);
  if (failed) add("given up", make("span", "bad-text", `cut ${failed.number}, ${seconds(failed.age_s)} ago: ${failed.why}`));
  add("so far", `${found.complete} complete, ${found.failed} given up`);
  return $("cut-list").replaceChildren(facts);
}

function errors(view) {
  const items = view.errors.map((each) => make("li", "",
    make("span", "time", `${count(each.count)} ×`),
    make("strong", "bad-text", each.code), make("span", "soft", ` ${each.summary}, last ${seconds(each.age_s)} ago at ${places(view, each.endpoints)}`),
    make("div", "", each.message), each.hint ? make("div", "hint", each.hint) : "",
    make("div", "soft small", each.docs)));
  $("error-list").replaceChildren(items.length ? make("ul", "list", ...items) : none("No call has failed."));
}

// --- live -----------------------------------------------------------------------------------------

let latest = null;
let source = null;
let paused = false;

function show(view) {
  latest = view;
  if (!document.getSelection().isCollapsed) return;  // somebody copies a text
  for (const part of [learnNames, head, tiles, waits, trainers, pservers, shards, memory, hot, cuts, errors]) part(view);
}

function tell(text, className) {
  set($("state"), text);
  $("state").className = `dot ${className}`;
}

function listen() {
  source?.close();
  source = null;
  if (paused || document.hidden) return tell(paused ? "paused" : "asleep", "");
  source = new EventSource("/events");
  source.onmessage = (event) => { tell("live", "on"); show(JSON.parse(event.data)); };
  source.onerror = () => {
    tell("connection lost, trying again", "off");
    if (source?.readyState === EventSource.CLOSED) setTimeout(listen, AGAIN_MS);
  };
  return undefined;
}

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").textContent = paused ? "Go on" : "Pause";
  $("pause").setAttribute("aria-pressed", String(paused));
  listen();
});
document.addEventListener("visibilitychange", listen);
window.addEventListener("resize", () => latest && show(latest));
listen();
