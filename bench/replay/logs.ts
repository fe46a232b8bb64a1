import { once } from "node:events"
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { trafficLog } from "../../test/fixtures/logs/generate.ts"

/** Rule files and logs in a temporary folder. */
export interface LogFiles {
  /** Lines in the combined format, from about 160,000 clients. */
  readonly combined: string
  /** Lines of pino-http. */
  readonly pino: string
  readonly oneRule: string
  /** Three rules, of which two match a path. */
  readonly threeRules: string
  remove(): void
}

const PER_IP = "  - { name: per-ip, field: ip, limit: 60, window: 1 minute }\n"
const WITH_PATHS = `  - { name: login, field: ip, limit: 5, window: 1 minute, match: { path: /login, methods: [POST] } }
  - { name: api, field: ip, limit: 1000, window: 1 hour, match: { path: "/api/*rest" } }
`
/** Of 2 million lines, these clients make 160,000 different ones appear. */
const CLIENTS = 180_000
const DURATION_MS = 10_000_000

/** Generates a combined log and a pino log with these numbers of lines. */
export async function generateLogs(combined: number, pino: number): Promise<LogFiles> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"))
  const files = {
    combined: join(folder, "combined.log"),
    pino: join(folder, "pino.log"),
    oneRule: join(folder, "one.yaml"),
    threeRules: join(folder, "three.yaml"),
    remove: () => rmSync(folder, { recursive: true }),
  }
  writeFileSync(files.oneRule, `rules:\n${PER_IP}`)
  writeFileSync(files.threeRules, `rules:\n${PER_IP}${WITH_PATHS}`)
  await write(files.combined, combined, "combined")
  await write(files.pino, pino, "pino")
  return files
}

async function write(path: string, lines: number, format: "combined" | "pino"): Promise<void> {
  const file = createWriteStream(path)
  for (const chunk of trafficLog({ lines, format, clients: CLIENTS, durationMs: DURATION_MS })) {
    if (!file.write(chunk)) await once(file, "drain")
  }
  file.end()
  await once(file, "close")
}
