"use strict";
// Texts of models reach the page through textContent only: nothing here builds markup from a string.
(() => {
  const $ = (id) => document.getElementById(id);
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
  let annotator = "", state = null, busy = false;

  const el = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
    return node;
  };
  const text = (value) => {
    const string = String(value).replace(/\r\n/g, "\n");
    const parts = document.createDocumentFragment();
    let last = 0;
    for (const found of string.matchAll(HIDDEN)) {
      const code = "U+" + found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      parts.append(string.slice(last, found.index), el("span", { class: "hidden-character" }, code));
      last = found.index + found[0].length;
    }
    parts.append(string.slice(last));
    return parts;
  };
  const name = (value) => el("bdi", {}, text(value));

  // Where decisions go: to the server that sent this page, or into this page, for a file.
  const live = () => {
    const given = location.hash.slice(1);
    const kept = "clash-token " + location.host;
    if (given) { sessionStorage.setItem(kept, given); history.replaceState(null, "", location.pathname); }
    const token = sessionStorage.getItem(kept) || "";
    const ask = async (what, said = {}) => {
      const answer = await fetch("/api/" + what, {
        method: "POST", headers: { "Content-Type": "application/json", "X-Clash-Token": token },
        body: JSON.stringify({ annotator, ...said }),
      });
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.error);
      return found;
    };
    return {
      state: () => ask("state"), decide: (said) => ask("decide", said), undo: () => ask("undo"),
      finish: async () => ({ words: "The session has ended; the report is being rebuilt. You can close this page.", tables: (await ask("finish")).told }),
      after: "Finish ends the session for everyone and rebuilds the report.",
      follow: true,
      meanwhile: "Working out what the decisions changed…",
    };
  };

  const disk = (held) => {
    const kept = () => `clash-review ${held.key} ${annotator}`;
    const load = () => { try { return JSON.parse(localStorage.getItem(kept())) || []; } catch { return []; } };
    let decisions = null, skipped = [];
    const save = () => { try { localStorage.setItem(kept(), JSON.stringify(decisions)); } catch { /* a page from disk may have no storage: the file is what counts */ } };
    const now = (first) => {
      if (decisions === null) decisions = load();
      const done = new Set(decisions.map((one) => one.item));
      const open = held.items.filter((one) => !done.has(one.item));
      const next = [...open.filter((o) => !skipped.includes(o.item)), ...open.filter((o) => skipped.includes(o.item))];
      return { total: held.items.length, done: done.size, skipped: open.filter((o) => skipped.includes(o.item)).length,
        undo: decisions.length > 0, item: (first && open.find((o) => o.item === first)) || next[0] || null, last: null, agreement: [] };
    };
    return {
      state: async () => now(),
      decide: async (said) => {
        if (said.choice === "skip") skipped = [...skipped.filter((s) => s !== said.item), said.item];
        else { decisions.push(said); save(); }
        return now();
      },
      undo: async () => { const one = decisions.pop(); save(); return now(one && one.item); },
      finish: async () => {
        const file = { format: held.format, run: held.run, key: held.key, annotator, decisions };
        const link = el("a", { download: `labels-${annotator.replace(/[^\w-]+/g, "-")}.json` });
        link.href = URL.createObjectURL(new Blob([JSON.stringify(file, null, 1)], { type: "application/json" }));
        link.click();
        return { words: "Your decisions were saved as a file; send it to whoever gave you this page.", tables: [] };
      },
      after: "Finish saves your decisions as a file.",
      meanwhile: "",
    };
  };

  const quote = (head, body) => el("article", { class: "quote" }, el("header", {}, el("h2", {}, head)), el("pre", { tabindex: "0", dir: "auto" }, text(body)));

  const button = (key, words, choice, kind) => {
    const made = el("button", { type: "button", class: kind || "", "data-choice": choice }, words, " ", el("kbd", {}, key));
    made.addEventListener("click", () => decide(choice));
    return made;
  };

  const show = (found) => {
    state = found;
    $("who").hidden = true;
    $("finish").hidden = false;
    $("progress").textContent = `${found.done} of ${found.total} decided` + (found.skipped ? `, ${found.skipped} skipped` : "");
    $("bar").max = found.total || 1;
    $("bar").value = found.done;
    reveal(found.last);
    agreement(found.agreement);
    $("task").hidden = found.item === null;
    $("end").hidden = found.item !== null;
    $("end").firstElementChild.textContent = "Nothing left to decide";
    $("after").textContent = where.after;
    if (found.item !== null) task(found.item, found.undo);
    document.body.dataset.item = found.item === null ? "" : found.item.item;
  };

  const task = (item, undo) => {
    $("prompt").replaceChildren(
      ...(item.system ? [quote("system", item.system)] : []),
      ...item.turns.map((turn) => quote(turn.role === "user" ? "prompt" : turn.role, turn.content)),
      ...(item.reference ? [quote("reference answer", item.reference)] : []),
      ...(item.criteria.length ? [el("p", { class: "criteria" }, "Judge by: ", item.criteria.flatMap((c, i) => [i ? ", " : "", name(c.name)]))] : []));
    const sides = Object.keys(item.responses);
    $("responses").replaceChildren(...sides.map((side) => quote(`Response ${side}`, item.responses[side])));
    $("choices").replaceChildren(
      ...sides.map((side) => button(side.toLowerCase(), `${side} is better`, side, "choose")),
      button("t", "Tie", "tie"), button("x", sides.length > 2 ? "All bad" : "Both bad", "both bad"), button("s", "Skip", "skip"));
    if (undo) {
      const back = el("button", { type: "button", id: "undo" }, "Undo ", el("kbd", {}, "u"));
      back.addEventListener("click", takeBack);
      $("choices").append(back);
    }
    $("note").value = "";
    $("scores").replaceChildren(scores(item, sides));
    scrollTo(0, 0);
  };

  const scores = (item, sides) => el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "1 to 5"), sides.map((s) => el("th", { scope: "col" }, s)))),
    el("tbody", {}, item.criteria.map((c) => el("tr", {}, el("th", { scope: "row" }, name(c.name)),
      sides.map((side) => {
        const pick = el("select", { "aria-label": `${c.name}, response ${side}` }, ["", 1, 2, 3, 4, 5].map((n) => el("option", {}, n)));
        pick.dataset.side = side;
        pick.dataset.criterion = c.name;
        return el("td", {}, pick);
      })))));

  const given = () => {
    const found = {};
    for (const pick of $("scores").querySelectorAll("select")) {
      if (pick.value) (found[pick.dataset.side] ||= {})[pick.dataset.criterion] = Number(pick.value);
    }
    return found;
  };

  const reveal = (last) => {
    const place = $("last");
    place.replaceChildren();
    place.className = "";
    if (!last) return;
    place.className = last.same ? "same" : "other";
    const who = Object.entries(last.sides).map(([side, candidate], i) => [i ? ", " : "", `${side} was `, name(candidate)]);
    place.append(el("bdi", {}, text(last.item)), ": ", ...who.flat(), ". You: ", name(last.you), ". The panel: ", name(last.panel),
      last.split ? ` (${last.unanimous ? "unanimous" : last.split})` : "", last.same ? ", the same." : ", not the same.");
  };

  const agreement = (lines) => {
    $("agreement").hidden = lines.length === 0;
    const within = (found, write) => (found ? `${write(found[0])} [${write(found[1])}, ${write(found[2])}]` : "–");
    const percent = (x) => `${Math.round(100 * x)}%`, number = (x) => x.toFixed(2);
    const cells = (line) => ("alpha" in line
      ? ["–", `alpha ${within(line.alpha, number)}`]
      : [within(line.same, percent), within(line.kappa, number)]);
    $("agreement").lastElementChild.replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, ["you and", "items", "the same", "kappa"].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, lines.map((line) => el("tr", {}, el("th", { scope: "row" }, name(line.with)), el("td", {}, String(line.n)), cells(line).map((c) => el("td", {}, c)))))));
  };

  // While the table is open it follows what the others decide.
  setInterval(async () => {
    if (busy || !state || !where.follow || document.hidden || !$("agreement").open) return;
    try {
      const found = (await where.state()).agreement;
      if (!busy && state) agreement(found);
    } catch { /* a session that has ended says so at the next decision */ }
  }, 2000);

  const run = async (work) => {
    if (busy) return;
    busy = true;
    $("error").textContent = "";
    try { show(await work()); } catch (error) { $("error").textContent = `That was not written down: ${error.message}`; }
    busy = false;
  };
  const decide = (choice) => state && state.item && run(() => where.decide({ item: state.item.item, choice, scores: given(), note: $("note").value }));
  const takeBack = () => state && state.undo && run(() => where.undo());

  $("who").addEventListener("submit", (event) => {
    event.preventDefault();
    annotator = new FormData($("who")).get("annotator").trim();
    sessionStorage.setItem("clash-annotator", annotator);
    run(() => where.state());
  });
  const tell = (found) => [
    el("h2", {}, found.title),
    el("div", { class: "wide", role: "region", tabindex: "0", "aria-label": found.title }, el("table", {},
      el("thead", {}, el("tr", {}, found.columns.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, found.rows.map(([head, ...cells]) => el("tr", {},
        el("th", { scope: "row" }, text(head)), cells.map((cell) => el("td", {}, text(cell)))))))),
    ...found.notes.map((note) => el("p", {}, text(note))),
  ];

  $("finish").addEventListener("click", async () => {
    if (busy) return;
    busy = true;
    $("error").textContent = "";
    $("end").firstElementChild.textContent = "Finishing";
    $("after").textContent = where.meanwhile;
    $("end").hidden = false;
    try {
      const found = await where.finish();
      if (!$("held").textContent) { $("task").hidden = true; $("last").replaceChildren(); $("finish").hidden = true; state = null; }
      $("end").firstElementChild.textContent = "Finished";
      $("after").replaceChildren(text(found.words));
      $("told").replaceChildren(...found.tables.flatMap(tell));
    } catch (error) { if (state) show(state); $("error").textContent = error.message; }
    busy = false;
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !state || !state.item) return;
    if (event.key === "Escape") { document.activeElement.blur(); return; }
    if (event.target.closest("input, select, textarea")) return;
    const key = event.key.toLowerCase();
    const side = Object.keys(state.item.responses).find((one) => one.toLowerCase() === key);
    const known = { t: "tie", x: "both bad", s: "skip" };
    const many = Object.keys(state.item.responses).length > 18;
    if (event.repeat) return;
    if (side && !(many && known[key])) decide(side);
    else if (known[key]) decide(known[key]);
    else if (key === "u") takeBack();
    else if (key === "n") { event.preventDefault(); $("extra").open = true; $("note").focus(); }
  });

  let where = null;
  const begin = async () => {
    const packed = $("held").textContent;
    if (packed) {
      const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      where = disk(JSON.parse(await new Response(stream).text()));
    } else where = live();
    const field = $("who").elements.namedItem("annotator");
    const before = sessionStorage.getItem("clash-annotator");
    if (before && !packed) { field.value = before; annotator = before; run(() => where.state()); }
    document.body.dataset.ready = "yes";
  };
  begin();
})();
