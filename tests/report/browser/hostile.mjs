// Pages full of hostile names in a browser: `node hostile.mjs PROGRAM ATTACKED BARE PAGE…`, where PROGRAM is a Chromium, each
// PAGE one of our own, ATTACKED one of them with markup put into it that our escaping would have let through, and BARE the
// same without its policy. Whatever is run sets `attacked`. Prints a line a check; ends with 1 where one does not hold.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { Tab } from "./chromium.mjs";
import { check, ended } from "./checks.mjs";

const [program, ...files] = process.argv.slice(2);
const [attacked, bare, ...pages] = files.map((file) => pathToFileURL(file).href);
const tab = await Tab.open(program);
await tab.screen(1280, 900, false);

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const wasAttacked = () => typeof window.attacked !== "undefined";
const said = (from) => tab.events.slice(from)
  .filter(({ method }) => ["Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening"].includes(method))
  .map(({ params }) => params.entry?.text ?? JSON.stringify(params));

/** What stands in the page that only a name could have put there. */
const foreign = () => {
  const all = [...document.querySelectorAll("*")];
  const elements = [...document.querySelectorAll("img, iframe, object, embed, base, form, audio, video, foreignObject")];
  const handlers = all.filter((one) => [...one.attributes].some(({ name }) => name.startsWith("on")));
  const links = [...document.querySelectorAll("[href]")].filter((one) =>
    !/^(#|data:image\/png;|data:,$|https:|file:|[^:]*$)/.test(one.getAttribute("href")));
  const turned = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent + document.title);
  const told = (one) => one.parentElement.outerHTML.slice(0, 300);
  return { elements: elements.map(told), handlers: handlers.map(told), links: links.map((one) => one.outerHTML), turned };
};
const openAll = () => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  document.querySelectorAll("td button").forEach((button) => button.click());
  document.querySelectorAll("th button").forEach((button) => button.click());
};

for (const [at, page] of pages.entries()) {
  for (const scheme of ["light", "dark"]) {
    await check(`page ${at + 1}, ${scheme}: names are words, and nothing of our own is forbidden`, async () => {
      const before = tab.events.length;
      await tab.media("screen", scheme);
      await tab.load(page);
      await tab.run(openAll);
      await pause(300);
      const words = await tab.run(() => document.documentElement.outerHTML.split("attacked").length - 1);
      assert.ok(words > 3, `the names are not there: a vain check (${words})`);
      assert.equal(await tab.run(wasAttacked), false);
      assert.deepEqual(await tab.run(foreign), { elements: [], handlers: [], links: [], turned: false });
      assert.deepEqual(said(before), []);
    });
  }
}

await check("markup that came through would be dead all the same", async () => {
  const before = tab.events.length;
  await tab.media("screen", "light");
  await tab.load(attacked);
  await tab.run(() => document.getElementById("attack").click());
  await tab.run(() => document.querySelector("form").requestSubmit());
  await pause(300);
  assert.equal(await tab.run(wasAttacked), false);
  assert.equal(await tab.run(() => location.href.split("#")[0]), attacked);
  assert.notEqual(await tab.run(() => getComputedStyle(document.body).display), "none");
  assert.ok(await tab.run(() => document.baseURI.startsWith("file:")));
  const told = said(before).filter((text) => text.includes("Content Security Policy"));
  for (const part of ["script-src", "style-src", "img-src", "base-uri", "form-action"]) {
    assert.ok(told.some((text) => text.includes(part)), `${part}: ${JSON.stringify(told)}`);
  }
});

await check("and without the policy it would not be", async () => {
  await tab.load(bare);
  await pause(300);
  assert.equal(await tab.run(wasAttacked), true);
});

await tab.close();
ended();
