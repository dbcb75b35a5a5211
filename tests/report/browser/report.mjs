// The report's page in a browser: `node report.mjs PROGRAM PAGE`, where PROGRAM is a Chromium and PAGE the
// file. Prints a line a check; ends with 1 where one does not hold.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Tab } from "./chromium.mjs";
import { check, ended } from "./checks.mjs";

const [program, file] = process.argv.slice(2);
const page = pathToFileURL(file).href;
const tab = await Tab.open(program);

const openAll = () => document.querySelectorAll("details").forEach((part) => { part.open = true; });

/** A column's cells from top to bottom: words, number if there is one, place in the first order. */
const column = (table, at) => [...document.querySelectorAll("table:not(.unsorted)")[table].tBodies[0].rows].map(
  (row) => ({
    words: row.cells[at].textContent.trim(),
    number: row.cells[at].dataset.value ?? null,
    place: Number(row.dataset.place),
  }));

const press = (table, at) => {
  const header = document.querySelectorAll("table:not(.unsorted)")[table].tHead.rows[0].cells[at];
  header.querySelector("button").click();
  return header.getAttribute("aria-sort");
};

/** Fails unless `cells` stand in order, what is missing last and ties as they stood at first. */
function ordered(cells, sign, what) {
  const numeric = cells.some((cell) => cell.number !== null);
  const missing = ({ words, number }) => (numeric ? number === null : words === "–");
  const compare = (a, b) => (numeric
    ? Number(a.number) - Number(b.number)
    : a.words.localeCompare(b.words, "en", { numeric: true }));
  for (let at = 1; at < cells.length; at += 1) {
    const [above, below] = [cells[at - 1], cells[at]];
    const pair = `${what}: "${above.words}" above "${below.words}"`;
    assert.ok(missing(below) || !missing(above), pair);
    const order = missing(below) ? Number(missing(above)) - 1 : sign * compare(above, below);
    assert.ok(order < 0 || (order === 0 && above.place < below.place), pair);
  }
}

await tab.screen(1280, 900, false);
await tab.media("screen", "light");
await tab.load(page);

await check("nothing is fetched but the page, and every link to a file leads there", async () => {
  const sent = tab.events.filter(({ method }) => method === "Network.requestWillBeSent");
  const urls = sent.map(({ params }) => params.request.url).filter((url) => url !== "data:,");
  assert.deepEqual(urls, [page]);
  const links = await tab.run(() => [...document.querySelectorAll("a")].map((link) => link.href));
  assert.ok(links.some((link) => link.endsWith("/tables/cells.csv")), `${links}`);
  for (const link of links) {
    // A source on the web is for the reader to follow.
    if (link.startsWith("https:")) continue;
    const [path, anchor] = link.split("#");
    assert.ok(link.startsWith("file:") && existsSync(fileURLToPath(path)), `${link} is nowhere`);
    const there = (id) => document.getElementById(id) !== null;
    assert.ok(anchor === undefined || await tab.run(there, anchor), `${link} is nowhere`);
  }
});

await check("every figure is an image with a name", async () => {
  const svgs = await tab.run(() => document.querySelectorAll("figure svg[role=img]").length);
  const { nodes } = await tab.send("Accessibility.getFullAXTree");
  const images = nodes.filter(({ role }) => ["img", "image"].includes(role?.value));
  assert.equal(svgs, await tab.run(() => document.querySelectorAll("figure svg").length));
  assert.ok(svgs > 0 && images.length === svgs, `${svgs} figures, ${images.length} images`);
  assert.ok(images.every(({ name }) => name?.value.trim()), "a figure has no name");
});

await check("no measured cell shows more than 40 words", async () => {
  const long = await tab.run(() => [...document.querySelectorAll(".claims td")]
    .map((cell) => cell.innerText).filter((text) => text.split(/\s+/).length > 40));
  assert.deepEqual(long, []);
  const rows = await tab.run(() => document.querySelectorAll(".claims tr[id]").length);
  assert.ok(rows >= 25, `${rows} claims`);
});

await check("a claim's details fold open", async () => {
  const hidden = () => [...document.querySelectorAll(".claims .more p")].filter((p) => p.checkVisibility()).length;
  assert.equal(await tab.run(hidden), 0);
  await tab.run(() => document.querySelector(".claims .more summary").click());
  assert.ok(await tab.run(hidden) > 0);
});

await check("every column sorts up, down and back", async () => {
  await tab.run(openAll);
  const widths = await tab.run(() => [...document.querySelectorAll("table:not(.unsorted)")].map((table) => {
    [...table.tBodies[0].rows].forEach((row, at) => { row.dataset.place = at; });
    return table.tHead.rows[0].cells.length;
  }));
  let [asNumbers, withMissing] = [0, 0];
  for (const [table, width] of widths.entries()) {
    for (let at = 0; at < width; at += 1) {
      const what = `table ${table}, column ${at}`;
      assert.equal(await tab.run(press, table, at), "ascending", what);
      const up = await tab.run(column, table, at);
      ordered(up, 1, `${what} up`);
      assert.equal(await tab.run(press, table, at), "descending", what);
      ordered(await tab.run(column, table, at), -1, `${what} down`);
      assert.equal(await tab.run(press, table, at), null, what);
      const back = await tab.run(column, table, at);
      assert.ok(back.every(({ place }, row) => place === row), `${what} does not go back`);
      const words = up.map(({ words }) => words);
      asNumbers += up[0].number !== null && `${words}` !== `${[...words].sort()}`;
      withMissing += up[0].number !== null && up.at(-1).number === null;
    }
  }
  assert.ok(asNumbers > 0, "words would sort every column as numbers do: a vain check");
  assert.ok(withMissing > 0, "no column of numbers lacks one: a vain check");
});

await check("one header at a time says how the table is sorted", async () => {
  const [first, second] = [await tab.run(press, 1, 0), await tab.run(press, 1, 1)];
  assert.deepEqual([first, second], ["ascending", "ascending"]);
  const said = () => document.querySelectorAll("table:not(.unsorted)")[1].querySelectorAll("[aria-sort]").length;
  assert.equal(await tab.run(said), 1);
});

await check("headers sort by mouse, Enter and the space bar", async () => {
  await tab.load(page);
  const state = () => document.querySelector("th:has(button)").getAttribute("aria-sort");
  await tab.run(openAll);
  const { x, y } = await tab.run(() => {
    const button = document.querySelector("table th button");
    button.scrollIntoView({ block: "center", behavior: "instant" });
    const { x, y, width, height } = button.getBoundingClientRect();
    return { x: x + width / 2, y: y + height / 2 };
  });
  await tab.click(x, y);
  assert.equal(await tab.run(state), "ascending", "mouse");
  await tab.run(() => document.querySelector("table th button").focus());
  await tab.press("Enter", 13, "\r");
  assert.equal(await tab.run(state), "descending", "Enter");
  await tab.press(" ", 32, " ");
  assert.equal(await tab.run(state), null, "space bar");
});

await check("the Tab key comes to the skip link first, and what has the focus shows it", async () => {
  await tab.load(page);
  await tab.press("Tab", 9);
  const focus = () => {
    const { className, textContent } = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
    const { left } = document.activeElement.getBoundingClientRect();
    return { className, textContent, outlineStyle, outlineWidth, left };
  };
  const skip = await tab.run(focus);
  assert.ok(skip.className === "skip" && skip.left >= 0, JSON.stringify(skip));
  for (let at = 0; at < 12; at += 1) {
    const { outlineStyle, outlineWidth, textContent } = await tab.run(focus);
    assert.ok(outlineStyle === "solid" && parseFloat(outlineWidth) >= 2, textContent);
    await tab.press("Tab", 9);
  }
});

await check("a dark page has its figures on light paper, in the colours of the files", async () => {
  const colours = () => {
    const rgb = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);
    const marks = [...document.querySelectorAll("figure svg *")].flatMap((element) =>
      ["fill", "stroke"].map((attribute) => ({
        written: element.getAttribute(attribute) ?? "none",
        shown: getComputedStyle(element)[attribute],
      })).filter(({ written }) => written.startsWith("#")));
    return {
      page: rgb(getComputedStyle(document.body).backgroundColor),
      paper: rgb(getComputedStyle(document.querySelector(".picture")).backgroundColor),
      marks: marks.map((mark) => ({ ...mark, shown: rgb(mark.shown) })),
    };
  };
  const day = await tab.run(colours);
  await tab.media("screen", "dark");
  const night = await tab.run(colours);
  await tab.media("screen", "light");
  const light = ([red, green, blue]) => red + green + blue;
  assert.ok(light(day.page) > 700 && light(night.page) < 120, "the page's paper");
  assert.equal(light(night.paper), 3 * 255, "the figures' paper");
  const hex = (colour) => `#${colour.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
  assert.ok(night.marks.length > 100);
  for (const { written, shown } of [...day.marks, ...night.marks]) {
    assert.equal(hex(shown), written.toLowerCase());
  }
});

await check("all is printed: every row, nothing that scrolls", async () => {
  await tab.media("print", "light");
  await tab.load(page);
  const found = await tab.run(() => {
    const rows = [...document.querySelectorAll("tbody tr")];
    const shown = (row) => row.checkVisibility({ contentVisibilityAuto: true })
      && row.getBoundingClientRect().height > 0;
    const boxes = [...document.querySelectorAll(".wide, .picture, pre")];
    const cut = boxes.filter((box) => getComputedStyle(box).overflowX !== "visible");
    const folded = document.querySelectorAll("details:not([open]) tbody tr").length;
    return { rows: rows.length, hidden: rows.filter((row) => !shown(row)).length, folded,
      cut: cut.length };
  });
  await tab.media("screen", "light");
  assert.ok(found.folded > 0, "no table is folded: a vain check");
  assert.equal(found.hidden, 0, `${found.hidden} of ${found.rows} rows are not printed`);
  assert.equal(found.cut, 0, "a box would be cut off");
});

await check("after printing the page is as it was", async () => {
  const state = () => [...document.querySelectorAll("th, details")].map((part) =>
    `${part.innerText} ${part.childElementCount} ${part.open}`);
  const before = await tab.run(state);
  const { data } = await tab.send("Page.printToPDF");
  assert.ok(data.length > 10_000, "an empty print");
  assert.deepEqual(await tab.run(state), before);
});

await check("a phone's page is no wider than the phone, and a finger's targets are 44 pixels", async () => {
  await tab.screen(360, 740, true);
  await tab.load(page);
  await tab.run(openAll);
  const found = await tab.run(() => {
    const targets = [...document.querySelectorAll("nav a, summary, th button, .files a")];
    const small = targets.filter((target) => target.checkVisibility()).map((target) => {
      const { width, height } = target.getBoundingClientRect();
      return { text: target.textContent, width, height };
    }).filter(({ width, height }) => width < 44 || height < 44);
    return { wide: document.documentElement.scrollWidth, screen: innerWidth, small,
      targets: targets.length };
  });
  await tab.screen(1280, 900, false);
  assert.equal(found.wide, 360);
  assert.equal(found.screen, 360);
  assert.ok(found.targets > 10);
  assert.deepEqual(found.small, []);
});

await check("without scripts the page is whole, and has no buttons", async () => {
  await tab.send("Emulation.setScriptExecutionDisabled", { value: true });
  await tab.load(page);
  const { nodes } = await tab.send("Accessibility.getFullAXTree");
  const count = (name) => nodes.filter(({ role }) => role?.value === name).length;
  assert.ok(count("table") > 0 && count("columnheader") > 0 && count("row") > 0);
  assert.equal(count("button"), 0);
});

await check("nothing was said on the console, nothing thrown, nothing failed", async () => {
  assert.deepEqual(tab.complaints(), []);
});

await tab.close();
ended();
