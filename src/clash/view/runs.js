// The list of runs: rows arrive in portions, are filtered here, and any two can be compared.
(() => {
  const { el, svg, text } = dom, { ask, token } = local;
  const $ = (id) => document.getElementById(id);
  const AXIS = { low: 0, high: 100, reference: 50, ticks: [[50, ""]], base: true };
  const STATES = { running: "Running", stopped: "Stopped", partial: "Interrupted", failed: "Failed", unreadable: "Unreadable" };
  let rows = [], version = "", kind = "", selection = [];

  const isOpen = (row) => row.state === "running" || row.state === "stopped";
  const href = (row) => `/run/${row.key}/` + (isOpen(row) ? `#${token}` : "");
  const figure = (row) => (row.figure
    ? [el("span", { class: "value" + (row.sure ? " accent" : "") }, el("span", {}, el("b", {}, row.figure.text), " ", row.figure.bounds), el("small", {}, text(row.measure)))]
    : [el("span", { class: "value" }, "–")]);
  const meta = (row) => {
    const letter = selection.indexOf(row.id);
    const words = [row.state === "unreadable" ? "" : row.kind, row.source, row.id, row.time].filter(Boolean);
    return el("small", { class: "meta" },
      letter < 0 ? [] : [el("b", { class: "letter" }, "AB"[letter]), " · "],
      STATES[row.state] ? [el("b", { class: "state " + row.state }, STATES[row.state]), " · "] : [],
      words.flatMap((word, i) => [i ? " · " : "", el("bdi", {}, text(word))]));
  };
  const line = (row) => {
    const box = el("input", { type: "checkbox", "aria-label": `Compare ${row.id}` });
    box.checked = selection.includes(row.id);
    box.disabled = row.state === "unreadable" || isOpen(row);
    box.addEventListener("change", () => select(row.id, box.checked));
    const head = row.state === "unreadable"
      ? el("span", { class: "headline" }, text(row.headline))
      : el("a", { class: "headline", href: href(row) }, text(row.headline));
    const track = el("span", { class: "track" });
    if (row.figure) track.append(chart.track(row.figure, AXIS));
    return el("li", { class: "run" + (row.sure ? " accent" : "") }, el("label", { class: "box" }, box),
      el("div", { class: "words" }, head, row.caution ? el("p", { class: "caution" }, text(row.caution)) : [], meta(row)),
      track, figure(row), el("span", { class: "size" }, text(row.items || "–"), el("small", {}, text(row.cost))));
  };

  const visible = () => {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    return rows.filter((row) => (!kind || row.kind === kind)
      && words.every((word) => `${row.headline} ${row.id} ${row.source} ${row.kind} ${row.measure}`.toLowerCase().includes(word)));
  };
  const scale = () => el("span", { class: "track", "aria-hidden": "true" }, svg("svg", {},
    [["0%", "0%", "start"], ["50%", "50%", "middle"], ["100%", "100%", "end"]].map(([x, label, anchor]) => svg("text", { x, y: "1rem", "text-anchor": anchor }, label))));
  const draw = () => {
    const shown = visible(), days = new Map();
    for (const row of shown) {
      const day = row.day || "Without a date";
      if (!days.has(day)) days.set(day, []);
      days.get(day).push(row);
    }
    $("runs").replaceChildren(...[...days].map(([day, some]) => el("section", { class: "day" },
      el("div", { class: "head" }, el("h2", {}, day), some.some((row) => row.figure) ? scale() : []),
      el("ol", {}, some.map(line)))));
    $("none").textContent = rows.length && !shown.length ? "No run matches." : "";
  };
  const filters = () => {
    const counts = new Map();
    for (const row of rows) counts.set(row.kind, (counts.get(row.kind) || 0) + 1);
    const choice = (value, label, n) => {
      const input = el("input", { type: "radio", name: "kind", value });
      input.checked = kind === value;
      input.addEventListener("change", () => { kind = value; draw(); });
      return el("label", {}, input, el("span", {}, label, " ", el("b", {}, String(n))));
    };
    $("filters").hidden = rows.length < 2;
    $("kinds").replaceChildren($("kinds").firstElementChild, choice("", "All", rows.length), ...[...counts].sort((a, b) => b[1] - a[1]).map(([value, n]) => choice(value, value, n)));
  };

  const select = (id, on) => {
    selection = on ? [...selection, id].slice(-2) : selection.filter((one) => one !== id);
    draw();
    compare();
  };
  const close = () => { selection = []; draw(); compare(); };
  const compare = async () => {
    const sheet = $("sheet");
    // The older run is A, so that a gain is a gain over time.
    selection.sort((a, b) => rows.findIndex((row) => row.id === b) - rows.findIndex((row) => row.id === a));
    sheet.hidden = selection.length < 2;
    document.body.classList.toggle("sheeted", selection.length === 2);
    if (selection.length < 2) return;
    const [a, b] = selection.map((id) => rows.find((row) => row.id === id));
    const done = el("button", { type: "button", class: "close", "aria-label": "Close the comparison" }, "×");
    done.addEventListener("click", close);
    draw();
    sheet.replaceChildren(el("p", { role: "status" }, "Comparing…"), done);
    const asked = selection.join("\n");
    let parts;
    try {
      const found = await ask("compare", { runs: [a.key, b.key] });
      const list = el("ol", { class: "chart", "aria-label": found.label });
      if (found.rows.length) chart.fill(list, found.rows, found.axis);
      parts = [el("div", { class: "result", role: "status" }, el("h2", {}, text(found.headline)),
        el("p", { class: "small" }, text(found.evidence), " ", el("a", { href: `/compare/${a.key}/${b.key}/` }, "Open the comparison"))), found.rows.length ? list : []];
    } catch (error) {
      parts = [el("p", { class: "caution", role: "alert" }, text(error.message))];
    }
    if (asked === selection.join("\n")) sheet.replaceChildren(...parts.flat(), done);
  };

  const count = (n) => `${n.toLocaleString("en")} run${n === 1 ? "" : "s"}`;
  const load = async () => {
    let part = await ask("runs", { from: 0, version });
    if (part.version === version) return;
    const fresh = [];
    const started = part.version;
    for (;;) {
      fresh.push(...part.rows);
      if (!version || fresh.length >= part.total) { rows = [...fresh]; show(part); }
      if (fresh.length >= part.total || !part.rows.length) break;
      part = await ask("runs", { from: fresh.length });
      if (part.version !== started) break; // it changes while it is read: the next round has it all
    }
    version = part.version === started ? started : "";
  };
  const show = (part) => {
    $("folder").replaceChildren(text(part.folder));
    $("count").textContent = part.total ? count(part.total) : "No runs yet";
    $("lead").replaceChildren(...(part.total > 1 ? ["Newest first. Select any two to compare them."] : part.total ? ["Newest first."]
      : ["Start one with ", el("code", {}, "clash demo"), ": it takes seconds, and no key."]));
    filters();
    draw();
  };
  const keep = async () => {
    try {
      await load();
      $("error").textContent = "";
    } catch (error) {
      $("error").textContent = error instanceof TypeError ? "This page is no longer updated: clash view has ended." : error.message;
    }
    setTimeout(keep, document.hidden ? 10000 : 2500);
  };
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("search").addEventListener("input", draw);
  addEventListener("keydown", (event) => { if (event.key === "Escape" && selection.length === 2) close(); });
  keep();
})();
