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

await check("figures stand on light paper in dark too", async () => {
  await tab.load(fit);
  await tab.media("screen", "dark");
  const paper = await tab.run(() => [...document.querySelectorAll(".picture")].map((picture) =>
    getComputedStyle(picture).backgroundColor));
  const fields = await tab.run(() => [...document.querySelectorAll(".picture svg > rect")]
    .map((field) => [field.getAttribute("fill"), getComputedStyle(field).fill]));
  await tab.media("screen", "light");
  for (const colour of paper) assert.equal(colour, "rgb(255, 255, 255)");
  const rgb = (hex) => `rgb(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(", ")})`;
  assert.ok(fields.length > 3, "no legend: a vain check");
  for (const [written, seen] of fields) assert.equal(seen, rgb(written));
});

for (const [what, page] of [["fit", fit], ["run", run], ["predictions", predictions]]) {
  await check(`a phone's page of a ${what} is no wider than the phone, in dark too`, async () => {
    await tab.screen(360, 740, true);
    await tab.media("screen", "dark");
    await tab.load(page);
    const wide = await tab.run(() => document.documentElement.scrollWidth);
    await tab.screen(1280, 900, false);
    await tab.media("screen", "light");
    assert.equal(wide, 360);
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
