// The pages of `show` in a browser: `node show.mjs PROGRAM FIT RUN PREDICTIONS`, where PROGRAM is a Chromium and the others
// are pages. Prints a line a check; ends with 1 where one does not hold.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { Tab } from "./chromium.mjs";
import { check, ended } from "./checks.mjs";

const [program, ...files] = process.argv.slice(2);
const [fit, run, predictions] = files.map((file) => pathToFileURL(file).href);
const tab = await Tab.open(program);
await tab.screen(1280, 900, false);

/** Waits until what `make` gives in the page is true. */
async function until(make) {
  for (let waited = 0; !(await tab.run(make)); waited += 50) {
    assert.ok(waited < 5000, `never came: ${make}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
const plotted = () => document.querySelectorAll(".uplot").length > 0;
const KEYS = { ArrowRight: 39, ArrowDown: 40, End: 35, PageDown: 34, Escape: 27 };
const press = (key) => tab.press(key, KEYS[key]);

await check("figures stand on light paper in dark too", async () => {
  await tab.load(fit);
  await tab.media("screen", "dark");
  const paper = await tab.run(() => [...document.querySelectorAll(".picture, .plot")].map((picture) =>
    getComputedStyle(picture).backgroundColor));
  const fields = await tab.run(() => [...document.querySelectorAll(".picture svg > rect")]
    .map((field) => [field.getAttribute("fill"), getComputedStyle(field).fill]));
  await tab.media("screen", "light");
  for (const colour of paper) assert.equal(colour, "rgb(255, 255, 255)");
  const rgb = (hex) => `rgb(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(", ")})`;
  assert.ok(fields.length > 3, "no legend: a vain check");
  for (const [written, seen] of fields) assert.equal(seen, rgb(written));
});

await check("lines are drawn anew on the screen, and as they were on paper", async () => {
  await until(plotted);
  const seen = () => {
    const shown = (part) => [...document.querySelectorAll(part)].filter((p) => p.checkVisibility()).length;
    return { live: shown(".is-live .uplot"), drawn: shown(".is-live .picture svg") };
  };
  const screen = await tab.run(seen);
  await tab.media("print", "light");
  const paper = await tab.run(seen);
  await tab.media("screen", "light");
  assert.ok(screen.live > 0 && screen.drawn === 0, JSON.stringify(screen));
  assert.ok(paper.live === 0 && paper.drawn > 0, JSON.stringify(paper));
});

await check("arrow keys read a line's values: those that it was drawn from", async () => {
  await tab.load(run);
  await until(plotted);
  const found = await tab.run(() => {
    const figure = document.querySelector('figure[id$="-loss"]');
    const { panels } = JSON.parse(document.getElementById(figure.dataset.live).textContent);
    figure.querySelector(".plot").focus();
    return { x: panels[0].series[0].x, y: panels[0].series[0].y };
  });
  await press("End");
  await new Promise((done) => setTimeout(done, 100));
  const said = await tab.run(() => [...document.querySelectorAll('figure[id$="-loss"] .u-value')]
    .map((cell) => cell.textContent));
  const near = (text, value) => Math.abs(Number(text) - value) <= 1e-3 * Math.abs(value);
  assert.ok(near(said[0], found.x.at(-1)), `${said} and ${found.x.at(-1)}`);
  assert.ok(near(said[1], found.y.at(-1)), `${said} and ${found.y.at(-1)}`);
});

await check("a series is switched off and on by the keyboard", async () => {
  const name = 'figure[id$="logits-by-head"] .u-legend th[role="switch"]';
  const state = (name) => document.querySelector(name).getAttribute("aria-checked");
  await tab.run((name) => document.querySelector(name).focus(), name);
  assert.equal(await tab.run(state, name), "true");
  await tab.press("Enter", 13);
  assert.equal(await tab.run(state, name), "false");
  await tab.press(" ", 32);
  assert.equal(await tab.run(state, name), "true");
});

await check("the step of the heads is chosen by the keyboard, and a head opens", async () => {
  const values = () => [...document.querySelectorAll(".heads td button")].map((b) => b.textContent);
  const last = await tab.run(values);
  await tab.run(() => document.querySelector(".heads input").focus());
  await tab.press("Home", 36);
  const first = await tab.run(values);
  assert.ok(last.length > 1 && first.length === last.length);
  assert.notDeepEqual(first, last, "no step has other values: a vain check");
  await tab.run(() => document.querySelector(".heads td button").focus());
  await tab.press("Enter", 13, "\r");
  const opened = await tab.run(() => {
    const rows = [...document.querySelectorAll(".opened tr")].map((row) => row.textContent);
    const button = document.querySelector(".heads td button");
    return { rows, expanded: button.getAttribute("aria-expanded"), value: button.textContent };
  });
  assert.equal(opened.expanded, "true");
  assert.ok(opened.rows[0].includes(opened.value), JSON.stringify(opened));
  await tab.press("Enter", 13, "\r");
  assert.equal(await tab.run(() => document.querySelectorAll(".opened *").length), 0);
});

await check("a head of predictions opens into its levels", async () => {
  await tab.load(predictions);
  await tab.run(() => document.querySelector(".heads td button").click());
  const names = await tab.run(() => [...document.querySelectorAll(".opened th[scope=row]")]
    .map((name) => name.textContent));
  assert.deepEqual(names.slice(0, 5), ["max |logit|", "half the logit range", "needed with its inputs", "needed at its rank", "floor"]);
});

for (const [what, page] of [["fit", fit], ["run", run], ["predictions", predictions]]) {
  await check(`a phone's page of a ${what} is no wider than the phone, in dark too`, async () => {
    await tab.screen(360, 740, true);
    await tab.media("screen", "dark");
    await tab.load(page);
    await until(plotted);
    const found = await tab.run(() => {
      const targets = [...document.querySelectorAll(".heads button, .u-legend th[role]")];
      const low = targets.filter((t) => t.checkVisibility() && t.getBoundingClientRect().height < 44);
      return { wide: document.documentElement.scrollWidth, low: low.map((t) => t.textContent) };
    });
    await tab.screen(1280, 900, false);
    await tab.media("screen", "light");
    assert.equal(found.wide, 360);
    assert.deepEqual(found.low, []);
  });
}

await check("without scripts the page has its pictures, by name, and its heads", async () => {
  await tab.send("Emulation.setScriptExecutionDisabled", { value: true });
  await tab.load(run);
  const { nodes } = await tab.send("Accessibility.getFullAXTree");
  const images = nodes.filter(({ role }) => ["img", "image"].includes(role?.value));
  assert.ok(images.length > 2 && images.every(({ name }) => name?.value.trim()), "a picture has no name");
  const count = (name) => nodes.filter(({ role }) => role?.value === name).length;
  assert.ok(count("table") > 1, `${count("table")} tables`);
  assert.equal(count("button"), 0);
});

await check("nothing was said on the console, nothing thrown, nothing fetched", async () => {
  assert.deepEqual(tab.complaints(), []);
  const asked = tab.events.filter(({ method }) => method === "Network.requestWillBeSent");
  const elsewhere = asked.map(({ params }) => params.request.url).filter((url) => !/^(file|data):/.test(url));
  assert.deepEqual(elsewhere, []);
});

await tab.close();
ended();
