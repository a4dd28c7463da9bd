"use strict";
// Texts of models reach the page through textContent only: nothing here builds markup from a string.
(() => {
  const PAGE = 50;
  const $ = (id) => document.getElementById(id);
  const list = $("list"), form = $("filters"), count = $("count"), more = $("more");
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
  const chunks = new Map();
  let index = [], shown = [], drawn = 0;

  const el = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) node.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
    }
    for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
    return node;
  };

  // Characters that act unseen (controls, changes of direction) are written out.
  const text = (value) => {
    const string = String(value).replace(/\r\n/g, "\n");
    const parts = document.createDocumentFragment();
    let last = 0;
    for (const found of string.matchAll(HIDDEN)) {
      parts.append(string.slice(last, found.index));
      const code = "U+" + found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      parts.append(el("span", { class: "hidden-character" }, code));
      last = found.index + found[0].length;
    }
    parts.append(string.slice(last));
    return parts;
  };
  const name = (value) => el("bdi", { class: "name" }, text(value));
  const number = (value, digits = 2) => (value === null || value === undefined ? "–" : Number(value).toFixed(digits));
  const groups = (ranking, write = (x) => x) =>
    ranking.flatMap((group, i) => [i ? " > " : "", ...group.flatMap((one, j) => [j ? " = " : "", write(one)])]);

  const inflate = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  };

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

  const wanted = (line, f) => {
    if (f.split && (line.u || line.a)) return false;
    if (f.failed && !line.f) return false;
    if (f.none && !line.a) return false;
    if (f.wrong && line.m !== false) return false;
    if (f.conf !== undefined && !(line.c !== null && line.c <= Number(f.conf) + 1e-9)) return false;
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
    if (f.sort === "unsure") shown = shown.map((l, i) => [l, i]).sort((a, b) => sure(a[0]) - sure(b[0]) || a[1] - b[1]).map(([l]) => l);
    list.replaceChildren();
    drawn = 0;
    draw(PAGE);
    count.textContent = `${shown.length} of ${index.length} items`;
  };

  const draw = (n) => {
    const part = shown.slice(drawn, drawn + n);
    list.append(...part.map(row));
    drawn += part.length;
    more.hidden = drawn >= shown.length;
    more.textContent = `Show more (${shown.length - drawn} left)`;
  };

  const mark = (words, tone) => el("span", { class: `mark ${tone}` }, words);

  const outcome = (line) => {
    const marks = [];
    if (line.f) marks.push(mark(`${line.f} failed`, "bad"));
    if (line.m === false) marks.push(mark("not the label", "warn"));
    if (line.m === true) marks.push(mark("as the label", "good"));
    if (line.a) return [el("span", { class: "bad" }, "no verdict"), marks];
    const how = line.u ? "unanimous" : line.s || "";
    return [line.w === null ? "tie" : name(line.w), " ", el("span", { class: "muted" }, how), marks];
  };

  const row = (line) => {
    const details = el("details", { class: "item", "data-id": line.id },
      el("summary", {},
        el("span", { class: "id" }, name(line.id)),
        el("span", { class: "snippet" }, name(line.p)),
        el("span", { class: "outcome" }, outcome(line))));
    details.addEventListener("toggle", () => { if (details.open) open(details, line); });
    return details;
  };

  const open = async (details, line) => {
    remember({ item: line.id });
    if (details.querySelector(".body")) return;
    const body = el("div", { class: "body" }, el("p", { class: "muted" }, "unpacking…"));
    details.append(body);
    try {
      const all = JSON.parse(await unpack(`text-${line.k}`));
      body.replaceChildren(...whole(all.find((one) => one.item.item_id === line.id), line));
    } catch (error) {
      body.className = "body bad";
      body.textContent = error.message;
    }
  };

  const quote = (head, body, won) =>
    el("article", { class: won ? "quote won" : "quote" }, el("header", {}, head), el("pre", { tabindex: "0", dir: "auto" }, text(body)));

  const whole = (d, line) => [
    ...prompt(d), criteria(d), responses(d), judgments(d), verdict(d), rawCalls(d, line),
  ].filter(Boolean);

  const prompt = (d) => [
    el("h4", {}, "Prompt"),
    d.item.system ? quote("system", d.item.system) : null,
    ...d.turns.map((turn) => quote(turn.role, turn.content)),
    d.item.reference ? quote("reference answer, for judges", d.item.reference) : null,
    d.item.tags.length ? el("p", { class: "small" }, "tags: ", name(d.item.tags.join(", "))) : null,
  ].filter(Boolean);

  const criteria = (d) => {
    if (!d.criteria || !d.criteria.criteria.length) return null;
    return el("div", {}, el("h4", {}, `Criteria (${d.criteria.source})`),
      d.criteria.error ? el("p", { class: "warn" }, "fallback because: ", text(d.criteria.error)) : null,
      el("ol", {}, d.criteria.criteria.map((c) => el("li", {}, name(c.name), ` (${Math.round(c.weight * 100)}%) `, text(c.description)))));
  };

  const responses = (d) => {
    const labels = Object.fromEntries(Object.entries(d.labels).map(([label, who]) => [who, label]));
    return el("div", {}, el("h4", {}, "Responses"),
      el("div", { class: "said-by" }, d.responses.map((r) => {
        const facts = [r.source, r.cost_usd === null ? null : `$${Number(r.cost_usd).toPrecision(2)}`,
          r.latency_s === null ? null : `${number(r.latency_s, 1)} s`,
          r.tokens && r.tokens.output !== null ? `${r.tokens.output} tokens` : null, r.finish_reason].filter(Boolean);
        const head = [el("strong", {}, name(r.candidate)), el("span", {}, labels[r.candidate] ? `judges saw it as ${labels[r.candidate]}` : "not shown to judges"),
          el("span", { class: "muted" }, text(facts.join(" · "))),
          r.text === null ? el("span", { class: "bad" }, "no response") : null];
        return quote(head, r.text === null ? r.error || "no text" : r.text, d.verdict.winner === r.candidate);
      })),
      d.scrubbed.map((hit) => el("p", { class: "warn small" }, "masked in what judges saw: ", text(hit))));
  };

  const judgments = (d) => el("div", {}, el("h4", {}, "Judgments"), d.said.length ? d.said.map((s) => judgment(s, d)) : el("p", { class: "bad" }, "none"));

  const judgment = (s, d) => {
    const head = el("p", {}, el("strong", {}, name(s.judge)), ` ${s.role}, weight ${s.weight}`,
      s.presentation ? `, presentation ${s.presentation}` : "", s.parse === "clean" ? "" : `, answer ${s.parse}`);
    if (s.ranking === null) return el("div", { class: "judgment" }, head, el("p", { class: "bad" }, "failed, no vote: ", text(s.error || "")));
    const blinds = Object.entries(s.labels).map(([label, who]) => [el("strong", {}, label), " = ", name(who), "  "]);
    const points = Object.entries(s.points).map(([label, value]) => `B(${label}) = ${value}`).join(", ");
    return el("div", { class: "judgment" }, head,
      el("p", {}, "said ", groups(s.ranking), ", that is ", groups(s.unblinded, name), el("span", { class: "muted" }, `  ${points}`)),
      el("p", { class: "small" }, "blinding: ", blinds.flat()),
      scoreTable(s),
      [...s.repairs, ...s.flags].map((note) => el("p", { class: "warn small" }, "note: ", text(note))));
  };

  const scoreTable = (s) => {
    const labels = Object.keys(s.scores).sort();
    if (!labels.length) return null;
    const rows = [...new Set(labels.flatMap((label) => Object.keys(s.scores[label])))];
    const cell = (label, criterion) => {
      const score = s.scores[label][criterion], why = (s.reasons[label] || {})[criterion];
      return el("td", {}, score === undefined ? "–" : String(score), why ? el("span", { class: "muted" }, " ", name(why)) : null);
    };
    return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Scores" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "score, 1 to 5"), labels.map((l) => el("th", { scope: "col" }, l, " ", name(s.labels[l]))))),
      el("tbody", {}, rows.map((c) => el("tr", {}, el("th", { scope: "row" }, name(c)), labels.map((l) => cell(l, c)))),
        el("tr", {}, el("th", { scope: "row" }, "weighted mean"), labels.map((l) => el("td", {}, number(s.mean_scores[l])))))));
  };

  const verdict = (d) => {
    const v = d.verdict;
    const lines = v.ranking === null
      ? [el("p", { class: "bad" }, "no verdict: ", text(v.abstained))]
      : [el("p", {}, el("strong", {}, v.winner === null ? ["a tie of ", groups([v.ranking[0]], name)] : name(v.winner)),
          ` (${v.unanimous ? "unanimous" : "not unanimous"}, ${v.split}, confidence ${number(v.confidence)})`),
        el("p", { class: "small" }, `${v.method}: `, Object.entries(v.scores).sort((a, b) => b[1] - a[1]).flatMap(([who, score], i) => [i ? ", " : "", name(who), ` ${score}`]))];
    if (d.label !== null) {
      const same = v.ranking !== null && (v.winner === null ? "tie" : v.winner) === d.label;
      lines.push(el("p", { class: same ? "good" : "warn" }, "label: ", name(d.label), same ? " (the same)" : " (not the same)"));
    }
    for (const p of d.people) {
      lines.push(el("p", { class: "small" }, name(p.annotator), " chose ", p.winner !== null ? name(p.winner) : p.ranking ? groups(p.ranking, name) : "nothing", p.note ? [": ", name(p.note)] : ""));
    }
    return el("div", {}, el("h4", {}, "Verdict"), lines);
  };

  const rawCalls = (d, line) => {
    const holder = el("details", {}, el("summary", {}, "Raw calls, as they were sent and answered"));
    holder.addEventListener("toggle", async () => {
      if (!holder.open || holder.children.length > 1) return;
      if (!has(`calls-${line.k}`)) {
        holder.append(el("p", { class: "muted" }, "left out, for this page would be too large: they are in calls.jsonl in the run folder"));
        return;
      }
      let packed;
      try { packed = await unpack(`calls-${line.k}`); } catch (error) { holder.append(el("p", { class: "bad" }, error.message)); return; }
      const lines = packed.split("\n").filter(Boolean).map((l) => JSON.parse(l));
      const mine = lines.filter((call) => call.item_id === line.id);
      if (!mine.length) holder.append(el("p", { class: "muted" }, "none"));
      for (const call of mine) {
        const who = [call.judge || call.candidate || "", call.model].filter(Boolean).join(" · ");
        holder.append(el("details", {}, el("summary", {}, `${call.purpose} `, name(who), ` attempt ${call.attempt}, ${call.outcome}`),
          el("pre", { class: "raw", tabindex: "0" }, text(JSON.stringify(call, null, 1)))));
      }
    });
    return holder;
  };

  // What is filtered and open is in the address, so that it can be sent to someone.
  const remember = (extra = {}) => {
    const state = new URLSearchParams({ ...filters(), ...extra });
    const hash = state.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };

  const recall = () => {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) return null;
    const state = new URLSearchParams(hash);
    for (const field of form.querySelectorAll("[name]")) {
      if (field.type === "checkbox") field.checked = state.has(field.name);
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
  form.addEventListener("reset", () => setTimeout(() => { filter(); remember(); }));
  more.addEventListener("click", () => draw(PAGE));
  addEventListener("hashchange", () => { if (location.hash.includes("=")) restore(); });
  addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details.block")) one.open = true; });
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
