import { createLimiter, type RequestFacts } from "@sluice/core"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { type DashboardOptions, dashboard } from "@sluice/dashboard"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import type { BrowserContextOptions, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { accessibilityFindings, nextFrame, startBrowser } from "../logs/report-page.ts"
import { startHttpServer } from "../servers/http-server.ts"

let browser: Awaited<ReturnType<typeof startBrowser>>
beforeAll(async () => {
  browser = await startBrowser()
  // This timeout is long enough to download and unpack Chromium over a slow network.
}, 600_000)
afterAll(() => browser?.stop())

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const HOSTILE = [
  "<script>window.attacked = 1</script>",
  '<img src="https://attacker.example/" onerror="window.attacked = 1">',
  '"><svg onload="window.attacked = 1">',
  "javascript:window.attacked=1",
  "constructor",
  "\u202egnp.exe",
]
const RULES = [
  { name: "per-client", field: "ip", limit: 3, window: "1 minute" },
  {
    name: "<img src=x onerror=attacked=1>",
    field: "header:x-user",
    limit: 2,
    window: "1 minute",
    onMissing: "skip",
  },
  { name: "planned", field: "ip", limit: 2, window: "1 minute", shadow: true },
]

interface Shown {
  readonly clock: ManualClock
  readonly url: string
  /** Decides requests of an address. */
  readonly decide: (remoteAddress: string, times: number, user?: string) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Serves the page of a new limiter. Its time stands still, so that updates come when a test moves the clock. */
async function serve(options: DashboardOptions = {}, port = 0, rules: object = RULES): Promise<Shown> {
  const clock = manualClock()
  const limiter = createLimiter<RequestFacts>({ rules: rules as never, clock, service: "shop" })
  const page = dashboard(limiter, { clock, path: "/limits", ...options })
  const server = await startHttpServer(page, port)
  const stop = async (): Promise<void> => {
    await server.close()
    page.close()
    await limiter.close()
  }
  closing.push(stop)
  return {
    clock,
    url: `${server.url}/limits/`,
    stop,
    async decide(remoteAddress, times, user) {
      const headers = user === undefined ? {} : { "x-user": user }
      for (let i = 0; i < times; i++) await limiter.decide({ remoteAddress, headers })
    },
  }
}

/** Serves a page with some traffic of the last minutes. */
async function withTraffic(options?: DashboardOptions): Promise<Shown> {
  const shown = await serve(options)
  for (let minute = 0; minute < 3; minute++) {
    await shown.decide("192.0.2.7", 9)
    await shown.decide("192.0.2.8", 5)
    await shown.decide("192.0.2.9", 1)
    for (const [i, user] of HOSTILE.entries()) await shown.decide(`192.0.2.${100 + i}`, 3, user)
    shown.clock.advance(31_000)
  }
  await shown.decide("192.0.2.7", 20)
  return shown
}

async function open(url: string, options?: BrowserContextOptions) {
  const opened = await browser.visit(url, options)
  closing.push(() => opened.page.context().close())
  await opened.page.waitForSelector("#view h2")
  return opened
}

const texts = (page: Page, selector: string) => page.locator(selector).allTextContents()
const VIEWS = ["#now", "#rule/shop/per-client", "#refusals", "#health"]

describe("the page of the dashboard", () => {
  it("requests nothing but its own files, writes nothing to the console, and fits into 360 pixels", async () => {
    const { url } = await withTraffic()
    const { page, requests, complaints } = await open(url)
    for (const view of VIEWS) {
      await page.evaluate(`location.hash = ${JSON.stringify(view)}`)
      await nextFrame(page)
      for (const width of [1_280, 360]) {
        await page.setViewportSize({ width, height: 800 })
        await nextFrame(page)
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width)
      }
    }
    expect([...new Set(requests)].sort()).toEqual([url, `${url}events`, `${url}page.css`, `${url}page.js`])
    expect(complaints).toEqual([])
  })

  it("causes no findings of axe-core in any view, in light and dark mode", async () => {
    const { url } = await withTraffic()
    for (const view of VIEWS) {
      const { page } = await open(`${url}${view}`, { bypassCSP: true })
      await search(page, "192.0.2.7")
      expect(await accessibilityFindings(page)).toEqual([])
    }
  })

  it("shows which clients are refused now, by which rule, and until when", async () => {
    const { url, clock } = await withTraffic({ keys: "shown" })
    const { page } = await open(url)
    expect(await texts(page, "#view h2")).toEqual(["No rule refuses requests now", "Clients refused most"])
    clock.advance(2_000)
    await page.waitForSelector("text=Live, 00:01:35")
    expect(await texts(page, "#view h2")).toEqual([
      "1 rule refuses 1.9 requests per second",
      "Clients refused most",
    ])
    // The rule "planned" only counts what it would refuse.
    expect(await texts(page, "#view table >> nth=0 >> tbody th")).toEqual([
      "per-client",
      "planned shadow",
      "<img src=x onerror=attacked=1>",
    ])
    const rows = page.locator("#view table >> nth=1 >> tbody tr")
    expect(await rows.first().locator("th, td").allTextContents()).toEqual([
      ...["192.0.2.7", "per-client", "42", "00:01:33", "limit reached", "in 6 s, 00:01:41"],
    ])
  })

  it("shows a rule with its plots, tables, clients and refusals", async () => {
    const { url } = await withTraffic({ keys: "shown" })
    const { page } = await open(`${url}#rule/shop/per-client`)
    const plots = page.locator("#view canvas")
    expect(await plots.count()).toBe(2)
    expect(await plots.first().getAttribute("aria-label")).toBe(
      "Requests per second in the last 5 minutes. Most at 2024-01-01 00:00:00: 25 admitted, 8 refused. The table below contains all values.",
    )
    await page.locator("summary").first().click()
    await page.waitForSelector("#seconds tbody tr")
    const seconds = await texts(page, "#seconds tbody tr >> nth=0 >> th, td")
    expect(seconds.slice(0, 3)).toEqual(["00:01:33", "1", "19"])
    expect(await texts(page, "#view h3")).toEqual([
      "Clients refused most",
      "Clients with the most requests",
      "Last refusals",
    ])
    expect(await page.locator("text=per-client refused the request").count()).toBeGreaterThan(10)
  })
})

describe("keys and names that clients choose", () => {
  it("are shown as text", async () => {
    const { url } = await withTraffic({ keys: "shown" })
    const { page, complaints, requests } = await open(url)
    for (const view of [...VIEWS, `#rule/shop/${encodeURIComponent("<img src=x onerror=attacked=1>")}`]) {
      await page.evaluate(`location.hash = ${JSON.stringify(view)}`)
      await nextFrame(page)
      expect(await page.locator("img, iframe, #view script, [onload], [onerror]").count()).toBe(0)
    }
    const clients = await texts(page, "#view h3 + .scroll >> nth=0 >> tbody th")
    expect(clients.sort()).toEqual([...HOSTILE.slice(0, -1), "\\u{202e}gnp.exe"].sort())
    for (const key of HOSTILE) {
      await page.locator("#key").fill(key)
      await page.keyboard.press("Enter")
      await page.waitForSelector(`#found h2 >> text=lists of`)
    }
    expect(await page.evaluate("window.attacked")).toBeUndefined()
    expect(requests.filter((each) => !each.startsWith(url))).toEqual([])
    expect(requests.filter((each) => each.includes("192.0.2"))).toEqual([])
    expect(complaints).toEqual([])
  })
})

describe("the search", () => {
  it("marks a client by the keyboard, and says if the client is not in the lists", async () => {
    const { url } = await withTraffic()
    const { page } = await open(url)
    await search(page, "192.0.2.7")
    const marked = await texts(page, "#view mark")
    expect(await texts(page, "#found h2")).toEqual(["192.0.2.7 is in the lists of 2 rules"])
    const hasFocus = "document.activeElement === document.querySelector('#found h2')"
    expect(await page.evaluate(hasFocus)).toBe(true)
    // The clock of the browser is years ahead of the server's.
    expect(await texts(page, "#found tbody tr >> nth=0 >> th, td")).toEqual([
      ...["per-client", "refused: limit reached; again in 8 s, 00:01:41", "3", "0", "in 58 s", "42", "≈ 80"],
      expect.stringMatching(/^hash:[0-9a-f]{8}$/),
    ])
    expect(marked).toEqual([expect.stringMatching(/^hash:[0-9a-f]{8} ← found$/)])
    await page.locator("#key").fill("192.0.2.99")
    await page.keyboard.press("Enter")
    await page.waitForSelector("text=192.0.2.99 is not among the refused or busy clients")
    expect(await page.locator("mark").count()).toBe(0)
    expect(page.url()).toBe(url)
  })
})

it("the page shows the date and whole days of a wait for the next month", async () => {
  const monthly = { name: "monthly", field: "ip", limit: 3, per: "month", timeZone: "Europe/Berlin" }
  const { url, decide, clock } = await serve({ keys: "shown" }, 0, [monthly])
  clock.advance(5 * 86_400_000)
  await decide("192.0.2.7", 5)
  const { page } = await open(url)
  const again = "in 25 d 23 h, 2024-01-31 23:00:00"
  expect(await texts(page, "#view h2 + .scroll >> nth=1 >> tbody td")).toContain(again)
  await search(page, "192.0.2.7")
  expect((await texts(page, "#found tbody td")).slice(0, 4)).toEqual([
    ...[`refused: limit reached; again ${again}`, "3", "0", "in 25 d 23 h"],
  ])
})

describe("an update", () => {
  it("keeps the focus, the selection and open tables", async () => {
    const { url, clock, decide } = await withTraffic({ keys: "shown" })
    const { page } = await open(`${url}#rule/shop/per-client`)
    await page.locator("summary").first().click()
    await page.waitForSelector("#seconds tbody tr")
    await page.locator("text=← All rules").focus()
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('#view h2'))")
    await decide("192.0.2.200", 7)
    clock.advance(2_000)
    await page.waitForSelector("#view >> text=192.0.2.200")
    expect(await page.evaluate("document.activeElement.textContent")).toBe("← All rules")
    expect(await page.evaluate("getSelection().toString()")).toBe("Rule per-client")
    expect(await page.locator("#seconds tbody tr").count()).toBeGreaterThan(3)
  })
})

describe("a plot", () => {
  it("leaves the memory when it leaves the page", async () => {
    const { url } = await withTraffic()
    const { page } = await open(url)
    const devtools = await page.context().newCDPSession(page)
    const plots = async (): Promise<number> => {
      const { result } = await devtools.send("Runtime.evaluate", {
        expression: "HTMLCanvasElement.prototype",
      })
      const { objects } = await devtools.send("Runtime.queryObjects", {
        prototypeObjectId: result.objectId as string,
      })
      const { result: found } = await devtools.send("Runtime.callFunctionOn", {
        ...{ objectId: objects.objectId as string, returnByValue: true },
        functionDeclaration: 'function () { return this.filter((each) => each.className === "").length }',
      })
      return found.value
    }
    for (let visits = 0; visits < 5; visits++) {
      for (const view of ["#rule/shop/per-client", "#now"]) {
        await page.evaluate(`location.hash = ${JSON.stringify(view)}`)
        await nextFrame(page)
      }
    }
    await expect.poll(plots).toBeLessThan(4)
  })
})

describe("a page without updates", () => {
  it("is marked as stale, and is live again with the next update", async () => {
    const { url, clock } = await withTraffic()
    const { page } = await open(url)
    await page.waitForSelector("text=Live, 00:01:33")
    await page.clock.install()
    await page.clock.fastForward(10_000)
    await page.waitForSelector("#age >> text=Stale since 00:01:33")
    expect(await texts(page, "[role=alert] p")).toEqual([
      "⚠ Stale since 00:01:33. No update arrives. Connecting again …",
    ])
    clock.advance(2_000)
    await page.waitForSelector("text=Live, 00:01:35")
    expect(await texts(page, "[role=alert] p")).toEqual([])
  })

  it("connects again when the server has restarted", async () => {
    const first = await withTraffic()
    const { page } = await open(first.url)
    await first.stop()
    const second = await serve({}, Number(new URL(first.url).port))
    await page.waitForSelector("text=No request has been decided since this page began to record")
    await page.waitForSelector("text=Live, 00:00:00")
    expect(second.url).toBe(first.url)
  })

  it("says so if the visitor is no longer allowed", async () => {
    let isAllowed = true
    const { url, clock } = await serve({ authorize: () => isAllowed })
    const { page } = await open(url)
    await page.clock.install()
    await page.reload()
    await page.waitForSelector("#view h2")
    isAllowed = false
    for (let updates = 0; updates < 30; updates++) {
      clock.advance(2_000)
      await nextFrame(page)
    }
    await page.waitForSelector("[role=alert] >> text=You may no longer see this page")
    await page.clock.runFor(4_000)
    expect(await texts(page, "[role=alert] p")).toEqual([
      "⚠ Stale since 00:01:00. You may no longer see this page.",
    ])
  })

  it("is not connected while nobody sees it", async () => {
    const { url, clock } = await serve()
    const { page, requests } = await open(url)
    const hide = (state: string) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { value: ${state}, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"))`)
    await hide("true")
    clock.advance(2_000)
    await nextFrame(page)
    expect(await texts(page, "#age")).toEqual(["Live, 00:00:00"])
    await hide("false")
    await page.waitForSelector("text=Live, 00:00:02")
    expect(requests.filter((each) => each.endsWith("/events"))).toHaveLength(2)
  })
})

describe("an outage of the store", () => {
  it("is announced, and shown in the view of the health", async () => {
    const client = new Redis({ port: 1, lazyConnect: true, retryStrategy: () => null })
    client.on("error", () => undefined)
    const clock = manualClock()
    const limiter = createLimiter<RequestFacts>({
      ...{ name: "per-client", limit: 3, window: "1 minute", service: "shop" },
      ...{ store: redisStore({ client }), logger: { warn() {}, error() {} } },
    })
    const page = dashboard(limiter, { clock, path: "/limits" })
    const server = await startHttpServer(page)
    closing.push(() => limiter.close(), page.close, server.close)
    for (let i = 0; i < 20; i++) await limiter.decide({ remoteAddress: "192.0.2.7" })
    const opened = await open(`${server.url}/limits/#health`)
    expect(await texts(opened.page, "[role=alert] p")).toEqual([
      "⚠ shop: the shared store does not respond. Its circuit breaker is open.",
    ])
    expect(await texts(opened.page, "#view .bad")).toContain("✗ 1 open")
  })
})

async function search(page: Page, key: string): Promise<void> {
  await page.keyboard.press("/")
  await page.keyboard.type(key)
  await page.keyboard.press("Enter")
  await page.waitForSelector("#found h2")
}
