// The page of `diagnose` in a browser: `node diagnose.mjs PROGRAM STEPS ONE`, where PROGRAM is a Chromium, STEPS a page of two
// steps of a run and ONE that of the last. Prints a line a check; ends with 1 where one does not hold.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { inflateSync } from "node:zlib";
import { Tab } from "./chromium.mjs";
import { check, ended } from "./checks.mjs";

const [program, ...files] = process.argv.slice(2);
const [steps, one] = files.map((file) => pathToFileURL(file).href);
const tab = await Tab.open(program);
await tab.screen(1280, 900, false);

const [header, ...lines] = readFileSync(join(dirname(files[1]), "rows.csv"), "utf8").trim().split("\n")
  .map((line) => line.split(","));
const rows = lines.map((line) => Object.fromEntries(line.map((field, at) => [header[at], field])));
const rowOf = (layer, head) => rows.find((row) => row.layer === String(layer) && row.head === String(head));

/** Waits until what `make` gives in the page is true. */
async function until(make) {
  for (let waited = 0; !(await tab.run(make)); waited += 50) {
    assert.ok(waited < 5000, `never came: ${make}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
const isRead = () => document.querySelector("#head .passage .query") !== null;
const CODES = { ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Enter: 13, Escape: 27, Home: 36, End: 35 };
const press = (key) => tab.press(key, CODES[key], key === "Enter" ? "\r" : undefined);
// Powers of ten are told with two digits.
const near = (told, value) => Math.abs(Number(told) - value) <= (told.includes("e") ? 0.06 : 0.006) * Math.abs(value);
const said = () => document.querySelector("#head .value").textContent;
/** What the page holds of a head's pictures, unpacked here. */
const look = async (layer, head) => {
  const { look: about, text } = await tab.run((layer, head) => {
    const data = JSON.parse(document.getElementById("numbers").textContent);
    const found = data.models[0].heads.find((other) => other.layer === layer && other.head === head);
    return { look: found.look, text: document.getElementById(`look-0-${layer}-${head}`).textContent };
  }, layer, head);
  return { ...about, bytes: inflateSync(Buffer.from(text, "base64")) };
};

await check("every cell has the max |logit| of its row", async () => {
  await tab.load(one);
  const cells = await tab.run(() => [...document.querySelectorAll("[data-head] button")].map((button) =>
    [button.closest("td").id, button.textContent]));
  assert.equal(cells.length, rows.length);
  for (const [id, text] of cells) {
    const [, layer, head] = /^layer-(\d+)-head-(\d+)$/.exec(id);
    assert.ok(near(text, Number(rowOf(layer, head).actual)), `${id}: ${text}`);
  }
});

await check("another quantity colours the grid, and its values are those of the rows", async () => {
  const columns = await tab.run(() => JSON.parse(document.getElementById("numbers").textContent).quantities
    .map(({ column }) => column));
  assert.ok(columns.includes("needed") && columns.includes("entropy_nats"), columns.join());
  const before = await tab.run(() => document.querySelector("[data-head] button").style.background);
  for (const column of columns) {
    const cells = await tab.run((at) => {
      const select = document.querySelector(".chosen select");
      select.value = at;
      select.dispatchEvent(new Event("change"));
      return [...document.querySelectorAll("[data-head] button")].map((button) => button.textContent);
    }, columns.indexOf(column));
    rows.forEach(({ [column]: measured }, at) => {
      const value = Number(measured) * (column === "spread" ? 0.5 : 1);
      const holds = measured === "" ? cells[at] === "–" : near(cells[at], value);
      assert.ok(holds, `${column}: ${cells[at]} for ${measured}`);
    });
  }
  const after = await tab.run(() => document.querySelector("[data-head] button").style.background);
  assert.notEqual(before, after);
});

await check("a value is told under the pointer and by arrow keys", async () => {
  await tab.load(one);
  const told = () => document.querySelector(".value").textContent;
  await tab.run(() => {
    const button = document.querySelector("#layer-1-head-0 button");
    button.dispatchEvent(new PointerEvent("pointerenter"));
  });
  assert.match(await tab.run(told), /^layer 1, head 0: max \|logit\| [\d.]+$/);
  await tab.run(() => document.querySelector("#layer-0-head-0 button").focus());
  await press("ArrowRight");
  assert.match(await tab.run(told), /^layer 0, head 1: /);
  await press("ArrowDown");
  assert.match(await tab.run(told), /^layer 1, head 1: /);
  const stops = await tab.run(() => document.querySelectorAll(".grid button[tabindex='0']").length);
  assert.equal(stops, 1, "a stop for the Tab key");
});

await check("a head opens by Enter, and closes by Escape where it was opened", async () => {
  await press("Enter");
  await until(isRead);
  const found = await tab.run(() => ({
    hash: location.hash, heading: document.querySelector("#head h2").textContent,
    expanded: document.querySelector("#layer-1-head-1 button").getAttribute("aria-expanded"),
    focused: document.activeElement === document.querySelector("#head h2"),
  }));
  assert.deepEqual(found, { hash: "#layer-1-head-1", heading: "Layer 1, head 1", expanded: "true", focused: true });
  await press("Escape");
  const closed = await tab.run(() => ({
    hidden: document.getElementById("head").hidden, hash: location.hash,
    back: document.activeElement.closest("td")?.id,
  }));
  assert.deepEqual(closed, { hidden: true, hash: "", back: "layer-1-head-1" });
});

await check("a link opens at a head, with the numbers of its row", async () => {
  await tab.load("about:blank");
  await tab.load(`${one}#layer-0-head-1`);
  await until(isRead);
  const { numbers, parts } = await tab.run(() => ({
    numbers: [...document.querySelectorAll(".numbers tbody tr")].map((row) => row.cells[1].textContent),
    parts: [...document.querySelectorAll(".parts li")].map((part) => Number(/: (?:\+ )?([\d.e-]+)$/.exec(part.textContent)[1])),
  }));
  const row = rowOf(0, 1);
  assert.ok(near(numbers[0].split(" ")[0], Number(row.actual)), numbers[0]);
  const sum = parts.reduce((all, part) => all + part, 0);
  assert.ok(Math.abs(sum / Number(row.actual) - 1) < 0.02, `${parts} for ${row.actual}`);
});

await check("a picture is read under the pointer, and told as it is held", async () => {
  const { side, most, bytes } = await look(0, 1);
  const [row, column] = [side - 3, 2];
  await tab.run((row, column, side) => {
    const canvas = document.querySelector("#head canvas");
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, pointerId: 1, pointerType: "mouse",
      clientX: box.left + ((column + 0.5) / side) * box.width, clientY: box.top + ((row + 0.5) / side) * box.height }));
  }, row, column, side);
  const at = (row * (row + 1)) / 2 + column;
  const entries = (side * (side + 1)) / 2;
  const share = 1e-3 ** (1 - bytes[at] / 255);
  const [, query, key, told, logit] = /^query (\d+), key (\d+): attention ([\d.e-]+), logit ([\d.e-]+)$/.exec(await tab.run(said));
  assert.deepEqual([query, key], [String(row), String(column)]);
  assert.ok(Math.abs(told / share - 1) < 0.06, `${told} for ${share}`);
  const z = ((bytes[entries + at] - 128) / 127) * most;
  assert.ok(Math.abs(Number(logit) - z) <= 0.006 * most, `${logit} for ${z}`);
  const painted = await tab.run((row, column, side) => {
    const canvas = document.querySelector("#head canvas");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const pixel = (row, column) => {
      const [x, y] = [column, row].map((place) => Math.floor(((place + 0.5) / side) * canvas.width));
      return [...pixels.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 4)];
    };
    return { seen: pixel(row, column), hidden: pixel(2, side - 3) };
  }, row, column, side);
  assert.deepEqual(painted.hidden, [255, 255, 255, 255], "what comes after a token is not seen");
  assert.notDeepEqual(painted.seen, [255, 255, 255, 255]);
});

await check("arrow keys read a picture, and plus enlarges it", async () => {
  await tab.run(() => document.querySelector("#head canvas").focus());
  const before = await tab.run(said);
  await press("ArrowUp");
  const after = await tab.run(said);
  const query = (text) => Number(/^query (\d+)/.exec(text)[1]);
  assert.equal(query(after), query(before) - 1);
  const pixels = () => document.querySelector("#head canvas").toDataURL();
  const whole = await tab.run(pixels);
  await tab.press("+", 187, "+");
  const large = await tab.run(pixels);
  assert.notEqual(large, whole);
  await tab.press("0", 48, "0");
  assert.equal(await tab.run(pixels), whole);
});

await check("the wheel enlarges a picture, and else moves the page", async () => {
  const turn = (by) => tab.run((by) => {
    const canvas = document.querySelector("#head canvas");
    const box = canvas.getBoundingClientRect();
    const event = new WheelEvent("wheel", { bubbles: true, cancelable: true, deltaY: by, clientX: box.left + 20, clientY: box.top + 20 });
    canvas.dispatchEvent(event);
    return event.defaultPrevented;
  }, by);
  assert.deepEqual([await turn(120), await turn(-120), await turn(120)], [false, true, true]);
});

await check("a token of the text is asked, and its keys are those that it attends to most", async () => {
  const { side, keys, bytes } = await look(0, 1);
  await tab.run(() => document.querySelector('.passage [data-at="30"]').click());
  const found = await tab.run(() => ({
    heading: document.querySelector(".asked h4").textContent,
    keys: [...document.querySelectorAll(".keys li")].map((line) => line.textContent),
    tokens: [...document.querySelectorAll(".passage span")].map((span) => span.textContent),
    shaded: [...document.querySelectorAll(".passage span")].flatMap((span, at) => (span.style.background ? [at] : [])),
  }));
  assert.match(found.heading, /^Token 30 /);
  assert.equal(found.tokens.join(""), "pack my box with five dozen jugs\nof liquor, said");
  const entries = side * (side + 1);
  const expected = Array.from({ length: keys }, (_, at) => bytes[entries + 30 * keys + at]);
  const places = found.keys.map((text) => Number(/ at (\d+)/.exec(text)[1]));
  assert.deepEqual(places, expected.slice(0, places.length));
  assert.ok(places.length > 0 && places.every((place) => place <= 30));
  assert.deepEqual(found.shaded, [...places].sort((a, b) => a - b));
  await tab.run(() => document.querySelector(".passage").focus());
  await press("ArrowLeft");
  assert.match(await tab.run(() => document.querySelector(".asked h4").textContent), /^Token 29 /);
});

await check("steps stand side by side on one scale, and a head leads to its twin", async () => {
  await tab.load(steps);
  const grids = await tab.run(() => [...document.querySelectorAll(".grid h3")].map((title) => title.textContent));
  assert.deepEqual(grids, ["a, step 20", "a, step 40"]);
  await tab.run(() => document.querySelector("#layer-1-head-0 button").click());
  await until(isRead);
  await tab.run(() => [...document.querySelectorAll(".steps button")].find((b) => b.textContent === "a, step 40").click());
  const found = await tab.run(() => ({ hash: location.hash, heading: document.querySelector("#head h2").textContent,
    columns: [...document.querySelectorAll(".numbers thead th")].map((column) => column.textContent) }));
  assert.deepEqual(found, { hash: "#layer-1-head-0-of-2", heading: "Layer 1, head 0 of a, step 40",
    columns: ["a, step 20", "a, step 40"] });
  await tab.run(() => history.back());
  await until(() => location.hash === "#layer-1-head-0" && document.querySelector("#head h2").textContent.endsWith("step 20"));
});

await check("a phone's page is no wider than the phone, in dark too, and fingers can hit what there is", async () => {
  await tab.screen(390, 844, true);
  await tab.media("screen", "dark");
  for (const page of [one, steps]) {
    await tab.load("about:blank");
    await tab.load(`${page}#layer-1-head-1`);
    await until(isRead);
    const found = await tab.run(() => {
      const targets = [...document.querySelectorAll(".grid button, .steps button, .zoom button, select, .worries a, .files a")];
      const low = targets.filter((t) => t.checkVisibility() && t.getBoundingClientRect().height < 44);
      return { wide: document.documentElement.scrollWidth, low: low.map((t) => t.textContent) };
    });
    assert.equal(found.wide, 390);
    assert.deepEqual(found.low, []);
  }
  const paper = await tab.run(() => getComputedStyle(document.querySelector("#head canvas")).backgroundColor);
  assert.equal(paper, "rgb(255, 255, 255)", "matrices keep their colours");
});

await check("two fingers enlarge a picture", async () => {
  const pixels = () => document.querySelector("#head canvas").toDataURL();
  const whole = await tab.run(pixels);
  await tab.run(() => {
    const canvas = document.querySelector("#head canvas");
    const box = canvas.getBoundingClientRect();
    canvas.setPointerCapture = () => {};
    const touch = (type, id, x) => canvas.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: id, pointerType: "touch",
      clientX: box.left + x * box.width, clientY: box.top + 0.6 * box.height }));
    touch("pointerdown", 1, 0.4);
    touch("pointerdown", 2, 0.5);
    touch("pointermove", 2, 0.8);
    touch("pointerup", 2, 0.8);
    touch("pointerup", 1, 0.4);
  });
  assert.notEqual(await tab.run(pixels), whole);
  assert.equal(await tab.run(() => document.querySelector("#head canvas").style.touchAction), "none");
  await tab.screen(1280, 900, false);
  await tab.media("screen", "light");
});

await check("on paper there are the list, the grid and the open head, and no controls", async () => {
  await tab.media("print", "light");
  const seen = await tab.run(() => {
    const shown = (part) => [...document.querySelectorAll(part)].some((element) => element.checkVisibility());
    return [".worries li", ".grid td", "#head canvas", "select", ".zoom button", ".passage"].map(shown);
  });
  await tab.media("screen", "light");
  assert.deepEqual(seen, [true, true, true, false, false, false]);
});

await check("without scripts there are the grid with its numbers, the list and the rows", async () => {
  await tab.send("Emulation.setScriptExecutionDisabled", { value: true });
  await tab.load(one);
  const { nodes } = await tab.send("Accessibility.getFullAXTree");
  const names = (role) => nodes.filter((node) => node.role?.value === role).map((node) => node.name?.value ?? "");
  assert.ok(names("table").length === 1 && names("button").length === 0);
  const cells = names("cell").concat(names("gridcell"));
  for (const { actual } of rows) assert.ok(cells.some((text) => near(text, Number(actual))), `${actual} in ${cells}`);
  assert.ok(names("link").some((name) => /^Layer \d+, head \d+$/.test(name)));
  assert.ok(names("link").includes("rows.csv") && names("link").includes("rows.parquet"));
});

await check("nothing was said on the console, nothing thrown, nothing fetched", async () => {
  assert.deepEqual(tab.complaints(), []);
  const asked = tab.events.filter(({ method }) => method === "Network.requestWillBeSent");
  const elsewhere = asked.map(({ params }) => params.request.url).filter((url) => !/^(file|data|about):/.test(url));
  assert.deepEqual(elsewhere, []);
});

await tab.close();
ended();
