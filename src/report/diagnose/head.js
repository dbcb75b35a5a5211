// One head, opened: the parts of its max |logit|, its pictures, and the keys of each query.
"use strict";
const opened = (() => {
  const { made, shown } = shared;
  const LEAST_ATTENTION = 1e-3;
  const SHOWN_TOKENS = 4;

  // Attention, logits, keys, weights: in the order in which they were packed.
  const unpacked = async (id, { side, causal, keys, every }, tokens) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const all = new Uint8Array(await new Response(stream).arrayBuffer());
    const entries = causal ? (side * (side + 1)) / 2 : side * side;
    const told = keys * Math.ceil(tokens / every);
    const part = (from, length) => all.subarray(from, from + length);
    const [low, high, weights] = [0, 1, 2].map((at) => part(2 * entries + at * told, told));
    return {
      attention: part(0, entries), logits: part(entries, entries),
      key: (at) => low[at] + 256 * high[at], weight: (at) => weights[at] / 255,
    };
  };

  const attentionOf = (byte) => (byte === 0 ? 0 : LEAST_ATTENTION ** (1 - byte / 255));
  const logitOf = (byte, most) => (byte === 0 ? null : ((byte - 128) / 127) * most);
  const percent = (share) => (share < 0.005 ? "under 1 %" : `${Math.round(100 * share)} %`);
  const written = (token) => token.replaceAll("\n", "↵").replaceAll("\t", "⇥") || "�";

  // From the floor to max |logit|, stacked.
  const LEVELS = [["floor", "floor"], ["needed", "rank penalty"], ["needed_from_input", "input"], ["spread", "excess"],
    ["actual", "shift"]];
  const parts = ({ values }, quantities) => {
    const value = (column) => values[quantities.findIndex((quantity) => quantity.column === column)] ?? null;
    const actual = value("actual");
    let from = 0;
    const bars = [];
    for (const [column, name] of LEVELS) {
      const level = value(column);
      if (level === null) continue;
      const before = { spread: value("needed_from_input") ?? value("needed") }[column];
      const said = column === "spread" && before === null ? "above the floor (not fitted)" : name;
      bars.push({ column, name: said, height: Math.max(0, level - from) });
      from = Math.max(from, level);
    }
    const bar = made("div", { className: "bar" });
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", bars.map(({ name, height }) => `${name} ${shown(height, 3)}`).join(", "));
    const key = made("ul", { className: "parts" });
    for (const [at, { column, name, height }] of bars.entries()) {
      const piece = made("span", { className: `part ${column}` });
      piece.style.width = `${(100 * height) / actual}%`;
      bar.append(piece);
      key.append(made("li", {}, made("span", { className: `swatch ${column}` }),
        `${name}: ${at === 0 ? "" : "+ "}${shown(height, 3)}`));
    }
    return made("div", { className: "made-of" }, bar, key);
  };

  // One row per quantity, one column per model that has the head.
  const numbers = ({ layer, head }, all, quantities) => {
    const beside = all.map(({ title, heads }) => ({ title,
      found: heads.find((other) => other.layer === layer && other.head === head) })).filter(({ found }) => found);
    const top = made("tr", {}, made("td"), ...beside.map(({ title }) => made("th", { scope: "col", textContent: title })),
      made("td"));
    const rows = quantities.map(({ name, unit, means }, at) => made("tr", {}, made("th", { scope: "row", textContent: name }),
      ...beside.map(({ found }) => made("td", {
        textContent: found.values[at] === null ? "–" : `${shown(found.values[at], 3)} ${unit}`.trim() })),
      made("td", { className: "words long", textContent: means })));
    return made("div", { className: "wide", tabIndex: 0 },
      made("table", { className: "numbers unsorted" }, made("thead", {}, top), made("tbody", {}, ...rows)));
  };

  const reading = async (id, head, tokens, colours, place) => {
    const { look } = head;
    const bytes = await unpacked(id, look, tokens.length);
    const n = tokens.length;
    const said = made("p", { className: "value" });
    said.setAttribute("role", "status");
    const list = made("ol", { className: "keys" });
    const heading = made("h4");
    const passage = made("div", { className: "passage", tabIndex: 0 });
    passage.setAttribute("role", "region");
    passage.setAttribute("aria-label", "The passage: left and right choose the query");
    const spans = tokens.map((token, at) => {
      const span = made("span", { textContent: token });
      span.dataset.at = at;
      return span;
    });
    passage.append(...spans);
    let shaded = [];
    let query = n - 1;

    const token = (at) => made("span", { className: "token", textContent: written(tokens[at]) });
    const ask = (at) => {
      query = Math.min(n - 1, Math.max(0, at));
      query -= query % look.every;
      const first = (query / look.every) * look.keys;
      const top = Array.from({ length: look.keys }, (_, rank) => [bytes.key(first + rank), bytes.weight(first + rank)])
        .filter(([, weight]) => weight > 0);
      shaded.forEach((span) => { span.style.background = ""; span.className = ""; });
      shaded = [...top.map(([key]) => spans[key]), spans[query]];
      top.forEach(([key, weight]) => {
        spans[key].style.background = `rgb(227 98 35 / ${(0.15 + 0.75 * Math.sqrt(weight)).toFixed(2)})`;
      });
      spans[query].className = "query";
      heading.replaceChildren("Token ", String(query), " ", token(query), " attends to");
      list.replaceChildren(...top.map(([key, weight]) => {
        const line = made("li", {}, made("span", { className: "share", textContent: percent(weight) }), " ", token(key),
          ` at ${key}`, key === query ? ", itself" : "");
        line.style.setProperty("--share", `${100 * weight}%`);
        return line;
      }));
      const box = passage.getBoundingClientRect();
      const line = spans[query].getBoundingClientRect();
      if (line.top < box.top || line.bottom > box.bottom) passage.scrollTop += line.top - box.top - box.height / 2;
    };
    const span = (at) => {
      const last = Math.min(n, (at + 1) * look.block) - 1;
      return look.block === 1 ? `${at}` : `${at * look.block} to ${last}`;
    };
    const tell = (row, column) => {
      const at = look.causal ? (row * (row + 1)) / 2 + column : row * look.side + column;
      const share = attentionOf(bytes.attention[at]);
      const logit = logitOf(bytes.logits[at], look.most);
      const attends = share === 0 ? "under 0.001" : shown(share, 2);
      said.textContent = `query ${span(row)}, key ${span(column)}: `
        + (logit === null ? "masked" : `attention ${attends}, logit ${shown(logit, 3)}`);
      ask(Math.min(n - 1, (row + 1) * look.block - 1));
    };
    const canvases = pictures.beside(look, [
      { name: "Attention: pale 0.001, dark 1", bytes: bytes.attention, colours: colours.attention },
      { name: `Logits: blue −${shown(look.most, 3)}, white 0, red ${shown(look.most, 3)}`, bytes: bytes.logits,
        colours: colours.logits },
    ], tell);
    const follow = (at) => {
      ask(at);
      canvases.pointAt(Math.floor(query / look.block), Math.floor(query / look.block));
    };
    passage.addEventListener("click", (event) => {
      if (event.target.dataset.at !== undefined) follow(Number(event.target.dataset.at));
    });
    passage.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -look.every, ArrowRight: look.every, Home: -n, End: n }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      follow(query + by);
    });
    const blocks = look.block === 1 ? "Each pixel is one pair."
      : `Each pixel is ${look.block} × ${look.block} pairs: their largest attention, and their logit farthest from 0.`;
    place.append(
      made("div", { className: "panels" }, ...canvases.elements), canvases.buttons, said,
      made("p", { className: "note", textContent:
        `First passage. Rows are queries, columns are keys. ${blocks} The list has the ${look.keys} keys with the most attention`
        + `${look.every > 1 ? `, for one in ${look.every} queries` : ""}.` }),
      made("div", { className: "asked" }, made("div", {}, heading, list), passage));
    tell(look.side - 1, 0);
  };

  /** Shows a head in `section`; `said` is its sentence in the list, `steps` are buttons to other heads. */
  const show = (section, { numbers: data, model, head, said, steps }) => {
    const { title, tokens } = data.models[model];
    const several = data.models.length > 1 ? ` of ${title}` : "";
    const heading = made("h2", { tabIndex: -1, textContent: `Layer ${head.layer}, head ${head.head}${several}` });
    const facts = [head.kind === "global" ? "Global head" : `Local head, ${head.kind.replace("local:", "window ")}`,
      `rank ${head.rank}`, ...(head.keyHead === null ? [] : [`key head ${head.keyHead}`])];
    const place = made("div", { className: "reading" });
    section.replaceChildren(heading, steps,
      ...(said ? [made("p", { className: "conclusion", textContent: said })] : []),
      made("p", { className: "note", textContent: `${facts.join(", ")}.` }),
      made("h3", { textContent: "Max |logit|, added up" }), parts(head, data.quantities),
      ...(head.look ? [made("h3", { textContent: "Attention" }), place] : []),
      made("h3", { textContent: "All values" }), numbers(head, data.models, data.quantities));
    section.hidden = false;
    if (head.look) {
      reading(`look-${model}-${head.layer}-${head.head}`, head, tokens, data.colours, place)
        .catch((error) => place.append(made("p", { className: "note", textContent: `Cannot be shown: ${error.message}` })));
    }
    return heading;
  };

  return { show };
})();
