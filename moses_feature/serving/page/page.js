"use strict";
// Translates the text as it is typed; shows phrases and other translations of a sentence.

const PAUSE = 300; // milliseconds without a key before the text is sent
const OTHERS = 10; // translations of the chosen sentence
const byId = (id) => document.getElementById(id);
const source = byId("source"), target = byId("target"), state = byId("status");

let token = "", timer = 0, request = 0, chosen = 0, shown = null, lines = [];
const known = new Map(); // the translation of each sentence
const lists = new Map(); // the promise of each sentence's list of translations

const element = (name, text, settings = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  return Object.assign(made, settings);
};

async function ask(texts, list_size) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const body = JSON.stringify({ texts, list_size });
  const answer = await fetch("/translate", { method: "POST", headers, body });
  const content = await answer.json();
  if (answer.status === 401) byId("access").hidden = false;
  if (!answer.ok) throw new Error(content.error);
  byId("access").hidden = true;
  return content.translations;
}

async function update() {
  const own = ++request;
  lines = source.value.split("\n");
  const fresh = [...new Set(lines.filter((line) => line.trim() && !known.has(line)))];
  if (fresh.length) state.textContent = "translating …";
  try {
    const found = fresh.length ? await ask(fresh, 1) : [];
    fresh.forEach((line, number) => known.set(line, found[number]));
    if (own === request) state.textContent = "";
  } catch (error) {
    if (own === request) state.textContent = error.message;
  }
  if (own === request) show();
}

function addLine(number) {
  const button = element("button", "", { type: "button" });
  button.addEventListener("click", () => choose(number));
  const item = document.createElement("li");
  item.append(button);
  target.append(item);
}

function show() {
  while (target.children.length > lines.length) target.lastChild.remove();
  while (target.children.length < lines.length) addLine(target.children.length);
  lines.forEach((line, number) => {
    const button = target.children[number].firstChild, found = known.get(line);
    button.textContent = found ? found.text ?? found.error : "";
    button.classList.toggle("failed", Boolean(found && found.error));
  });
  if (chosen < lines.length && known.get(lines[chosen])?.text) choose(chosen);
  else byId("details").hidden = true;
}

function listOf(line) {
  if (!lists.has(line)) {
    const list = ask([line], OTHERS).then((found) => found[0]);
    list.catch(() => lists.delete(line));
    lists.set(line, list);
  }
  return lists.get(line);
}

async function choose(number) {
  chosen = number;
  [...target.children].forEach((item, place) => {
    item.firstChild.setAttribute("aria-current", String(place === number));
  });
  const line = lines[number];
  if (!line.trim()) return;
  let found;
  try {
    found = await listOf(line);
  } catch (error) {
    state.textContent = error.message;
    return;
  }
  if (chosen !== number || lines[number] !== line || found.error) return;
  if (found !== shown) {
    showPhrases(found.tokens, found.translations[0]);
    showOthers(found.translations, found.weights);
    shown = found;
  }
  byId("details").hidden = false;
}

const words = (text, first, last) => text.split(" ").slice(first, last + 1).join(" ");

function showPhrases(tokens, best) {
  const pairs = best.phrases.split(" ").filter(Boolean).map((pair) =>
    pair.split("=").map((side) => [...side.split("-").map(Number)]).map((side) => [side[0], side.at(-1)]));
  const mark = (number, on) => document.querySelectorAll(`[data-phrase="${number}"]`)
    .forEach((span) => span.classList.toggle("marked", on));
  const span = (text, number) => {
    const made = element("span", text, { tabIndex: 0 });
    made.dataset.phrase = number;
    for (const [event, on] of [["mouseenter", true], ["mouseleave", false], ["focus", true], ["blur", false]]) {
      made.addEventListener(event, () => mark(number, on));
    }
    return made;
  };
  const byPlace = pairs.map((pair, number) => [pair, number]).sort((one, other) => one[0][0][0] - other[0][0][0]);
  byId("phrases-source").replaceChildren(...byPlace.map(([pair, n]) => span(words(tokens, ...pair[0]), n)));
  byId("phrases-target").replaceChildren(...pairs.map((pair, n) => span(words(best.tokens, ...pair[1]), n)));
}

// What each feature adds to the score: its weights times its values.
function showOthers(translations, weights) {
  const names = Object.keys(weights);
  const added = (of, name) => of.features[name].reduce((sum, value, n) => sum + value * weights[name][n], 0);
  const row = (cells) => { const made = document.createElement("tr"); made.append(...cells); return made; };
  const head = row(["translation", "score", ...names].map((name) => element("th", name, { scope: "col" })));
  const number = (value) => element("td", value, { className: "number" });
  byId("others").replaceChildren(head, ...translations.map((of) => row([
    element("td", of.text),
    number(of.score.toFixed(3)),
    ...names.map((name) => {
      const cell = number(added(of, name).toFixed(2));
      cell.title = `values ${of.features[name].join(" ")}, weights ${weights[name].join(" ")}`;
      return cell;
    }),
  ])));
}

source.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(update, PAUSE);
});
byId("access").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value;
  update();
});
