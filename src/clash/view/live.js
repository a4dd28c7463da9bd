// A run while it goes on: asks for its state every second, and becomes the report at its end.
(() => {
  const { text } = dom, { ask } = local;
  const $ = (id) => document.getElementById(id);
  const axis = (label) => ({ low: 0, high: 100, reference: 50, ticks: [[0, "0%"], [25, "25%"], [50, label], [75, "75%"], [100, "100%"]] });
  const PHASES = {
    running: ["running", "Running"],
    stopped: ["stopped", "Interrupted. Nothing paid is lost: clash resume goes on from here."],
    ended: ["stopped", "Interrupted. Nothing paid is lost: clash resume goes on from here."],
  };
  let failures = 0;

  const say = (id, value) => { const node = $(id); if (node.dataset.value !== value) { node.dataset.value = value; node.replaceChildren(text(value)); } };
  const show = (state) => {
    const [kind, words] = PHASES[state.phase];
    $("phase").className = "pulse " + kind;
    say("phase", words);
    $("report").hidden = state.phase !== "ended";
    for (const id of ["headline", "evidence", "hint", "caption", "judgments", "failed", "prompts", "answers", "cost", "pending", "order"]) say(id, state[id] || "");
    say("left", state.phase === "running" ? state.left || "–" : "–");
    $("headline").className = state.known ? "known" : "";
    $("bar").value = state.share;
    chart.fill($("chart"), state.rows, axis(state.reference));
    document.title = `${Math.round(100 * state.share)}% · ${state.headline}`;
  };
  const step = async () => {
    let pause = 1000;
    try {
      const state = await ask("live", { run: document.body.dataset.run });
      failures = 0;
      if (state.phase === "ended" && state.status !== "partial") { location.replace("report"); return; }
      show(state);
      if (state.phase !== "running" || document.hidden) pause = 3000;
    } catch (error) {
      failures += 1;
      if (failures > 2) { $("phase").className = "pulse stopped"; say("phase", error instanceof TypeError ? "This page is no longer updated: the command that serves it has ended." : error.message); pause = 3000; }
    }
    setTimeout(step, pause);
  };
  step();
})();
