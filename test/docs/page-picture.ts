import { writeFileSync } from "node:fs"
import { serveBusyShop } from "../dashboard/busy-shop.ts"
import { startChromium } from "../servers/chromium.ts"

// Draws docs/pictures/who-is-limited.webp: the page of the dashboard, the left part in light mode and the right part in
// dark mode. The drawing needs the build of the packages.

const viewport = { width: 1_000, height: 608 }
const shop = await serveBusyShop()
const browser = await startChromium()
try {
  const [light, dark] = await Promise.all(
    (["light", "dark"] as const).map(async (colorScheme) => {
      const page = await browser.newPage({ viewport, colorScheme })
      await page.goto(shop.url)
      await page.waitForSelector("#view td")
      return (await page.screenshot()).toString("base64")
    }),
  )
  const page = await browser.newPage()
  const url: string = await page.evaluate(`(async () => {
    const load = async (data) => createImageBitmap(await (await fetch("data:image/png;base64," + data)).blob())
    const canvas = Object.assign(document.createElement("canvas"), ${JSON.stringify(viewport)})
    const context = canvas.getContext("2d")
    context.drawImage(await load("${light}"), 0, 0)
    const { width, height } = canvas
    context.clip(new Path2D(\`M\${0.62 * width} 0H\${width}V\${height}H\${0.47 * width}Z\`))
    context.drawImage(await load("${dark}"), 0, 0)
    return canvas.toDataURL("image/webp", 1) // lossless, and much smaller than PNG
  })()`)
  const file = new URL("../../docs/pictures/who-is-limited.webp", import.meta.url)
  writeFileSync(file, Buffer.from(url.slice(url.indexOf(",") + 1), "base64"))
} finally {
  await browser.close()
  await shop.stop()
}
