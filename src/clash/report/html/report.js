"use strict";
// Texts of models reach the page through textContent only: nothing here builds markup from a string.
(() => {
  const PAGE = 50;
  const $ = (id) => document.getElementById(id);
  const list = $("list"), form = $("filters"), count = $("count"), more = $("more");
  const { el, text, inflate } = dom;
  const chunks = new Map();
  let index = [], shown = [], drawn = 0;
  const SHORT = JSON.parse(list.dataset.names), IS_CONTROL = document.body.dataset.truth === "control";
  const [AGREE, DISAGREE, PICK] = IS_CONTROL ? ["right", "wrong", "the better one"] : ["people agree", "people disagree", "people’s pick"];
  const first = form.querySelector("[name=show]").value;

  const short = (value) => name(SHORT[value] ?? value);
  const name = (value) => el("bdi", { class: "name" }, text(value));
  const number = (value, digits = 2) => (value === null || value === undefined ? "–" : Number(value).toFixed(digits));
  const groups = (ranking, write = (x) => x) =>
    ranking.flatMap((group, i) => [i ? " > " : "", ...group.flatMap((one, j) => [j ? " = " : "", write(one)])]);

  // A large report has its items in a page beside it. That page sits in a frame that may do nothing
  // but answer, and what it answers must have the hash that this page was written with.
  let beside = null, frame = null;
  const asked = new Map();

  const neighbour = () => frame ||= new Promise((resolve) => {
    const made = el("iframe", { sandbox: "allow-scripts", src: beside.file, title: "items", hidden: true });
    addEventListener("message", (event) => {
      if (event.source !== made.contentWindow || !event.data) return;
      const waiting = asked.get(event.data.name);
      asked.delete(event.data.name);
      if (waiting) waiting(String(event.data.text));
    });
    made.addEventListener("load", () => resolve(made.contentWindow));
    document.body.append(made);
  });

  const fetched = async (id) => {
    const source = await neighbour();
    const block = await new Promise((resolve, reject) => {
      asked.set(id, resolve);
      source.postMessage({ key: beside.key, name: id }, "*");
      setTimeout(() => reject(new Error(`${beside.file} does not answer: it must lie beside this page`)), 4000);
    });
    // Only a page that came over plain HTTP lacks this, and nothing vouches for that page either.
    if (!self.crypto || !crypto.subtle) return block;
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(block));
    if (btoa(String.fromCharCode(...new Uint8Array(hash))) !== beside.digests[id]) {
      throw new Error(`${beside.file} is not the one that this page was written with`);
    }
    return block;
  };

  const has = (id) => (beside ? id in beside.digests : Boolean($(id).textContent));

  const unpack = async (id) => {
    if (!chunks.has(id)) chunks.set(id, (async () => inflate(beside ? await fetched(id) : $(id).textContent))());
    try { return await chunks.get(id); } catch (error) { chunks.delete(id); throw error; }
  };

  const filters = () => Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));

  const SHOWS = {
    telling: (line) => line.y !== null,
    wrong: (line) => line.m === false,
    split: (line) => !line.u && !line.a,
    none: (line) => Boolean(line.a),
    failed: (line) => Boolean(line.f),
    all: () => true,
  };

  const wanted = (line, f) => {
    if (!(SHOWS[f.show] || SHOWS.all)(line)) return false;
    if (f.winner === "=tie" && (line.w !== null || line.a)) return false;
    if (f.winner && f.winner !== "=tie" && line.w !== f.winner) return false;
    if (f.tag && !line.t.includes(f.tag)) return false;
    if (f.q && !(line.id + " " + line.p).toLowerCase().includes(f.q.toLowerCase())) return false;
    return true;
  };

  const sure = (line) => (line.a ? -1 : line.c === null ? 2 : line.c);

  const filter = () => {
    const f = filters();
    shown = index.filter((line) => wanted(line, f));
    const key = f.sort === "unsure" ? sure : f.show === "telling" ? (line) => line.y : null;
    if (key) shown = shown.map((l, i) => [l, i]).sort((a, b) => key(a[0]) - key(b[0]) || a[1] - b[1]).map(([l]) => l);
    list.replaceChildren();
    drawn = 0;
    draw(PAGE);
    count.textContent = `${shown.length.toLocaleString("en")} of ${index.length.toLocaleString("en")} ${index.length === 1 ? "prompt" : "prompts"}`;
  };

  const draw = (n) => {
    const part = shown.slice(drawn, drawn + n);
    list.append(...part.map(row));
    drawn += part.length;
    more.hidden = drawn >= shown.length;
    more.textContent = `Show more (${shown.length - drawn} left)`;
  };

  const picked = (line) => {
    if (line.a) return [el("span", { class: "failed" }, "no verdict"), el("small", {}, "panel")];
    const how = line.w === null ? "level" : line.u ? "unanimous" : line.s ? `split ${line.s}` : "";
    return [line.w === null ? "a tie" : short(line.w), el("small", {}, ["panel", how].filter(Boolean).join(", "))];
  };

  const labelled = (line) => {
    if (line.l === null) return [el("span", { class: "quiet" }, "–"), el("small", {}, "no label")];
    return [line.l === "tie" ? "a tie" : short(line.l), el("small", {}, line.m ? AGREE : DISAGREE)];
  };

  const row = (line) => {
    const notes = [`Prompt ${line.id}`, ...line.t];
    if (line.x) notes.push("longest response won");
    if (line.f) notes.push(`${line.f} failed`);
    const details = el("details", { class: "item", "data-id": line.id },
      el("summary", { class: "arrow" },
        el("span", {}, el("bdi", { class: "title" }, text(line.p)), el("small", {}, name(notes.join(" · ")))),
        el("span", {}, picked(line)),
        el("span", { class: line.m === false ? "differs" : null }, labelled(line))));
    details.addEventListener("toggle", () => { if (details.open) open(details, line); });
    return details;
  };

  const open = async (details, line) => {
    remember({ item: line.id });
    if (details.querySelector(".body")) return;
    const body = el("div", { class: "body" }, el("p", { class: "quiet" }, "unpacking…"));
    details.append(body);
    try {
      const all = JSON.parse(await unpack(`text-${line.k}`));
      body.replaceChildren(...whole(all.find((one) => one.item.item_id === line.id), line));
    } catch (error) {
      body.className = "body failed";
      body.textContent = error.message;
    }
  };

  const whole = (d, line) => [
    prompt(d, line), responses(d), why(d), reasons(d), inner("How each judge scored it", scores(d)), rawCalls(d, line),
  ].filter(Boolean);

  const inner = (title, ...children) => el("details", { class: "inner" }, el("summary", { class: "arrow" }, title), el("div", {}, ...children));

  const long = (body) => el("pre", { tabindex: "0", dir: "auto" }, text(body));

  const prompt = (d, line) => {
    const isTitle = d.turns.length === 1 && d.turns[0].content.split(/\s+/).join(" ").trim() === line.p;
    if (isTitle && !d.item.system && !d.item.reference) return null;
    const turns = [];
    if (d.item.system) turns.push(["System message", d.item.system]);
    for (const turn of d.turns) turns.push([d.turns.length > 1 ? turn.role : null, turn.content]);
    if (d.item.reference) turns.push(["Reference answer, for judges", d.item.reference]);
    return el("div", { class: "prompt" }, el("h4", {}, "Prompt"),
      turns.map(([who, body]) => el("div", { class: "turn" }, who ? el("b", {}, who) : null, long(body))));
  };

  const words = (body) => {
    const n = (body.match(/\S+/g) || []).length;
    return `${n} ${n === 1 ? "word" : "words"}`;
  };

  // The panel's pick, then what people picked, then the others.
  const place = (r, d) => (r.candidate === d.verdict.winner ? 0 : r.candidate === d.label ? 1 : 2);

  const responses = (d) => el("div", {}, el("h4", { class: "unseen" }, "Responses"),
    el("div", { class: "pair" }, [...d.responses].sort((a, b) => place(a, d) - place(b, d)).map((r) => response(r, d))),
    d.scrubbed.map((hit) => el("p", { class: "small" }, "Masked in what judges saw: ", text(hit))));

  const response = (r, d) => {
    const roles = [];
    if (r.candidate === d.verdict.winner) roles.push("the panel’s pick");
    if (r.candidate === d.label) roles.push(PICK);
    const facts = [...roles, r.text === null ? null : words(r.text),
      r.cost_usd === null ? null : `$${Number(r.cost_usd).toPrecision(2)}`,
      r.latency_s === null ? null : `${number(r.latency_s, 1)} s`,
      r.finish_reason && r.finish_reason !== "stop" ? r.finish_reason : null].filter(Boolean);
    return el("article", { class: r.candidate === d.label ? "response people" : "response" },
      el("h4", {}, name(r.candidate), el("span", {}, facts.length ? ` · ${facts.join(", ")}` : "")),
      r.text === null ? el("p", { class: "failed" }, "No response: ", text(r.error || "no text")) : null,
      r.turns ? turnsOf(r) : r.text === null ? null : long(r.text));
  };

  const turnsOf = (r) => r.turns.map((turn, i) => {
    const facts = [`Turn ${i + 1}`, turn.cost_usd === null ? null : `$${Number(turn.cost_usd).toPrecision(2)}`,
      turn.latency_s === null ? null : `${number(turn.latency_s, 1)} s`,
      turn.finish_reason && turn.finish_reason !== "stop" ? turn.finish_reason : null].filter(Boolean);
    return el("div", { class: "turn" },
      turn.user === null ? null : [el("b", {}, `User, turn ${i + 1}`), long(turn.user)],
      el("b", {}, facts.join(" · ")), long(turn.text));
  });

  const why = (d) => {
    const notes = d.people.filter((p) => p.note);
    if (!notes.length) return null;
    return el("div", { class: "why" }, notes.map((p) =>
      el("p", {}, el("b", {}, name(p.annotator), p.winner ? [" chose ", name(p.winner)] : "", ". "), "“", name(p.note), "”")));
  };

  const best = (ranking, write) => ranking.flatMap((group, i) => [
    i ? " › " : "",
    ...group.flatMap((one, j) => [j ? " = " : "", i ? write(one) : el("b", {}, write(one))]),
  ]);

  const reasons = (d) => el("div", {}, el("h4", { class: "unseen" }, "Judges"),
    d.said.length ? el("div", { class: "reasons" }, d.said.map(judge)) : el("p", { class: "failed" }, "No judgment."));

  const judge = (s) => {
    const head = el("h4", {}, name(s.judge), s.role === "voting" ? "" : el("span", { class: "quiet" }, " · observer"));
    if (s.ranking === null) return el("div", {}, head, el("p", { class: "failed" }, "Failed, no vote: ", text(s.error || "")));
    return el("div", {}, head, el("p", { class: "order" }, best(s.unblinded, name)),
      el("ul", {}, given(s).map(([who, why, criteria]) => el("li", {},
        name(who), ": “", name(why), "” ", el("small", {}, name(criteria.join(", ")))))));
  };

  // What a judge says of a response, once, however many criteria it says it of.
  const given = (s) => {
    const by = new Map();
    for (const [label, reasons] of Object.entries(s.reasons)) {
      for (const [criterion, why] of Object.entries(reasons)) {
        const key = JSON.stringify([s.labels[label], why]), score = (s.scores[label] || {})[criterion];
        by.set(key, [...(by.get(key) || []), score === undefined ? criterion : `${criterion} ${score}`]);
      }
    }
    return [...by].map(([key, criteria]) => [...JSON.parse(key), criteria]);
  };

  const scores = (d) => [criteria(d), ...d.said.map(judgment), verdict(d)].filter(Boolean);

  const criteria = (d) => {
    if (!d.criteria || !d.criteria.criteria.length) return null;
    return el("div", {}, el("h4", {}, "Criteria"),
      d.criteria.error ? el("p", { class: "small" }, "The default ones, because: ", text(d.criteria.error)) : null,
      el("ol", {}, d.criteria.criteria.map((c) => el("li", {}, name(c.name), ` (${Math.round(c.weight * 100)}%) `, text(c.description)))));
  };

  const judgment = (s) => {
    const head = el("h4", {}, name(s.judge), el("span", { class: "quiet" },
      [` · ${s.role}, weight ${s.weight}`, s.presentation ? `presentation ${s.presentation}` : "", s.parse === "clean" ? "" : s.parse].filter(Boolean).join(", ")));
    if (s.ranking === null) return el("div", {}, head, el("p", { class: "failed" }, "Failed, no vote: ", text(s.error || "")));
    const seen = Object.entries(s.labels).map(([label, who], i) => [i ? ", " : "", label, " = ", name(who)]);
    const points = Object.entries(s.points).map(([label, value]) => `${label} ${value}`).join(", ");
    return el("div", {}, head,
      el("p", { class: "small" }, "It saw ", seen.flat(), " and said ", groups(s.ranking), `. Borda points: ${points}.`),
      scoreTable(s),
      [...s.repairs, ...s.flags].map((note) => el("p", { class: "small" }, "Note: ", text(note))));
  };

  const scoreTable = (s) => {
    const labels = Object.keys(s.scores).sort();
    if (!labels.length) return null;
    const rows = [...new Set(labels.flatMap((label) => Object.keys(s.scores[label])))];
    const cell = (label, criterion) => {
      const score = s.scores[label][criterion], why = (s.reasons[label] || {})[criterion];
      return el("td", {}, score === undefined ? "–" : String(score), why ? el("span", { class: "quiet" }, " ", name(why)) : null);
    };
    return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `Scores of ${s.judge}` }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Score, 1 to 5"), labels.map((l) => el("th", { scope: "col" }, l, " ", name(s.labels[l]))))),
      el("tbody", {}, rows.map((c) => el("tr", {}, el("th", { scope: "row" }, name(c)), labels.map((l) => cell(l, c)))),
        el("tr", {}, el("th", { scope: "row" }, "weighted mean"), labels.map((l) => el("td", {}, number(s.mean_scores[l])))))));
  };

  const verdict = (d) => {
    const v = d.verdict;
    const lines = v.ranking === null
      ? [el("p", { class: "failed" }, "No verdict: ", text(v.abstained))]
      : [el("p", {}, v.winner === null ? ["A tie of ", groups([v.ranking[0]], name)] : [name(v.winner), " wins"],
          ` (${v.unanimous ? "unanimous" : "not unanimous"}${v.split ? `, ${v.split}` : ""}, confidence ${number(v.confidence)}).`),
        el("p", { class: "small" }, v.borda ? "Borda points: " : `${v.method}: `, Object.entries(v.scores).sort((a, b) => b[1] - a[1]).flatMap(([who, score], i) => [i ? ", " : "", name(who), ` ${score}`]))];
    if (v.borda) {
      const shares = Object.entries(v.p || {}).sort((a, b) => b[1] - a[1]);
      lines.push(el("p", { class: "small" }, `${v.method}: `, shares.flatMap(([who, share], i) => [i ? ", " : "", name(who), ` ${number(share)}`]),
        ". By Borda: ", groups(v.borda, name), "."));
    }
    if (d.label !== null) lines.push(el("p", {}, "Label: ", name(d.label), "."));
    for (const p of d.people) {
      lines.push(el("p", { class: "small" }, name(p.annotator), " chose ", p.winner !== null ? name(p.winner) : p.ranking ? groups(p.ranking, name) : "nothing"));
    }
    return el("div", {}, el("h4", {}, "Verdict"), lines);
  };

  const rawCalls = (d, line) => {
    const calls = el("div", {});
    const holder = el("details", { class: "inner" }, el("summary", { class: "arrow" }, "Raw calls, as they were sent and answered"), calls);
    holder.addEventListener("toggle", async () => {
      if (!holder.open || calls.children.length) return;
      if (!has(`calls-${line.k}`)) {
        calls.append(el("p", { class: "quiet" }, "left out, for this page would be too large: they are in calls.jsonl in the run folder"));
        return;
      }
      let packed;
      try { packed = await unpack(`calls-${line.k}`); } catch (error) { calls.append(el("p", { class: "failed" }, error.message)); return; }
      const lines = packed.split("\n").filter(Boolean).map((l) => JSON.parse(l));
      const mine = lines.filter((call) => call.item_id === line.id);
      if (!mine.length) calls.append(el("p", { class: "quiet" }, "none"));
      for (const call of mine) {
        const who = [call.judge || call.candidate || "", call.model].filter(Boolean).join(" · ");
        calls.append(el("details", { class: "inner" }, el("summary", { class: "arrow" }, el("span", {}, `${call.purpose} `, name(who), ` attempt ${call.attempt}, ${call.outcome}`)),
          el("pre", { class: "raw code", tabindex: "0" }, text(JSON.stringify(call, null, 1)))));
      }
    });
    return holder;
  };

  // What is filtered and open is in the address, so that it can be sent to someone.
  const remember = (extra = {}) => {
    const state = new URLSearchParams({ ...filters(), ...extra });
    if ([...state].length === 1 && state.get("show") === first) state.delete("show"); // as it opens
    const hash = state.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };

  const recall = () => {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) return null;
    const state = new URLSearchParams(hash);
    for (const field of form.querySelectorAll("[name]")) {
      if (field.type === "radio") field.checked = field.value === (state.get("show") ?? "all");
      else field.value = state.get(field.name) ?? "";
    }
    return state.get("item");
  };

  const reveal = (id) => {
    const place = shown.findIndex((line) => line.id === id);
    if (place < 0) return;
    if (place >= drawn) draw(place - drawn + 1);
    const details = list.children[place];
    details.open = true;
    details.scrollIntoView();
    details.querySelector("summary").focus({ preventScroll: true });
  };

  const restore = () => {
    const item = recall();
    filter();
    if (item !== null) reveal(item);
  };

  const step = (way) => {
    const rows = [...list.children];
    const here = rows.findIndex((one) => one.contains(document.activeElement));
    const next = rows[here < 0 ? 0 : Math.min(Math.max(here + way, 0), rows.length - 1)];
    if (next) next.querySelector("summary").focus();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { filter(); remember(); });
  more.addEventListener("click", () => draw(PAGE));
  addEventListener("hashchange", () => { if (location.hash.includes("=")) restore(); });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") { event.preventDefault(); form.elements.namedItem("q").focus(); }
  });

  (async () => {
    index = JSON.parse(await inflate($("index").textContent));
    if ($("beside")) beside = JSON.parse(await inflate($("beside").textContent));
    restore();
    document.body.dataset.ready = "yes";
  })();
})();
