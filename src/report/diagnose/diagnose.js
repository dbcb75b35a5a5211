// The grids of heads: the reader chooses their quantity and opens heads. Without this script they are tables.
"use strict";
(() => {
  const { made, shown } = shared;
  const data = JSON.parse(document.getElementById("numbers").textContent);
  const { quantities, colours, models } = data;
  const section = document.getElementById("head");
  const shades = colours.heat.match(/.{6}/g).map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));

  const select = made("select", {}, ...quantities.map(({ name, unit }, at) =>
    made("option", { value: at, textContent: unit ? `${name}, ${unit}` : name })));
  const legend = made("div", { className: "legend" });
  const value = made("p", { className: "value" });
  value.setAttribute("role", "status");
  const grids = document.querySelector(".grids");
  grids.before(made("p", { className: "chosen" }, made("label", {}, "Coloured by ", select), legend), value);

  const shade = ({ times, from, to }, number) => {
    const share = times ? Math.log(Math.max(number, from)) / Math.log(to) : (number - from) / (to - from);
    return shades[Math.round(Math.min(1, Math.max(0, share)) * (shades.length - 1))];
  };
  const css = (rgb) => `rgb(${rgb.join(" ")})`;
  const ink = ([red, green, blue]) => (0.3 * red + 0.59 * green + 0.11 * blue > 128 ? "#000" : "#fff");

  // A grid is one Tab stop; arrow keys move within it.
  const cells = [];
  document.querySelectorAll("table[data-model]").forEach((table) => {
    const model = Number(table.dataset.model);
    table.querySelectorAll("[data-head]").forEach((cell, at) => {
      const head = models[model].heads[cell.dataset.head];
      const button = made("button", { type: "button", tabIndex: at === 0 ? 0 : -1 });
      button.setAttribute("aria-expanded", "false");
      cell.replaceChildren(button);
      cell.removeAttribute("style");
      cells.push({ id: cell.id, model, head, button, table });
      const tell = () => { value.textContent = button.getAttribute("aria-label"); };
      button.addEventListener("pointerenter", tell);
      button.addEventListener("focus", tell);
      button.addEventListener("click", () => go(open === cell.id ? null : cell.id));
    });
    table.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      const from = event.target.closest("td");
      if (!move || !from) return;
      event.preventDefault();
      let row = from.parentElement;
      let column = from.cellIndex;
      let next = null;
      while (!next) {
        row = [row.previousElementSibling, row, row.nextElementSibling][move[0] + 1];
        column += move[1];
        if (!row?.cells[column] || column === 0) return;
        next = row.cells[column].querySelector("button");
      }
      from.querySelector("button").tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  });

  const colour = () => {
    const at = Number(select.value);
    const quantity = quantities[at];
    const { name, unit, from, to } = quantity;
    cells.forEach(({ model, head, button }) => {
      const number = head.values[at];
      const rgb = number === null ? null : shade(quantity, number);
      button.textContent = shown(number, 3);
      button.style.background = rgb ? css(rgb) : "";
      button.style.color = rgb ? ink(rgb) : "";
      const of = models.length > 1 ? `${models[model].title}, ` : "";
      const said = number === null ? "not measured" : `${shown(number, 3)} ${unit}`.trim();
      button.setAttribute("aria-label", `${of}layer ${head.layer}, head ${head.head}: ${name} ${said}`);
    });
    const middle = quantity.times ? Math.sqrt(to) : (from + to) / 2;
    const bar = made("span", { className: "ramp" });
    bar.style.background = `linear-gradient(to right, ${shades.map(css).join(",")})`;
    legend.replaceChildren(bar,
      made("span", { className: "ticks" }, ...[from, middle, to].map((tick) => made("span", { textContent: shown(tick, 3) }))));
    document.querySelector(".chosen-name").textContent = name;
    const told = document.querySelector(".chosen-unit");
    if (told) told.textContent = unit ? `, ${unit}` : "";
  };
  select.addEventListener("change", colour);

  // The address names the open head, so that links lead to it.
  let open = null;
  const listed = [...document.querySelectorAll(".worries a")].map((link) => link.hash.slice(1));
  const step = (text, label, id) => {
    const button = made("button", { type: "button", textContent: text, disabled: id === undefined });
    if (label) button.setAttribute("aria-label", label);
    button.addEventListener("click", () => go(id));
    return button;
  };
  const show = (id) => {
    open = id;
    const chosen = cells.find((cell) => cell.id === id);
    cells.forEach(({ button }) => button.setAttribute("aria-expanded", "false"));
    if (!chosen) {
      section.hidden = true;
      section.replaceChildren();
      return;
    }
    chosen.button.setAttribute("aria-expanded", "true");
    const link = document.querySelector(`.worries a[href="#${id}"]`);
    const at = listed.indexOf(id);
    const twins = cells.filter(({ head, model }) =>
      model !== chosen.model && head.layer === chosen.head.layer && head.head === chosen.head.head);
    const steps = made("p", { className: "steps" },
      ...(at < 0 ? [] : [step("← previous in the list", "", listed[at - 1]), step("next in the list →", "", listed[at + 1])]),
      ...twins.map((twin) => step(models[twin.model].title, `The same head of ${models[twin.model].title}`, twin.id)),
      step("Close", "Close the head", null));
    const said = link ? link.parentElement.textContent.replace(/^[^:]*: /, "") : "";
    const heading = opened.show(section, { numbers: data, model: chosen.model, head: chosen.head, said, steps });
    section.scrollIntoView({ block: "start" });
    heading.focus({ preventScroll: true });
  };
  const go = (id) => {
    const before = open;
    history.pushState(null, "", id ? `#${id}` : location.pathname + location.search);
    show(id);
    if (!id) cells.find((cell) => cell.id === before)?.button.focus();
  };
  const follow = () => {
    const id = location.hash.slice(1);
    if (cells.some((cell) => cell.id === id)) show(id);
    else if (open && !id) show(null);
  };
  section.addEventListener("keydown", (event) => {
    if (event.key === "Escape") go(null);
  });
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  colour();
  follow();
})();
