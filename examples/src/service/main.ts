import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

// Starts the decision service and prints commands to try. Without a table or other rules, the service uses the rules
// next to this file. Flags and variables are those of the service: `pnpm service --help`.

const argv = process.argv.slice(2)
const isGiven = (flag: string, variable: string): boolean =>
  (process.env[variable] ?? "") !== "" || argv.some((arg) => arg === flag || arg.startsWith(`${flag}=`))
const hasTable = isGiven("--table", "SLUICE_TABLE")
const hasRules = hasTable || isGiven("--rules", "SLUICE_RULES")
const rules = hasRules ? [] : ["--rules", fileURLToPath(new URL("rules.yaml", import.meta.url))]

const program = fileURLToPath(new URL("../../../packages/service/bin/sluice-service.js", import.meta.url))
const child = spawn(process.execPath, [program, ...rules, ...argv], { stdio: ["ignore", "pipe", "inherit"] })

let url = ""
createInterface(child.stdout).on("line", (line) => {
  console.log(line)
  const { msg, ports, settings } = readLine(line)
  if (msg === "sluice-service is listening.") {
    const host = settings?.http.replace(/:\d+$/, "").replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")
    url = `${settings?.tls === "none" ? "http" : "https"}://${host}:${ports?.http}`
  }
  if (msg === "The service is ready.") printWhatToTry()
})

/** Parses a log line. Returns an empty object for other output, such as help. */
function readLine(line: string): {
  readonly msg?: string
  readonly ports?: { readonly http: number }
  readonly settings?: { readonly http: string; readonly tls: unknown }
} {
  return line.startsWith("{") ? JSON.parse(line) : {}
}

function printWhatToTry(): void {
  const post = (method: string, body: object): string =>
    `  curl ${url}/sluice.v1.RateLimiter/${method} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
  const ofUser = { serviceId: 1, request: JSON.stringify({ user_id: 7 }) }
  const rule = { field: "user_id", rate: { requestsPerUnit: 5, unit: "minute" } }
  console.log("\nTry, in another terminal, as often as you like:\n")
  if (hasTable) console.log(post("RegisterService", { serviceId: 1, rule }))
  console.log(post("ShouldForwardRequest", ofUser))
  if (!hasTable) console.log(post("ShouldForwardRequest", { serviceId: 2 }))
  console.log("")
}

// Ignore Ctrl-C here, because a terminal also sends it to the service, which then ends by itself.
process.on("SIGINT", () => undefined)
process.on("SIGTERM", () => child.kill("SIGTERM"))
child.once("close", (code) => process.exit(code ?? 1))
