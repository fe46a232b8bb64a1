import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { addressOf, GROUPS } from "../../docs/.vitepress/pages.ts"
import { startChromium } from "../servers/chromium.ts"
import { until } from "../servers/until.ts"
import { type BuiltSite, buildSite } from "./built-site.ts"
import { SEARCHES } from "./searches.ts"

// Opens the built site in a real browser.

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js")

let site: BuiltSite
let browser: Browser
let desktop: OpenPage
beforeAll(async () => {
  site = await buildSite()
  browser = await startChromium()
  desktop = await newPage()
  // The timeout is long enough to download Chromium over a slow network.
}, 600_000)
afterAll(async () => {
  await browser?.close()
  await site?.stop()
})

const ERRORS = readdirSync(new URL("../../docs/errors", import.meta.url)).map((name) =>
  name.replace(".md", ""),
)
const ADDRESSES = [
  "/",
  ...GROUPS.flatMap(({ pages }) => pages.map(({ path }) => addressOf(path))),
  ...ERRORS.map((name) => addressOf(`errors/${name}`)),
  ...["README", "core", "redis"].map((name) => addressOf(`reference/api/${name}`)),
]
const ON_A_PHONE = [
  "/",
  "/start/quick-start",
  "/rules/algorithms",
  "/rules/rules",
  "/production/proxies",
  "/reference/options",
]

interface OpenPage {
  readonly page: Page
  /** Messages in the console and uncaught errors. */
  readonly complaints: string[]
  /** Requests to other hosts. */
  readonly foreign: string[]
}

async function newPage(options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 900 }, ...options })
  const page = await context.newPage()
  await page.addInitScript({ path: AXE })
  const complaints: string[] = []
  const foreign: string[] = []
  page.on("console", (message) => complaints.push(message.text()))
  page.on("pageerror", (error) => complaints.push(String(error)))
  page.on("request", (request) => {
    if (!request.url().startsWith(site.origin)) foreign.push(request.url())
  })
  return { page, complaints, foreign }
}

/** Goes to an address, and waits until Vue has taken over the page. */
async function visit(page: Page, address: string): Promise<void> {
  await page.goto(site.origin + address, { waitUntil: "load" })
  await page.waitForFunction('document.querySelector("#app").__vue_app__ !== undefined')
}

async function open(address: string, options?: BrowserContextOptions): Promise<OpenPage> {
  const opened = await newPage(options)
  await visit(opened.page, address)
  return opened
}

/** Returns the findings of axe-core in a page. */
async function findingsIn(page: Page): Promise<string[]> {
  return await page.evaluate<string[]>(`axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html.slice(0, 200))))`)
}

describe("the site", () => {
  it.each(ADDRESSES)(
    "shows %s without an error, a request to another host, or a finding of axe-core",
    async (address) => {
      // All addresses share a page, because a new one would compile all scripts again.
      const { page, complaints, foreign } = desktop
      await visit(page, address)
      const findings = await findingsIn(page)
      expect({ complaints: complaints.splice(0), foreign: foreign.splice(0), findings }).toEqual({
        complaints: [],
        foreign: [],
        findings: [],
      })
      expect(await page.locator("h1").count()).toBe(1)
      expect(await page.title()).not.toBe("")
    },
  )

  it.each(ON_A_PHONE)(
    "shows %s on a phone in dark mode, without parts that are wider than the screen",
    async (address) => {
      const { page } = await open(address, { viewport: { width: 390, height: 844 }, colorScheme: "dark" })
      expect(await findingsIn(page)).toEqual([])
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390)
      await page.context().close()
    },
  )

  it("uses the color scheme that its switch selects, not that of the system", async () => {
    const { page } = await open("/", { colorScheme: "dark" })
    const background = () =>
      page.evaluate(
        "getComputedStyle(document.documentElement).colorScheme + getComputedStyle(document.body).backgroundColor",
      )
    expect(await background()).toMatch(/^dark/)
    await page.evaluate("document.querySelector('.VPSwitchAppearance').click()")
    expect(await background()).toBe("lightrgb(255, 255, 255)")
    await page.context().close()
  })

  it("shows a page with a link to the start page for an address that does not exist", async () => {
    const { page, foreign } = await open("/no/such-page")
    expect(await page.locator("main h1").textContent()).toBe("This page does not exist")
    expect(await findingsIn(page)).toEqual([])
    await page.click("main a")
    await page.waitForURL(`${site.origin}/`)
    await page.waitForSelector(".vp-doc h1")
    expect(await page.locator("h1").textContent()).toContain("Sluice")
    expect(foreign).toEqual([])
    await page.context().close()
  })

  it("contains no link to a page or a heading that does not exist", () => {
    const files = readdirSync(site.folder, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".html"),
    )
    const pages = new Map(files.map((name) => [`/${name}`, readFileSync(join(site.folder, name), "utf8")]))
    const broken = [...pages].flatMap(([from, html]) =>
      [...html.matchAll(/<a [^>]*href="([^"]+)"/g)].flatMap(([, href = ""]) => {
        if (/^\w+:/.test(href)) return []
        const { pathname, hash } = new URL(href, `http://site${from}`)
        const target =
          pages.get(pathname) ?? pages.get(`${pathname}.html`) ?? pages.get(`${pathname}index.html`)
        const id = decodeURIComponent(hash.slice(1))
        if (target !== undefined && (id === "" || target.includes(`id="${id}"`))) return []
        return target === undefined && files.includes(pathname.slice(1)) ? [] : [`${from}: ${href}`]
      }),
    )
    expect(broken).toEqual([])
  })

  it("lists each page once in llms.txt, and serves each page's Markdown file", () => {
    const list = readFileSync(join(site.folder, "llms.txt"), "utf8")
    const files = [...list.matchAll(/\]\(\/([^)]+)\)/g)].map(([, file = ""]) => file)
    expect(files).toEqual(GROUPS.flatMap(({ pages }) => pages.map(({ path }) => `${path}.md`)))
    for (const file of files) {
      expect(readFileSync(join(site.folder, file), "utf8")).toBe(
        readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8"),
      )
    }
  })
})

describe("the search", () => {
  let page: Page
  beforeAll(async () => {
    page = (await newPage()).page
    await page.clock.install()
    await visit(page, "/")
    // On a busy machine, the page is shown before its script listens to keys. Each search would then wait for 30 s.
    await until("the search is open", async () => {
      await page.keyboard.press("Control+k")
      await page.waitForSelector("#localsearch-input", { timeout: 1_000 })
      return true
    })
  })
  afterAll(() => page?.context().close())

  it.each(SEARCHES)('finds "$words" on $pages', async ({ words, pages, among = 1 }) => {
    // Clear the previous results first, because a search starts 200 ms after the last key. Move the clock that far.
    await page.fill("#localsearch-input", "")
    await page.clock.runFor(200)
    await page.waitForFunction('document.querySelector(".VPLocalSearchBox .result") === null')
    await page.fill("#localsearch-input", words)
    await page.clock.runFor(200)
    await page.waitForSelector(".VPLocalSearchBox .result")
    const found = await page.evaluate<string[]>(
      `[...document.querySelectorAll(".VPLocalSearchBox .result")].map(({ href }) => new URL(href).pathname)`,
    )
    const first = [...new Set(found)].slice(0, among)
    expect(
      first.some((address) => pages.includes(address)),
      `found ${first.join(", ")}`,
    ).toBe(true)
  })
})
