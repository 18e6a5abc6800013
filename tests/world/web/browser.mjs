// Plays a person at the dashboard, in Debian's Chromium. The test tells what to do by STEP.
//
// Whatever the step, no page may ask another host for anything, run a script of somebody's text, open a dialogue or
// break the content policy.
import { createRequire } from "node:module";
import { strict as assert } from "node:assert";
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";

const { JUDGES, DASHBOARD, TOKEN, STEP, RUN, WAITING, SCREENSHOTS } = process.env;
const require = createRequire(`${JUDGES}/node_modules/`);
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");

// Whatever is waited for comes within this, on a busy machine.
const PATIENCE = 240_000;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"], timeout: PATIENCE });
const faults = [];

const open = async (width, options = {}) => {
  // axe is put in by the driver, beside what the page may load.
  const context = await browser.newContext({ viewport: { width, height: 800 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  context.setDefaultNavigationTimeout(PATIENCE);
  await context.route("**/*", (route) => {
    if (!route.request().url().startsWith(DASHBOARD)) faults.push(`asked for ${route.request().url()}`);
    return route.continue();
  });
  const page = await context.newPage();
  page.on("dialog", (dialog) => { faults.push(`dialogue: ${dialog.message()}`); dialog.dismiss(); });
  page.on("pageerror", (error) => faults.push(`error: ${error}`));
  page.on("console", (line) => { if (line.type() === "error") faults.push(`console: ${line.text()}`); });
  await page.goto(`${DASHBOARD}/login`);
  await page.getByLabel(/Token|トークン/).fill(TOKEN);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${DASHBOARD}/`);
  return page;
};

const isClean = async (page) => {
  assert.equal(await page.evaluate(() => window.pwned), undefined, "a text was run");
  assert.equal(await page.locator("main img, main iframe, main script, main style").count(), 0);
};

const fits = async (page) => {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert(wider <= 0, `${page.url()} is ${wider} px wider than the window`);
};

const reads = async (page, name) => {
  await isClean(page);
  await fits(page);
  await page.evaluate(await readFile(axe, "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], name);
  if (SCREENSHOTS) {
    mkdirSync(SCREENSHOTS, { recursive: true });
    await page.screenshot({ path: `${SCREENSHOTS}/dashboard-${name}.png`, fullPage: true });
  }
};

const steps = {
  // Approves the plan with the button, and watches the run to its end without loading the page again.
  async watch() {
    const page = await open(1200, { locale: "en-US" });
    await page.goto(`${DASHBOARD}/runs/${RUN}`);
    await page.waitForSelector("main[data-live=on]");
    await page.getByRole("button", { name: "Approve", exact: true }).click();
    await page.waitForURL(/did=approve/);
    await page.evaluate(() => { window.same = true; });
    console.log("approved");
    await page.waitForSelector("#head .state-done");
    assert(await page.evaluate(() => window.same), "the page was loaded again");
    assert((await page.locator("#difference").textContent()).includes("README.md"));
    await isClean(page);
  },
  async stop() {
    const page = await open(1200, { locale: "en-US" });
    await page.goto(`${DASHBOARD}/runs/${RUN}`);
    await page.locator("summary", { hasText: "Stop" }).press("Enter");
    await page.getByRole("button", { name: "Stop", exact: true }).press("Enter");
    await page.waitForURL(/did=stop/);
    await page.waitForSelector("#head .state-stopped");
  },
  // Every page in both languages, both widths, light and dark: reads, fits, and is accessible.
  async look() {
    const paths = [["runs", "/"], ["run", `/runs/${RUN}`], ["evaluations", "/evaluations"], ["statistics", "/statistics"], ["machine", "/machine"], ["new", "/new"]];
    if (WAITING) paths.push(["waiting", `/runs/${WAITING}`]);
    for (const [width, scheme] of [[1200, "light"], [360, "dark"]]) {
      const page = await open(width, { locale: "en-US", colorScheme: scheme });
      for (const language of ["en", "ja"]) {
        await page.goto(`${DASHBOARD}/language?to=${language}&back=/`);
        assert.equal(await page.locator("html").getAttribute("lang"), language);
        for (const [name, path] of paths) {
          await page.goto(`${DASHBOARD}${path}`);
          for (const file of await page.locator("details.file > summary").all()) await file.click();
          await reads(page, `${name}-${language}-${width}`);
        }
        await page.goto(`${DASHBOARD}/evaluations`);
        if (await page.locator("#evaluations a").count()) {
          await page.locator("#evaluations a").first().click();
          // Until its style is there, too.
          await page.waitForURL(/\/evaluations\/.+/);
          await reads(page, `evaluation-${language}-${width}`);
        }
      }
      await page.getByRole("button", { name: /ログアウト/ }).click();
      await page.waitForURL(`${DASHBOARD}/login`);
      for (const language of ["ja", "en"]) {
        await reads(page, `login-${language}-${width}`);
        const other = language === "ja" ? "en" : "ja";
        await page.getByRole("link", { name: /English|日本語/ }).click();
        await page.waitForSelector(`html[lang=${other}]`);
        await page.waitForLoadState();
      }
      await page.context().close();
    }
  },
  // Everything by keyboard and by what is written on it: the other language, and hiding what is over.
  async tidy() {
    const page = await open(1200, { locale: "en-US" });
    assert(await page.locator("#history tbody tr").count() > 0);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip", "the first stop skips to the content");
    await page.getByRole("link", { name: "日本語" }).press("Enter");
    await page.waitForSelector("html[lang=ja]");
    await page.getByRole("button", { name: "終了した実行と評価を非表示にする" }).press("Enter");
    await page.waitForFunction(() => document.querySelectorAll("#history tbody tr").length === 0);
    await page.getByRole("checkbox").check();
    await page.getByRole("button", { name: "絞り込む" }).click();
    await page.waitForURL(/hidden=true/);
    assert(await page.locator("#history tbody tr").count() > 0, "nothing was deleted");
    await page.getByRole("link", { name: "English" }).click();
    await page.waitForSelector("html[lang=en]");
  },
};

try {
  await steps[STEP]();
  assert.deepEqual(faults, []);
} finally {
  await browser.close();
}
