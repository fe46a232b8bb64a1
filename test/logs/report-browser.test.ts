import { type ReplayResult, replayReport } from "@sluice/logs"
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { emptyResult, HOSTILE, hostileResult, largeResult } from "./replay-results.ts"
import { accessibilityFindings, drawnPlots, nextFrame, openTables, startBrowser } from "./report-page.ts"

let browser: Awaited<ReturnType<typeof startBrowser>>
beforeAll(async () => {
  browser = await startBrowser()
  // This timeout is long enough to download and unpack Chromium over a slow network.
}, 600_000)
afterAll(() => browser?.stop())

const RESULTS = [
  ["a large result", largeResult()],
  ["an empty result", emptyResult()],
  ["a hostile result", hostileResult()],
] as const

describe.each(RESULTS)("the report of %s", (_name, result) => {
  it("requests nothing but itself, writes nothing to the console, and fits into 360 pixels", async () => {
    const { page, requests, complaints } = await browser.open(replayReport(result))
    await page.mouse.move(400, 400)
    // Only tables scroll sideways. The plots follow the new width in the next frame.
    await page.setViewportSize({ width: 360, height: 740 })
    await nextFrame(page)
    await openTables(page)
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360)
    expect(requests).toEqual([page.url()])
    expect(complaints).toEqual([])
    expect(page.url()).toMatch(/^file:/)
    await page.context().close()
  })

  it("causes no findings of axe-core, in light and dark mode", async () => {
    const { page } = await browser.open(replayReport(shortened(result)), { bypassCSP: true })
    expect(await accessibilityFindings(page)).toEqual([])
    await page.context().close()
  })
})

describe("the plots", () => {
  // Seven of the thirteen bars are within the limit.
  const limit = 7 / 13
  let page: Page
  beforeAll(async () => {
    page = (await browser.open(replayReport(largeResult()), { colorScheme: "light" })).page
  })
  afterAll(() => page?.context().close())

  it("show the limit between the correct bars", async () => {
    const plots = await drawnPlots(page)
    expect(plots.map(({ plot }) => plot)).toEqual(["requests", ...Array(3).fill(["refused", "peaks"]).flat()])
    for (const { plot, colors, limitPixels, limitAt } of plots) {
      expect(colors).toBeGreaterThan(10)
      if (plot === "peaks") {
        expect(limitPixels).toBeGreaterThan(50)
        expect(limitAt).toBeCloseTo(limit, 2)
      } else expect(limitPixels).toBe(0)
    }
  })

  it("follow a change of the color scheme, and are light in print", async () => {
    for (const media of [{ colorScheme: "dark" }, { media: "print" }, { media: "screen" }] as const) {
      await page.emulateMedia(media)
      await nextFrame(page)
      const color = media.media === "print" ? "#7a1fa2" : "#d9a3f2"
      const shown = "getComputedStyle(document.documentElement).getPropertyValue('--limit').trim()"
      expect(await page.evaluate(shown)).toBe(color)
      expect((await drawnPlots(page)).filter(({ limitPixels }) => limitPixels > 50)).toHaveLength(3)
    }
  })

  it("show the values under the pointer", async () => {
    const plot = page.locator("[data-plot=requests] .u-over")
    const readout = page.locator("[data-plot=requests] + .readout")
    expect(await readout.textContent()).toBe(
      "Most at 2026-01-31 23:14:00: 12,769 admitted, 7,228 refused (36.1%)",
    )
    await plot.hover({ position: { x: 2, y: 20 } })
    const first = await page.locator("#time + figure tbody tr").first().locator("th, td").allTextContents()
    const [at, admitted, refused, share] = first
    expect(await readout.textContent()).toBe(`${at}: ${admitted} admitted, ${refused} refused (${share})`)
  })

  it("follow the width of the page when the width changes", async () => {
    await page.setViewportSize({ width: 360, height: 740 })
    await nextFrame(page)
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360)
    const peaks = (await drawnPlots(page)).filter(({ plot }) => plot === "peaks")
    for (const { limitAt } of peaks) expect(limitAt).toBeCloseTo(limit, 1)
  })
})

describe("the table of refused clients", () => {
  let page: Page
  beforeAll(async () => {
    page = (await browser.open(replayReport(largeResult()))).page
  })
  afterAll(() => page?.context().close())
  const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true })

  /** Returns the values of the column by which the table is sorted, and the aria-sort of the column's header. */
  async function column(page: Page, index: number) {
    const cells = `[data-sortable] tbody tr > :nth-child(${index + 1})`
    const header = page.locator("[data-sortable] thead th").nth(index)
    return {
      values: await page.locator(cells).evaluateAll((all) => all.map((cell) => String(cell.textContent))),
      order: await header.getAttribute("aria-sort"),
      sorted: await page.locator("[data-sortable] [aria-sort]").count(),
    }
  }
  const asNumbers = (values: readonly string[]) => values.map((value) => Number(value.replace(/[,×]/g, "")))

  it("is sorted by the mouse, numbers from the largest first", async () => {
    expect(await column(page, 3)).toMatchObject({ order: "descending", sorted: 1 })
    await button(page, "Peak").click()
    const descending = await column(page, 5)
    expect(descending).toMatchObject({ order: "descending", sorted: 1 })
    const numbers = asNumbers(descending.values)
    expect(numbers).toHaveLength(1_000)
    expect(numbers).toEqual([...numbers].sort((one, other) => other - one))
    await button(page, "Peak").click()
    const ascending = await column(page, 5)
    expect(ascending.order).toBe("ascending")
    expect(asNumbers(ascending.values)).toEqual([...numbers].sort((one, other) => one - other))
  })

  it("is sorted by the keyboard, and does not lose the focus", async () => {
    const client = button(page, "Client")
    const hasFocus = () => client.evaluate((element) => element === element.ownerDocument.activeElement)
    for (let tabs = 0; tabs < 60 && !(await hasFocus()); tabs++) await page.keyboard.press("Tab")
    expect(await hasFocus()).toBe(true)
    await page.keyboard.press("Enter")
    const ascending = await column(page, 0)
    expect(ascending).toMatchObject({ order: "ascending", sorted: 1 })
    const { compare } = new Intl.Collator("en", { numeric: true })
    expect(ascending.values).toEqual([...ascending.values].sort(compare))
    await page.keyboard.press("Space")
    expect(await column(page, 0)).toMatchObject({
      order: "descending",
      values: ascending.values.toReversed(),
    })
    expect(await hasFocus()).toBe(true)
  })
})

describe("without JavaScript", () => {
  it("the report contains all tables, and no empty plots", async () => {
    const { page } = await browser.open(replayReport(largeResult()), { javaScriptEnabled: false })
    expect(await page.locator("[data-sortable] tbody tr").count()).toBe(1_000)
    expect(await page.locator("[data-sortable] button").count()).toBe(0)
    expect(await page.locator("[data-plot]").count()).toBe(7)
    expect(await page.locator("[data-plot]:visible").count()).toBe(0)
    await page.locator("summary", { hasText: "Requests over time as a table" }).click()
    expect(await page.locator("#time + figure tbody tr:visible").count()).toBe(167)
    await page.context().close()
  })
})

describe("hostile names", () => {
  it("are shown as text", async () => {
    const { page, complaints } = await browser.open(replayReport(hostileResult()))
    await page.locator("[data-plot] .u-over").first().hover()
    expect(await page.evaluate("window.attacked")).toBeUndefined()
    expect(await page.locator("script").count()).toBe(2)
    expect(await page.locator("style").count()).toBe(1)
    expect(await page.locator("img, svg, iframe, [onload], [onerror], [onmouseover]").count()).toBe(0)
    const names = await page.locator("[data-sortable] tbody th").allTextContents()
    expect(names).toHaveLength(HOSTILE.length)
    expect(names.slice(0, 7)).toEqual(HOSTILE.slice(0, 7))
    expect(names.every((name) => name.length < 200)).toBe(true)
    expect(complaints).toEqual([])
    await page.context().close()
  })

  // This proves that the tests above would notice an attack.
  it("would be blocked and reported if a name became markup", async () => {
    const attacked = replayReport(largeResult()).replace(
      "<main>",
      `<main><p style="color: red">x</p><script>window.attacked = 1</script><img src="https://attacker.example/">`,
    )
    const { page, complaints } = await browser.open(attacked)
    await expect
      .poll(() => complaints.filter((each) => each.startsWith("CSP: ")).sort())
      .toEqual(["CSP: img-src", "CSP: script-src-elem", "CSP: style-src-attr"])
    expect(await page.evaluate("window.attacked")).toBeUndefined()
    await page.context().close()
  })
})

/** Returns the result with only a few rows in each table, because thousands of rows have the same findings. */
function shortened(result: ReplayResult): ReplayResult {
  const { clients, timeline } = result
  const some = <Each>(all: readonly Each[]): readonly Each[] => all.slice(0, 30)
  const refusedBy = Object.entries(timeline.refusedBy).map(([rule, refused]) => [rule, some(refused)])
  return {
    ...result,
    clients: some(clients),
    timeline: {
      ...timeline,
      admitted: some(timeline.admitted),
      refused: some(timeline.refused),
      refusedBy: Object.fromEntries(refusedBy),
    },
  }
}
