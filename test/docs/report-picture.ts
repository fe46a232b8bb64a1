import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { trafficLog } from "../fixtures/logs/generate.ts"
import { startChromium } from "../servers/chromium.ts"

// Draws docs/pictures/replay-report.png: the report of the replay in docs/rules/limits.md. The drawing needs the build
// of the packages.

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
const WIDTH = 1_000
const HEIGHT = 1_100

const RULES = `rules:
  - { name: per-ip, field: ip, limit: 60, window: 1 minute }
  - { name: login, field: ip, limit: 5, window: 1 minute, match: { methods: [POST], path: /login } }
`

const folder = mkdtempSync(join(tmpdir(), "sluice-picture-"))
const browser = await startChromium()
try {
  writeFileSync(join(folder, "access.log"), [...trafficLog({ lines: 60_000, clients: 5_000 })].join(""))
  writeFileSync(join(folder, "limits.yaml"), RULES)
  const argv = ["rules", "replay", "limits.yaml", "access.log", "--report", "replay.html"]
  execFileSync(process.execPath, [path("../../packages/cli/bin/sluice.js"), ...argv], { cwd: folder })
  const page = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT } })
  await page.goto(`file://${join(folder, "replay.html")}`)
  await page.waitForSelector("canvas")
  await page.screenshot({ path: path("../../docs/pictures/replay-report.png") })
} finally {
  await browser.close()
  rmSync(folder, { recursive: true })
}
