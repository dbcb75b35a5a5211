// Interactive figures: lines drawn by uPlot, heads opened one by one. Without this script the page shows the same figures
// as pictures.
"use strict";
(() => {
  // Figures stand on light paper, also on a dark page.
  const [INK, LINE] = ["#1f2328", "#d5d9dd"];
  const numbers = (element) => JSON.parse(document.getElementById(element.dataset.live).textContent);
  const { made, shown } = shared;

  // Points from left to right. uPlot joins series by x, so points of equal x are moved apart by a tiny step.
  const inOrder = ({ x, y }) => {
    const order = x.map((_, at) => at).sort((a, b) => x[a] - x[b]);
    let last = -Infinity;
    const apart = order.map((at) => {
      last = x[at] > last ? x[at] : last + 1e-9 * Math.max(1, Math.abs(last));
      return last;
    });
    return [apart, order.map((at) => y[at])];
  };

  // The axes of the printed figure; the x axis can be zoomed.
  const axis = ({ label, log, ticks }, isAcross) => ({
    ...(ticks && (log || !isAcross) ? { splits: () => ticks, filter: () => ticks } : {}),
    label, stroke: INK, labelSize: 22, labelFont: "12px sans-serif", font: "11px sans-serif",
    grid: { stroke: LINE, width: 0.6 }, ticks: { stroke: LINE, width: 0.6 },
    values: (_, at) => at.map((tick) => (tick === null ? "" : shown(tick).replace(".00e", "e"))),
  });
  const across = ({ log, range }) => ({
    time: false, distr: log ? 3 : 1,
    range: (plot, low, high) => {
      const xs = plot.data[0];
      return range && low <= xs[0] && high >= xs[xs.length - 1] ? range : [low, high];
    },
  });
  const upwards = ({ log, range }) => ({
    distr: log ? 3 : 1,
    range: range ?? ((_, low, high) => uPlot.rangeNum(Math.min(0, low), high, 0.05, false)),
  });

  const stroke = (series) => ({ 0: "solid", 2: "dotted", 6: "dashed" })[series?.dash[0] ?? 0];
  const options = (panel, width) => ({
    title: panel.title, width, height: 280,
    scales: { x: across(panel.x), y: upwards(panel.y) },
    axes: [axis(panel.x, true), { ...axis(panel.y, false), size: 58 }],
    // A series without a point at this x shows no value.
    cursor: { focus: { prox: 24 }, drag: { x: true, y: false }, dataIdx: (_, series, at) => at },
    legend: { markers: { dash: (_, at) => stroke(panel.series[at - 1]) } },
    focus: { alpha: 0.35 },
    hooks: { ready: [legend], setSeries: [legend] },
    series: [
      { label: panel.x.label, value: (_, value) => shown(value) },
      ...panel.series.map((series) => {
        const { colour } = series;
        return {
          label: series.name, stroke: colour, width: 1.6, dash: series.dash, spanGaps: true,
          points: { show: series.marks, size: 5, fill: colour },
          value: (_, value) => shown(value),
          ...(series.line ? {} : { paths: () => null }),
        };
      }),
    ],
  });

  // Every entry of the legend is a switch that the keyboard reaches.
  const legend = (plot) => {
    plot.root.querySelectorAll(".u-legend .u-series").forEach((row, at) => {
      const name = row.querySelector("th");
      if (at === 0 || !name) return;
      name.setAttribute("role", "switch");
      name.setAttribute("aria-checked", plot.series[at].show);
      if (name.tabIndex === 0) return;
      name.tabIndex = 0;
      name.title = "Show or hide; Ctrl+click or Shift+Enter shows this one alone";
      name.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        name.dispatchEvent(new MouseEvent("click", { bubbles: true, ctrlKey: event.shiftKey }));
      });
    });
  };

  // Arrow keys move from point to point, Home and End to the first and the last, Escape undoes the zoom.
  const steer = (box, plot) => {
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `${plot().series[0].label}: arrow keys read values, Escape undoes the zoom`);
    box.addEventListener("keydown", (event) => {
      if (event.target !== box) return;
      const u = plot();
      const xs = u.data[0];
      const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") u.setScale("x", { min: xs[0], max: xs[xs.length - 1] });
      if (by === undefined) return;
      event.preventDefault();
      const from = u.cursor.idx ?? (by > 0 ? -1 : xs.length);
      const at = Math.min(xs.length - 1, Math.max(0, from + by));
      u.setCursor({ left: u.valToPos(xs[at], "x"), top: u.over.clientHeight / 2 });
    });
  };

  const plotted = (panel) => {
    const box = made("div", { className: "plot" });
    let plot;
    let width = 0;
    const draw = () => {
      plot?.destroy();
      plot = new uPlot(options(panel, width), uPlot.join(panel.series.map(inOrder)), box);
    };
    const fit = () => {
      const now = Math.max(200, box.clientWidth - 14);
      if (box.clientWidth === 0 || now === width) return;
      width = now;
      if (plot) return plot.setSize({ width, height: 280 });
      draw();
      steer(box, () => plot);
    };
    // Drawing changes the height of the box, which an observer must not do while it reports.
    new ResizeObserver(() => requestAnimationFrame(fit)).observe(box);
    return box;
  };

  document.querySelectorAll("figure[data-live]").forEach((figure) => {
    const { panels } = numbers(figure);
    const live = made("div", { className: "live" }, ...panels.map(plotted));
    figure.querySelector(".picture").classList.add("drawn");
    figure.prepend(live);
    figure.classList.add("is-live");
  });

  // Heads: a slider chooses the step, and each head opens into all its values.
  const HEAT = [[255, 247, 214], [254, 196, 79], [227, 98, 35], [128, 0, 38]];
  const heat = (share) => {
    const place = Math.min(1, Math.max(0, share)) * (HEAT.length - 1);
    const from = Math.min(HEAT.length - 2, Math.floor(place));
    return HEAT[from].map((level, at) => Math.round(level + (place - from) * (HEAT[from + 1][at] - level)));
  };
  const COLOURS = ["#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#0072b2", "#d55e00"];
  // One colour scale for all models on the page.
  const blocks = [...document.querySelectorAll(".heads[data-live]")];
  const largest = blocks.flatMap((block) => numbers(block).heads.flatMap(({ values }) => values[0]));
  const most = Math.max(...largest.filter((value) => value !== null));
  const steps = (block) => {
    const { steps: all, quantities, heads } = numbers(block);
    const last = all.length - 1;
    const slider = made("input", { type: "range", min: 0, max: last, value: last });
    const told = made("output");
    const opened = made("div", { className: "opened" });
    const buttons = heads.map((head, at) => {
      const button = made("button", { type: "button" });
      button.setAttribute("aria-expanded", "false");
      button.setAttribute("aria-label", `layer ${head.layer}, head ${head.head}`);
      block.querySelector(`[data-head="${at}"]`).replaceChildren(button);
      button.addEventListener("click", () => open(button.getAttribute("aria-expanded") === "true" ? null : at));
      return button;
    });
    let chosen = null;
    const table = ({ values }) => made("table", {}, made("tbody", {}, ...quantities.map((name, at) =>
      made("tr", {}, made("th", { scope: "row", textContent: name }),
        made("td", { textContent: shown(values[at][slider.value], 3) })))));
    const show = () => {
      told.textContent = `step ${all[slider.value]}`;
      const before = block.previousElementSibling.querySelector(".step");
      if (before) before.textContent = all[slider.value];
      heads.forEach(({ values }, at) => {
        const value = values[0][slider.value];
        const [red, green, blue] = value === null ? [255, 255, 255] : heat(value / most);
        buttons[at].textContent = shown(value, 3);
        buttons[at].style.background = `rgb(${red} ${green} ${blue})`;
        buttons[at].style.color = 0.3 * red + 0.59 * green + 0.11 * blue > 128 ? "#000" : "#fff";
      });
      if (chosen !== null) opened.querySelector("table").replaceWith(table(heads[chosen]));
    };
    const open = (at) => {
      chosen = at;
      buttons.forEach((button, other) => button.setAttribute("aria-expanded", String(other === at)));
      if (at === null) return opened.replaceChildren();
      const { layer, head, kind, values } = heads[at];
      opened.replaceChildren(made("h4", { textContent: `Layer ${layer}, head ${head} (${kind})` }), table(heads[at]));
      if (last === 0) return;
      opened.append(plotted({
        title: "", x: { label: "step" }, y: { label: "" },
        series: quantities.map((name, of) => ({
          name, colour: COLOURS[of % COLOURS.length], dash: [],
          line: true, marks: last < 30, x: all, y: values[of],
        })),
      }));
    };
    slider.addEventListener("input", show);
    if (last > 0) block.prepend(made("label", { className: "chosen" }, "Step ", slider, told));
    block.append(opened);
    show();
  };
  blocks.forEach(steps);
})();
