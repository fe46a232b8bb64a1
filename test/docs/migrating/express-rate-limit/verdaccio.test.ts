import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import type { RequestListener, Server } from "node:http"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { rateLimit as replaced } from "../../../../examples/src/verdaccio/rate-limit.ts"
import type { Response } from "../../../contracts/adapter/ask.ts"
import type { Block } from "../../blocks.ts"
import { ROOT } from "../../documents.ts"
import { runTypeScript } from "../../typescript/run.ts"
import { answers, commonClock, type Step } from "../pairs.ts"
import { edited, expectLinesTold, linesChanged } from "../readme-examples.ts"

// Replaces express-rate-limit in Verdaccio, a registry for packages, at run time.

const EXAMPLE = "examples/src/verdaccio/rate-limit.ts"
const text = readFileSync(ROOT + EXAMPLE, "utf8")

type RateLimit = (options: object) => unknown
const requireHere = createRequire(import.meta.url)
const requireThere = createRequire(requireHere.resolve("verdaccio"))
const { runServer } = requireHere("verdaccio") as { runServer(config: object): Promise<Server> }
/** The module from which all files of Verdaccio take `rateLimit`. */
const middleware = requireThere("@verdaccio/middleware") as { rateLimit: RateLimit }

/** Returns an app of Verdaccio that creates its limiters with this function. The app trusts a proxy on this machine. */
async function verdaccioWith(rateLimit: RateLimit): Promise<RequestListener> {
  const storage = mkdtempSync(join(tmpdir(), "sluice-verdaccio-"))
  const own = middleware.rateLimit
  onTestFinished(() => {
    middleware.rateLimit = own
    rmSync(storage, { recursive: true })
  })
  middleware.rateLimit = rateLimit
  const server = await runServer({
    configPath: join(storage, "config.yaml"),
    storage,
    auth: { htpasswd: { file: join(storage, "htpasswd") } },
    packages: { "**": { access: "$all" } },
    log: { type: "stdout", level: "fatal" },
    server: { trustProxy: "loopback" },
    userRateLimit: { max: 3 },
    web: { rateLimit: { max: 5, message: "slow down" } },
  })
  return server.listeners("request")[0] as RequestListener
}

/** Returns the function that the example exports without the lines that match the pattern. */
async function without(lines: RegExp): Promise<RateLimit> {
  const block: Block = { document: EXAMPLE, line: 1, language: "ts", text: edited(text, [[lines, ""]]) }
  const { rateLimit } = await runTypeScript(block)
  return rateLimit as RateLimit
}

const post = (method: string, path: string, body: object, client = "192.0.2.1") => ({
  method,
  path,
  headers: { "content-type": "application/json", "x-forwarded-for": client },
  body: JSON.stringify(body),
})
const signUp = (client?: string) =>
  post("PUT", "/-/user/org.couchdb.user:ann", { name: "ann", password: "secret" }, client)
const signIn = post("POST", "/-/verdaccio/sec/login", { username: "ann", password: "wrong" })
const packages = { path: "/-/verdaccio/data/packages", headers: { "x-forwarded-for": "192.0.2.1" } }

const refused = "Too many requests, please try again later."
/** Requests, each with the status, the limit and the remaining units. A refusal also has its body. */
const TOLD: readonly (readonly [Step, readonly unknown[]])[] = [
  [signUp(), [201, "3", "2"]],
  [signUp(), [409, "3", "1"]],
  [signUp(), [409, "3", "0"]],
  [signUp(), [429, "3", "0", refused]],
  [signUp("192.0.2.2"), [409, "3", "2"]],
  // Both limits count a login, and the headers are those of the stricter limit.
  [signIn, [401, "3", "2"]],
  [signIn, [401, "3", "1"]],
  [signIn, [401, "3", "0"]],
  [signIn, [429, "3", "0", refused]],
  [packages, [200, "5", "0"]],
  [packages, [429, "5", "0", "slow down"]],
  ["/-/ping", [200, undefined, undefined]],
]
const steps = TOLD.map(([step]) => step)

const toldBy = ({ status, headers, body }: Response): unknown[] => [
  ...[status, headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]],
  ...(status === 429 ? [body] : []),
]

it("Verdaccio limits sign-ups, logins and lists of packages in the same way with express-rate-limit and Sluice", async () => {
  const warnings: string[] = []
  const listen = ({ name, message }: Error): void => void warnings.push(`${name}: ${message}`)
  process.on("warning", listen)
  onTestFinished(() => void process.off("warning", listen))
  for (const rateLimit of [middleware.rateLimit, replaced as RateLimit]) {
    const told = await answers(await verdaccioWith(rateLimit), commonClock(), steps)
    expect(told.map(toldBy)).toEqual(TOLD.map(([, expected]) => expected))
  }
  expect(warnings).toEqual([])
})

it("Verdaccio's web login needs the line that makes the limiter call the next handler later", async () => {
  const immediate = await without(/ +skip: .*\n/)
  const [told] = await answers(await verdaccioWith(immediate), commonClock(), [signIn])
  expect(told?.status).toBe(404)
})

it("the guide states how many lines of Verdaccio's own source change", () => {
  const build = dirname(requireThere.resolve("@verdaccio/middleware"))
  const map = readFileSync(join(build, "middlewares/rate-limit.js.map"), "utf8")
  const [before = ""]: string[] = JSON.parse(map).sourcesContent
  expect(before).toContain("from 'express-rate-limit'")
  const changed = linesChanged(before.replaceAll(/;$/gm, ""), text)
  expectLinesTold("express-rate-limit", `, [in Verdaccio](../../${EXAMPLE})`, changed)
})
