// A headless Chromium and one tab of it, spoken to over a pipe: no package, and any Node from 18 on.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ANSWER_WITHIN_MS = 30_000;

export class Tab {
  #browser;
  #profile;
  #session;
  #number = 0;
  #waiting = new Map();
  /** Every event of the tab so far: `{ method, params }`. */
  events = [];

  static async open(program) {
    const tab = new Tab();
    tab.#profile = mkdtempSync(join(tmpdir(), "rank-study-browser-"));
    // The page is our own, and a container has no sandbox to offer; nor much shared memory.
    const options = ["--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
      "--no-first-run", "--disable-extensions", "--disable-background-networking",
      "--remote-debugging-pipe", `--user-data-dir=${tab.#profile}`, "about:blank"];
    tab.#browser = spawn(program, options,
      { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    tab.#browser.on("exit", (code) => tab.#fail(`${program} ended with ${code}`));
    tab.#browser.on("error", (error) => tab.#fail(`${program}: ${error.message}`));
    tab.#listen(tab.#browser.stdio[4]);
    const { targetId } = await tab.send("Target.createTarget", { url: "about:blank" });
    const attached = await tab.send("Target.attachToTarget", { targetId, flatten: true });
    tab.#session = attached.sessionId;
    for (const part of ["Page", "Runtime", "Log", "Network", "Accessibility"]) {
      await tab.send(`${part}.enable`);
    }
    // Errors of a ResizeObserver reach the console of a window, but no event of a headless browser.
    await tab.send("Runtime.addBinding", { name: "reportError_" });
    const source = 'addEventListener("error", (event) => reportError_(event.message));';
    await tab.send("Page.addScriptToEvaluateOnNewDocument", { source });
    return tab;
  }

  #listen(pipe) {
    let text = "";
    pipe.setEncoding("utf8");
    pipe.on("data", (part) => {
      const messages = (text + part).split("\0");
      text = messages.pop();
      messages.forEach((message) => this.#take(JSON.parse(message)));
    });
  }

  #take({ id, error, result, method, params }) {
    if (id === undefined) return void this.events.push({ method, params });
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) waiting?.fail(new Error(error.message));
    else waiting?.done(result);
  }

  #fail(why) {
    this.#waiting.forEach(({ fail }) => fail(new Error(why)));
    this.#waiting.clear();
  }

  /** Sends a command of the DevTools protocol; gives its result. */
  send(method, params = {}) {
    const id = ++this.#number;
    const message = { id, method, params };
    if (this.#session) message.sessionId = this.#session;
    return new Promise((done, fail) => {
      const late = () => fail(new Error(`${method}: no answer`));
      const timer = setTimeout(late, ANSWER_WITHIN_MS);
      this.#waiting.set(id, {
        done: (result) => { clearTimeout(timer); done(result); },
        fail: (error) => { clearTimeout(timer); fail(error); },
      });
      this.#browser.stdio[3].write(`${JSON.stringify(message)}\0`);
    });
  }

  /** What `make`, a function run in the page on `given`, gives back. */
  async run(make, ...given) {
    const expression = `(${make})(...${JSON.stringify(given)})`;
    const answer = await this.send("Runtime.evaluate",
      { expression, returnByValue: true, awaitPromise: true });
    const fault = answer.exceptionDetails;
    if (fault) throw new Error(fault.exception?.description ?? fault.text);
    return answer.result.value;
  }

  /** Opens `url` and waits until all of it is loaded. */
  async load(url) {
    const before = this.#loads();
    await this.send("Page.navigate", { url });
    for (let waited = 0; this.#loads() === before; waited += 20) {
      if (waited > ANSWER_WITHIN_MS) throw new Error(`${url} does not load`);
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  /** What the pages printed to the console, threw or failed to load, since event number `from`. */
  complaints(from = 0) {
    const bad = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Runtime.bindingCalled", "Log.entryAdded",
      "Network.loadingFailed"];
    const found = this.events.slice(from).filter(({ method }) => bad.includes(method));
    return found.map(({ params }) => params.payload ?? params.entry?.text ?? JSON.stringify(params));
  }

  #loads() {
    return this.events.filter(({ method }) => method === "Page.loadEventFired").length;
  }

  /** The width in CSS pixels; a phone also has a finger for a pointer. */
  async screen(width, height, phone) {
    const metrics = { width, height, deviceScaleFactor: phone ? 2 : 1, mobile: phone };
    await this.send("Emulation.setDeviceMetricsOverride", metrics);
    await this.send("Emulation.setTouchEmulationEnabled", { enabled: phone });
  }

  /** `media` "screen" or "print", `scheme` "light" or "dark". */
  async media(media, scheme) {
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.send("Emulation.setEmulatedMedia", { media, features });
  }

  async press(key, code, text) {
    const params = { key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: code, text };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...params });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...params, text: undefined });
  }

  async click(x, y) {
    const params = { x, y, button: "left", clickCount: 1 };
    await this.send("Input.dispatchMouseEvent", { type: "mousePressed", ...params });
    await this.send("Input.dispatchMouseEvent", { type: "mouseReleased", ...params });
  }

  async close() {
    this.#browser.removeAllListeners("exit");
    const ended = new Promise((done) => this.#browser.once("exit", done));
    this.#session = undefined;
    await this.send("Browser.close").catch(() => this.#browser.kill("SIGKILL"));
    await ended;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
