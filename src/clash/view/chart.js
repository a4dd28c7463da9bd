// The interval chart of the shared style sheet, for rows that arrive after the page. Rows: name,
// title, figure, bounds, and low, estimate, high in the unit of the axis.
const chart = (() => {
  const { el, svg, text } = dom;
  const place = (axis, value) => `${Math.min(100, Math.max(0, 100 * (value - axis.low) / (axis.high - axis.low))).toFixed(2)}%`;
  const track = (row, axis) => {
    const marks = axis.ticks.map(([value]) => svg("line", { class: value === axis.reference ? "reference" : "grid", x1: place(axis, value), x2: place(axis, value), y1: "0", y2: "100%" }));
    if (axis.base) marks.push(svg("line", { class: "grid", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }));
    if (row.low !== null && row.high !== null) marks.push(svg("line", { class: "interval", x1: place(axis, row.low), x2: place(axis, row.high), y1: "50%", y2: "50%" }));
    if (row.estimate !== null) marks.push(svg("circle", { class: "dot", cx: place(axis, row.estimate), cy: "50%", r: "6.5" }));
    return svg("svg", { "aria-hidden": "true" }, marks);
  };
  const line = (row, axis) => {
    const name = el("bdi", row.title && row.title !== row.name ? { title: row.title } : {}, text(row.name));
    return el("li", row.accent ? { class: "accent" } : {}, el("span", { class: "who" }, name), track(row, axis),
      el("span", { class: "says" }, el("b", {}, row.figure), row.bounds ? [" ", el("span", {}, row.bounds)] : []));
  };
  const scale = (axis) => {
    const labels = axis.ticks.map(([value, label], i) => {
      const end = i === 0 ? "start" : i === axis.ticks.length - 1 ? "end" : "middle";
      const inner = i > 0 && i < axis.ticks.length - 1 && value !== axis.reference;
      return svg("text", { ...(inner ? { class: "inner" } : {}), x: place(axis, value), y: "1rem", "text-anchor": end }, label);
    });
    return el("li", { class: "scale", "aria-hidden": "true" }, svg("svg", {}, labels));
  };
  return { fill: (list, rows, axis) => list.replaceChildren(...rows.map((row) => line(row, axis)), scale(axis)), track };
})();
