import ts from "typescript"
import { freePort } from "../servers/free-port.ts"
import { until } from "../servers/until.ts"
import type { Folder } from "./folder.ts"
import type { ModuleSystem, Project } from "./project.ts"

/** The responses that a client receives from a running app. */
export interface Met {
  /** Number of requests that were admitted before the first refusal. */
  readonly admitted: number
  /** The body of the first response. */
  readonly first: unknown
  readonly refused: { readonly status: number; readonly headers: Headers; readonly body: unknown }
  /** All output of the app. */
  readonly output: string
}

/** The port of the apps in the READMEs. */
const PORT = "3000"
const START_MS = 60_000

/** Returns the blocks of one language in the README of an installed package. */
export function blocksOf(project: Project, name: string, language: string): string[] {
  const readme = project.read(`node_modules/@sluice/${name}/README.md`)
  const blocks = readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))
  return [...blocks].map(([, text = ""]) => text)
}

/** Returns the first app in a package's README, unchanged or with `require`. */
export function quickStart(project: Project, name: string, type: ModuleSystem): string {
  const [text] = blocksOf(project, name, "ts")
  if (text === undefined) throw new Error(`The README of @sluice/${name} shows no app`)
  return type === "module" ? text : withRequire(text)
}

/** Returns an ES module as a program in CommonJS. The module's body becomes a function, because it may use `await`. */
function withRequire(text: string): string {
  const heads: string[] = []
  const body = text.replace(/^import (.+) from (".+")\n/gm, (_, bound: string, module: string) => {
    heads.push(`const ${bound.replaceAll(" as ", ": ")} = require(${module})`)
    return ""
  })
  return `${heads.join("\n")}\n\nasync function main() {\n${body.trim()}\n}\nmain()\n`
}

/** Returns an app as JavaScript, which has no types and no decorators. */
function withoutTypes(app: string): string {
  if (!isDecorated(app)) return app
  const compilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    experimentalDecorators: true,
  }
  return ts.transpileModule(app, { compilerOptions }).outputText
}

/** Whether an app uses decorators, which only TypeScript knows. */
export function isDecorated(app: string): boolean {
  return /^@\w+\(/m.test(app)
}

/**
 * Starts a README's app on a free port, sends requests until the app refuses one, and stops the app. Rejects if the
 * app refuses none of `most` requests.
 */
export async function meet(folder: Folder, app: string, most: number): Promise<Met> {
  if (app.split(PORT).length !== 2) throw new Error(`The app does not name port ${PORT} once:\n${app}`)
  const url = `http://127.0.0.1:${await freePort()}/`
  folder.write("app.js", withoutTypes(app.replace(PORT, new URL(url).port)))
  const running = folder.start("node", ["app.js"])
  let hasEnded = false
  void running.ended.then(() => {
    hasEnded = true
  })
  try {
    let response: Response | undefined
    await until(
      "the app answers",
      async () => {
        if (!hasEnded) response = await fetch(url)
        return true
      },
      START_MS,
    )
    let first: unknown
    for (let admitted = 0; admitted <= most; admitted++) {
      if (response === undefined) throw new Error(`The app has ended:\n${running.output()}`)
      const { ok, status, headers } = response
      const body: unknown = await response.json()
      if (!ok) return { admitted, first, refused: { status, headers, body }, output: running.output() }
      first ??= body
      response = await fetch(url)
    }
    throw new Error(`The app has admitted ${most} requests and refused none:\n${running.output()}`)
  } finally {
    await running.stop()
  }
}
