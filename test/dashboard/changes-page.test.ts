import { createLimiter, type RequestFacts, type Rule } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { type DashboardOptions, dashboard } from "@sluice/dashboard"
import type { BrowserContextOptions, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { accessibilityFindings, startBrowser } from "../logs/report-page.ts"
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

const TOKEN = "a token of 24 characters"
const HOSTILE_RULE = "<img src=x onerror=attacked=1>"
const HOSTILE = `${HOSTILE_RULE}\u202e`
const RULES: readonly Rule[] = [
  { name: "per-client", field: "ip", limit: 3, window: "1 minute" },
  { name: HOSTILE_RULE, field: "header:x-user", limit: 1, window: "1 minute", onMissing: "skip" },
  { name: "planned", field: "ip", limit: 2, window: "1 minute", shadow: true },
]

/** Serves the page of a limiter that refuses 192.0.2.7 and a hostile user, and opens it. */
async function open(options: DashboardOptions = {}, context?: BrowserContextOptions, hash = "") {
  const clock = manualClock()
  const limiter = createLimiter<RequestFacts>({ rules: [...RULES], clock, service: "shop" })
  const logger = { warn() {}, error() {}, info() {} }
  const handler = dashboard(limiter, { clock, path: "/limits", token: TOKEN, logger, ...options })
  const server = await startHttpServer(handler)
  const stop = async (): Promise<void> => {
    await server.close()
    handler.close()
    await limiter.close()
  }
  const decide = (remoteAddress: string, user?: string) =>
    limiter.decide({ remoteAddress, headers: user === undefined ? {} : { "x-user": user } })
  for (let i = 0; i < 9; i++) await decide("192.0.2.7")
  for (let i = 0; i < 3; i++) await decide("192.0.2.66", HOSTILE)
  const url = `${server.url}/limits/${hash}`
  const opened = await browser.visit(url, context)
  closing.push(stop, () => opened.page.context().close())
  await opened.page.waitForSelector("#view h2")
  return { ...opened, clock, decide, stop, url }
}

const texts = (page: Page, selector: string) => page.locator(selector).allTextContents()

async function search(page: Page, key = "192.0.2.7"): Promise<void> {
  await page.fill("#key", key)
  await page.keyboard.press("Enter")
  await page.waitForSelector("#found tbody")
}

/** Opens the dialog of a change in a row of the search's result. */
async function ask(page: Page, verb: string, row = 0): Promise<void> {
  await page.locator(`#found tbody tr >> nth=${row} >> button >> text="${verb}"`).click()
  await page.waitForSelector("dialog[open]")
}

async function confirm(page: Page, verb: string): Promise<void> {
  await page.locator(`dialog button >> text="${verb}"`).last().click()
}

const focused = (page: Page) =>
  page.evaluate("document.activeElement.textContent || document.activeElement.id")

describe("an operator", () => {
  it("blocks, unblocks and resets a client by the keyboard, and enters the token once", async () => {
    const { page, decide, complaints, requests, url } = await open()
    await search(page)
    await page.locator("#found tbody button >> nth=0").focus()
    await page.keyboard.press("Enter")
    await page.waitForSelector("dialog[open]")
    expect(await texts(page, "dialog h2")).toEqual([expect.stringMatching(/^Block hash:[0-9a-f]{8}$/)])
    expect(await focused(page)).toBe("5 minutes")
    await page.keyboard.press("Enter")
    const effect = page.locator("dialog p >> nth=0")
    expect(await effect.textContent()).toMatch(
      /^Rule per-client refuses hash:[0-9a-f]{8} for 5 minutes in this process\.$/,
    )
    await page.fill("#for", "90 minutes")
    expect(await effect.textContent()).toMatch(/for 90 minutes in this process/)
    await page.fill("#token", TOKEN)
    await page.keyboard.press("Enter")
    await page.waitForSelector("dialog", { state: "hidden" })
    expect(await focused(page)).toBe("Block")
    const now = "#found tbody tr >> nth=0 >> td >> nth=0"
    expect(await texts(page, now)).toEqual([
      expect.stringMatching(/^refused: blocked by an operator; again in 1 h 30 min, 01:30:0\d$/),
    ])
    expect(await texts(page, "#found [role=status]")).toEqual([
      expect.stringMatching(/^Done\. Rule per-client refuses hash:\w+ for 90 minutes in this process\.$/),
    ])
    expect(await decide("192.0.2.7")).toMatchObject({ refusal: "blocked", retryAfterMs: 5_400_000 })

    await ask(page, "Unblock")
    expect(await page.locator("#token").count()).toBe(0)
    expect(await focused(page)).toBe("Cancel")
    expect(await effect.textContent()).toMatch(
      /^Rule per-client ends the block of hash:\w+ in this process\. The counted requests stay\.$/,
    )
    await confirm(page, "Unblock")
    await page.waitForSelector(`${now} >> text=limit reached`)
    // The button of the block is gone.
    await page.waitForSelector("#found h2:focus")
    expect(await focused(page)).toBe("192.0.2.7 is in the lists of 2 rules")

    await ask(page, "Reset")
    expect(await effect.textContent()).toMatch(
      /^Rule per-client forgets the requests of hash:\w+, and ends its block, in this process\.$/,
    )
    await confirm(page, "Reset")
    await page.waitForSelector(`${now} >> text=admitted`)
    expect((await decide("192.0.2.7")).allowed).toBe(true)
    expect(complaints).toEqual([])
    expect([...new Set(requests)].filter((each) => !/page\.(js|css)$/.test(each))).toEqual(
      ["", "events", "find", "change"].map((path) => `${url}${path}`),
    )
  })

  it("leaves no token in the browser", async () => {
    const { page } = await open()
    await search(page)
    await ask(page, "Reset")
    await page.fill("#token", TOKEN)
    await confirm(page, "Cancel")
    await page.waitForSelector("#token", { state: "detached" })
    await ask(page, "Reset")
    await page.fill("#token", TOKEN)
    await confirm(page, "Reset")
    await page.waitForSelector("dialog", { state: "hidden" })
    const kept =
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.body.outerHTML])"
    expect(await page.evaluate(kept)).not.toContain(TOKEN)
    expect(await page.context().cookies()).toEqual([])
    await page.reload()
    await search(page)
    await ask(page, "Reset")
    expect(await page.locator("#token").inputValue()).toBe("")
  })

  it("sees why a change is refused, corrects it, and may cancel", async () => {
    const { page, decide } = await open()
    await search(page)
    await ask(page, "Block")
    await page.fill("#token", "a wrong token of an operator")
    await page.keyboard.press("Enter")
    await page.waitForSelector("dialog [role=alert] >> text=The token is not valid for shop.")
    expect(await focused(page)).toBe("token")
    await page.fill("#token", TOKEN)
    await page.fill("#for", "3")
    await page.keyboard.press("Enter")
    await page.waitForSelector(
      'dialog [role=alert] >> text="3" has no unit. Give one, such as "1 hour" or "15m".',
    )
    await page.fill("#for", "3 hours")
    expect(await texts(page, "dialog [role=alert]")).toEqual([""])
    await page.keyboard.press("Escape")
    await page.waitForSelector("dialog", { state: "hidden" })
    expect(await focused(page)).toBe("Block")
    expect((await decide("192.0.2.7")).refusal).toBe("quota")
    await ask(page, "Block")
    expect(await page.locator("#for").inputValue()).toBe("1 hour")
    await confirm(page, "Cancel")
    await page.waitForSelector("dialog", { state: "hidden" })
  })

  it("is told that the server does not respond", async () => {
    const { page, stop } = await open({ authorize: () => "operator" })
    await search(page)
    await ask(page, "Block")
    expect(await page.locator("#token").count()).toBe(0)
    await stop()
    await confirm(page, "Block")
    const problem = "The server does not respond. The change may have been made. Search again."
    await page.waitForSelector(`dialog [role=alert] >> text=${problem}`)
    expect(await focused(page)).toBe("Block")
  })

  it("is told the status of a proxy's response, and not its HTML", async () => {
    const { page } = await open({ authorize: () => "operator" })
    const proxied = { status: 504, contentType: "text/html", body: "<h1>Gateway Time-out</h1>" }
    await page.route("**/change", (route) => route.fulfill(proxied))
    await search(page)
    await ask(page, "Block")
    await confirm(page, "Block")
    const problem = "The server responds with 504. The change may have been made. Search again."
    await page.waitForSelector(`dialog [role=alert] >> text=${problem}`)
  })

  it("sees when a block ends, however long ago the search was", async () => {
    const { page, clock } = await open({ authorize: () => "operator" })
    await search(page)
    clock.advance(600_000)
    await page.evaluate("{ const { now } = Date; Date.now = () => now() + 600_000 }")
    await ask(page, "Block")
    await confirm(page, "Block")
    await page.waitForSelector("#found tbody tr >> nth=0 >> text=/again in 1 h, 01:10:/")
  })

  it.each([
    ["made", "Done. Rule per-client refuses hash:"],
    ["lost", "Failed: Rule per-client refuses hash:"],
  ])(
    "learns that a change was %s after its dialog was closed, and keeps the next dialog",
    async (end, note) => {
      const { page, decide } = await open({ authorize: () => "operator" })
      let release = (): void => undefined
      const held = new Promise<void>((done) => {
        release = done
      })
      await page.route("**/change", async (route) => {
        await held
        await (end === "made" ? route.continue() : route.abort())
      })
      await search(page)
      await ask(page, "Block")
      await confirm(page, "Block")
      await page.keyboard.press("Escape")
      await page.waitForSelector("dialog", { state: "hidden" })
      await ask(page, "Reset", 1)
      release()
      await page.waitForSelector(`#found [role=status] >> text=${note}`)
      expect(await texts(page, "dialog h2")).toEqual([expect.stringMatching(/^Reset hash:/)])
      expect(await page.locator("dialog p >> nth=0").textContent()).toContain("Rule planned forgets")
      expect(await page.locator("dialog[open]").count()).toBe(1)
      expect((await decide("192.0.2.7")).refusal).toBe(end === "made" ? "blocked" : "quota")
    },
  )

  it("sends a change once, also if it is confirmed again before it ends", async () => {
    const { page, requests } = await open({ authorize: () => "operator" })
    let release = (): void => undefined
    const held = new Promise<void>((done) => {
      release = done
    })
    await page.route("**/change", async (route) => {
      await held
      await route.continue()
    })
    await search(page)
    await ask(page, "Block")
    await confirm(page, "Block")
    await page.fill("#for", "2 hours")
    await page.keyboard.press("Enter")
    release()
    await page.waitForSelector("#found [role=status] >> text=for 1 hour in this process")
    expect(requests.filter((each) => each.endsWith("/change"))).toHaveLength(1)
  })

  it("cannot block a client under a shadow rule", async () => {
    const { page } = await open()
    await search(page)
    const planned = page.locator("#found tbody tr", { hasText: "planned" })
    expect(await planned.locator("button").allTextContents()).toEqual(["Reset"])
    expect(await planned.textContent()).toContain("would be refused: limit reached")
    expect(await planned.textContent()).toContain("A shadow rule cannot block.")
  })

  it("blocks an address that is not in the lists", async () => {
    const { page, decide } = await open({ authorize: () => "operator", keys: "shown" })
    await search(page, "2001:db8::7")
    expect(await texts(page, "#found h2")).toEqual(["2001:db8::7 is not among the refused or busy clients"])
    await ask(page, "Block")
    expect(await texts(page, "dialog h2")).toEqual(["Block 2001:db8::/64"])
    await confirm(page, "Block")
    await page.waitForSelector("#found >> text=blocked by an operator")
    expect((await decide("2001:db8::99")).refusal).toBe("blocked")
  })
})

describe("a visitor", () => {
  it("sees the state of a listed client by a click on it, and no buttons without a token", async () => {
    const { page } = await open({ token: undefined })
    const key = (await page.locator("#view table >> nth=1 >> tbody th >> nth=0").textContent()) as string
    await page.locator(`#view button >> text=${key}`).first().click()
    await page.waitForSelector("#found tbody")
    expect(await texts(page, "#found h2")).toEqual([`${key} is in the lists of 2 rules`])
    expect(await texts(page, "#found tbody th")).toEqual(["per-client", "planned"])
    expect(await page.locator("#found button").count()).toBe(0)
    expect(page.url()).not.toContain("hash:")
  })
})

describe("hostile names and keys", () => {
  it("are text in dialogs and messages", async () => {
    const { page, complaints, requests, url } = await open({ keys: "shown", authorize: () => "operator" })
    await search(page, HOSTILE)
    const shown = `${HOSTILE_RULE}\\u{202e}`
    await ask(page, "Block")
    expect(await texts(page, "dialog h2")).toEqual([`Block ${shown}`])
    await page.fill("#for", HOSTILE)
    await confirm(page, "Block")
    await page.waitForSelector("dialog [role=alert] >> text=is not a duration")
    await page.fill("#for", "1 hour")
    await confirm(page, "Block")
    await page.waitForSelector("#found >> text=blocked by an operator")
    expect(await texts(page, "#found [role=status]")).toEqual([
      `Done. Rule ${HOSTILE_RULE} refuses ${shown} for 1 hour in this process.`,
    ])
    expect(await page.locator("img, [onerror]").count()).toBe(0)
    expect(await page.evaluate("window.attacked")).toBeUndefined()
    expect(requests.filter((each) => !each.startsWith(url))).toEqual([])
    // The browser itself reports the response 400.
    expect(complaints.filter((each) => !each.includes("400 (Bad Request)"))).toEqual([])
  })
})

describe("the dialog", () => {
  it.each([
    ["of 1280 pixels", 1_280],
    ["of 360 pixels", 360],
  ])(
    "causes no findings of axe-core in a window %s, in light and dark mode, and fits",
    async (_name, width) => {
      const { page } = await open({}, { bypassCSP: true, viewport: { width, height: 740 } })
      await search(page)
      for (const verb of ["Block", "Reset"]) {
        await ask(page, verb)
        expect(await accessibilityFindings(page)).toEqual([])
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width)
        const box = await page.locator("dialog").boundingBox()
        expect(box?.width).toBeLessThanOrEqual(width)
        expect(
          await page.evaluate(
            "document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth",
          ),
        ).toBe(true)
        await page.keyboard.press("Escape")
        await page.waitForSelector("dialog", { state: "hidden" })
      }
    },
  )
})
