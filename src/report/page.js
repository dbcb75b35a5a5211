// The page can be read without this. With it, tables are sorted by their headers, and long tables are
// printed with a header on each sheet.
"use strict";
(() => {
  const collator = new Intl.Collator("en", { numeric: true });
  const MISSING = ["", "–"];

  // What each row is sorted by: numbers where any cell of the column has one, else words.
  const keys = (rows, column) => {
    const cells = rows.map((row) => row.cells[column]);
    const number = (cell) => Number(cell?.dataset.value ?? NaN);
    if (cells.some((cell) => !Number.isNaN(number(cell)))) return cells.map(number);
    const words = cells.map((cell) => cell?.textContent.trim() ?? "");
    return words.map((text) => (MISSING.includes(text) ? NaN : text));
  };

  // Rows of one value keep their order, so that a table can be sorted by one column within another.
  const sorted = (rows, column, sign) => {
    const key = new Map(keys(rows, column).map((value, at) => [rows[at], value]));
    return rows.sort((one, other) => {
      const [a, b] = [key.get(one), key.get(other)];
      const missing = Number.isNaN(a) - Number.isNaN(b);
      if (missing !== 0 || Number.isNaN(a)) return missing;
      return sign * (typeof a === "number" ? Math.sign(a - b) || 0 : collator.compare(a, b));
    });
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const first = [...body.rows];
    const headers = [...table.tHead.rows[0].cells];
    headers.forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: "none" };
        const order = next[header.getAttribute("aria-sort")] ?? "ascending";
        headers.forEach((other) => other.removeAttribute("aria-sort"));
        if (order === "none") return body.append(...first);
        header.setAttribute("aria-sort", order);
        body.append(...sorted([...body.rows], column, order === "ascending" ? 1 : -1));
      });
    });
  };

  document.querySelectorAll(":not(.heads) > .wide > table:not(.unsorted)").forEach(sortable);

  // On paper nothing is folded, also where the style sheet cannot see to it; and a header that holds a
  // button would not be repeated on the next sheet.
  const buttons = [...document.querySelectorAll("th button")];
  const headers = buttons.map((button) => button.parentElement);
  let opened = [];
  addEventListener("beforeprint", () => {
    opened.push(...document.querySelectorAll("details:not([open])"));
    opened.forEach((details) => { details.open = true; });
    buttons.forEach((button) => button.replaceWith(...button.childNodes));
  });
  addEventListener("afterprint", () => {
    opened.forEach((details) => { details.open = false; });
    opened = [];
    buttons.forEach((button, at) => {
      button.append(...headers[at].childNodes);
      headers[at].append(button);
    });
  });
})();
