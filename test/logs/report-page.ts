import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import axe from "axe-core"
import type { BrowserContextOptions, Page } from "playwright-core"
import { startChromium } from "../servers/chromium.ts"

/** A page that is open in Chromium. */
export interface OpenPage {
  readonly page: Page
  /** The URLs of all requests of the page, including its own. */
  readonly requests: readonly string[]
  /** Messages in the console, uncaught errors, and reports of the Content-Security-Policy. */
  readonly complaints: readonly string[]
}

/** Starts Chromium. Rejects with a one-line message if Chromium is missing. */
export async function startBrowser() {
  const browser = await startChromium()
  const folder = mkdtempSync(join(tmpdir(), "sluice-report-"))
  /** Opens a page at a URL. */
  const visit = async (url: string, options: BrowserContextOptions = {}): Promise<OpenPage> => {
    const context = await browser.newContext({ viewport: { width: 1_280, height: 900 }, ...options })
    const page = await context.newPage()
    const requests: string[] = []
    const complaints: string[] = []
    page.on("request", (request) => requests.push(request.url()))
    page.on("console", (message) => complaints.push(message.text()))
    page.on("pageerror", (error) => complaints.push(String(error)))
    await page.exposeFunction("reportViolation", (directive: string) => complaints.push(`CSP: ${directive}`))
    await page.addInitScript(
      'addEventListener("securitypolicyviolation", (event) => reportViolation(event.effectiveDirective))',
    )
    await page.goto(url)
    if (options.javaScriptEnabled !== false) await nextFrame(page)
    return { page, requests, complaints }
  }
  return {
    visit,
    /** Opens a report from a file. */
    open(text: string, options?: BrowserContextOptions): Promise<OpenPage> {
      const file = join(folder, "report.html")
      writeFileSync(file, text)
      return visit(pathToFileURL(file).href, options)
    },
    async stop(): Promise<void> {
      await browser.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Waits until the page has been drawn again. Plots are drawn in the first frame after their data or size has changed.
 */
export async function nextFrame(page: Page): Promise<void> {
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
}

/** Opens all tables that are initially closed. */
export async function openTables(page: Page): Promise<void> {
  await page.evaluate('for (const each of document.querySelectorAll("details")) each.open = true')
}

/**
 * Returns the findings of axe-core in a page in light mode, and its findings about colors in dark mode. Needs
 * `bypassCSP`.
 */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  await openTables(page)
  await page.addScriptTag({ content: axe.source })
  const find = async (rules: string): Promise<string[]> =>
    await page.evaluate<string[]>(`axe.run({ resultTypes: ["violations"], ${rules} }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html.slice(0, 200))))`)
  await page.emulateMedia({ colorScheme: "light" })
  const inLight = await find("")
  await page.emulateMedia({ colorScheme: "dark" })
  return [...inLight, ...(await find('runOnly: ["color-contrast"]'))]
}

/** The measured contents of a canvas. */
export interface Drawn {
  readonly plot: string
  /** Number of different colors. */
  readonly colors: number
  /** Number of pixels in the color of the limit line. */
  readonly limitPixels: number
  /** The horizontal position of most of these pixels, as a fraction of the plot's width. */
  readonly limitAt: number
}

/** Reads the pixels of every plot of a page. */
export async function drawnPlots(page: Page): Promise<Drawn[]> {
  return await page.evaluate<Drawn[]>(`(() => {
    const limit = getComputedStyle(document.documentElement).getPropertyValue("--limit").trim()
    const wanted = [1, 3, 5].map((i) => parseInt(limit.slice(i, i + 2), 16))
    return [...document.querySelectorAll("[data-plot]")].map((plot) => {
      const canvas = plot.querySelector("canvas")
      const { width, height } = canvas
      const { data } = canvas.getContext("2d").getImageData(0, 0, width, height)
      const colors = new Set()
      const columns = new Array(width).fill(0)
      for (let i = 0; i < data.length; i += 4) {
        colors.add(data.slice(i, i + 4).join())
        if (wanted.every((value, channel) => data[i + channel] === value) && data[i + 3] === 255)
          columns[(i / 4) % width]++
      }
      const over = plot.querySelector(".u-over").getBoundingClientRect()
      const left = canvas.getBoundingClientRect().left
      const at = (columns.indexOf(Math.max(...columns)) + 1) / devicePixelRatio + left
      return {
        plot: plot.dataset.plot,
        colors: colors.size,
        limitPixels: columns.reduce((sum, count) => sum + count, 0),
        limitAt: (at - over.left) / over.width,
      }
    })
  })()`)
}
