import { freePort } from "../servers/free-port.ts"
import { until } from "../servers/until.ts"
import type { Folder } from "./folder.ts"
import type { ModuleSystem, Project } from "./project.ts"

/** What a client was told by an app that runs. */
export interface Met {
  /** How many requests were admitted before the first that was not. */
  readonly admitted: number
  /** The body of the first answer. */
  readonly first: unknown
  readonly refused: { readonly status: number; readonly headers: Headers; readonly body: unknown }
  /** All that the app wrote. */
  readonly output: string
}

/** The port of the apps in the READMEs. */
const PORT = "3000"
const START_MS = 60_000

/** The blocks of one language in the README that came with a package. */
export function blocksOf(project: Project, name: string, language: string): string[] {
  const readme = project.read(`node_modules/@sluice/${name}/README.md`)
  const blocks = readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))
  return [...blocks].map(([, text = ""]) => text)
}

/** The first app in a package's README that is written for this module system. */
export function quickStart(project: Project, name: string, type: ModuleSystem): string {
  const [text] = blocksOf(project, name, type === "module" ? "ts" : "js")
  if (text === undefined) throw new Error(`The README of @sluice/${name} shows nothing for "type": "${type}"`)
  return text
}

/** Starts an app of a README, on a free port, asks until it refuses, and stops it. Rejects after `most` in vain. */
export async function meet(folder: Folder, app: string, most: number): Promise<Met> {
  if (app.split(PORT).length !== 2) throw new Error(`The app does not name port ${PORT} once:\n${app}`)
  const url = `http://127.0.0.1:${await freePort()}/`
  folder.write("app.js", app.replace(PORT, new URL(url).port))
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
