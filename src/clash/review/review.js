"use strict";
// Texts of models reach the page through textContent only: nothing here builds markup from a string.
(() => {
  const $ = (id) => document.getElementById(id);
  const { el, text, inflate } = dom;
  let annotator = "", state = null, busy = false;

  const name = (value) => el("bdi", {}, text(value));

  // Where decisions go: to the server that sent this page, or into this page, for a file.
  const live = () => {
    const ask = (what, request = {}) => local.ask(what, { annotator, ...request });
    return {
      state: () => ask("state"), decide: (decision) => ask("decide", decision), undo: () => ask("undo"),
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
      decide: async (decision) => {
        if (decision.choice === "skip") skipped = [...skipped.filter((s) => s !== decision.item), decision.item];
        else { decisions.push(decision); save(); }
        return now();
      },
      undo: async () => { const one = decisions.pop(); save(); return now(one && one.item); },
      finish: async () => {
        const file = { format: held.format, run: held.run, key: held.key, draw: held.draw, proof: held.proof, annotator, decisions };
        const link = el("a", { download: `labels-${annotator.replace(/[^\w-]+/g, "-")}.json` });
        link.href = URL.createObjectURL(new Blob([JSON.stringify(file, null, 1)], { type: "application/json" }));
        link.click();
        return { words: "Your decisions were saved as a file; send it to whoever gave you this page.", tables: [] };
      },
      after: "Finish saves your decisions as a file.",
      meanwhile: "",
    };
  };

  const quote = (head, body, kind) => el("article", { class: kind }, el("h2", {}, head), el("pre", { tabindex: "0", dir: "auto" }, text(body)));
  const dialogue = (head, turns) => el("article", { class: "response" }, el("h2", {}, head), turns.map((turn, i) => [
    turn.user === null ? null : [el("h3", {}, `User, turn ${i + 1}`), el("pre", { dir: "auto" }, text(turn.user))],
    el("h3", {}, `Turn ${i + 1}`), el("pre", { tabindex: "0", dir: "auto" }, text(turn.text))]));
  const table = (columns, rows) => el("table", {},
    el("thead", {}, el("tr", {}, columns.map((column, i) => el("th", { scope: "col", class: i > 0 && "number" }, column)))),
    el("tbody", {}, rows.map(([head, ...cells]) => el("tr", {}, el("th", { scope: "row" }, head), cells.map((cell) => el("td", { class: "number" }, cell))))));

  const button = (key, words, choice, kind) => {
    const control = el("button", { type: "button", class: kind, "data-choice": choice }, words, " ", el("kbd", {}, key));
    control.addEventListener("click", () => decide(choice));
    return control;
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
    $("end").firstElementChild.textContent = found.stands || "Nothing left to decide";
    $("after").textContent = where.after;
    if (found.item !== null) task(found.item, found.undo);
    document.body.dataset.item = found.item === null ? "" : found.item.item;
  };

  const task = (item, undo) => {
    $("prompt").replaceChildren(
      ...(item.system ? [quote("System message", item.system)] : []),
      ...item.turns.map((turn) => quote(turn.role === "user" ? "Prompt" : turn.role, turn.content)),
      ...(item.reference ? [quote("Reference answer", item.reference)] : []),
      ...(item.criteria.length ? [el("p", { class: "criteria" }, "Judge by: ", item.criteria.flatMap((c, i) => [i ? ", " : "", name(c.name)]))] : []));
    const sides = Object.keys(item.responses);
    $("responses").replaceChildren(...sides.map((side) => {
      const turns = item.conversations[side];
      return turns ? dialogue(`Response ${side}`, turns) : quote(`Response ${side}`, item.responses[side], "response");
    }));
    $("choices").replaceChildren(
      ...sides.map((side) => button(side.toLowerCase(), `${side} is ${sides.length > 2 ? "best" : "better"}`, side, "choose")),
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

  const scores = (item, sides) => table(["1 to 5", ...sides], item.criteria.map((criterion) => [name(criterion.name), ...sides.map((side) => {
    const pick = el("select", { "aria-label": `${criterion.name}, response ${side}` }, ["", 1, 2, 3, 4, 5].map((n) => el("option", {}, n)));
    pick.dataset.side = side;
    pick.dataset.criterion = criterion.name;
    return pick;
  })]));

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
    const percent = (x) => (x ? `${Math.round(100 * x[0])}% [${Math.round(100 * x[1])}, ${Math.round(100 * x[2])}]` : "–");
    const number = (x) => (x ? `${x[0].toFixed(2)} [${x[1].toFixed(2)}, ${x[2].toFixed(2)}]` : "–");
    const cells = (line) => ("alpha" in line
      ? ["–", `alpha ${number(line.alpha)}`]
      : [percent(line.same), number(line.kappa)]);
    $("agreement-table").replaceChildren(table(["compared with", "items", "same choice", "kappa"],
      lines.map((line) => [name(line.with), String(line.n), ...cells(line)])));
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
    try { show(await work()); } catch (error) { $("error").textContent = `Your decision was not saved: ${error.message}`; }
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
  const tell = (change) => [
    el("h2", {}, change.title),
    el("div", { class: "wide", role: "region", "aria-label": change.title },
      table(change.columns, change.rows.map((row) => row.map(text)))),
    ...change.notes.map((note) => el("p", { class: "small" }, text(note))),
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
      $("terms").hidden = found.tables.length === 0;
    } catch (error) { if (state) show(state); $("error").textContent = error.message; }
    busy = false;
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !state || !state.item) return;
    if (event.key === "Escape") { document.activeElement.blur(); return; }
    if (event.target.closest("input, select, textarea, .term")) return;
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
      where = disk(JSON.parse(await inflate(packed)));
    } else where = live();
    const field = $("who").elements.namedItem("annotator");
    const before = sessionStorage.getItem("clash-annotator");
    if (before && !packed) { field.value = before; annotator = before; run(() => where.state()); }
    document.body.dataset.ready = "yes";
  };
  begin();
})();
