import { onTestFinished } from "vitest"
import { ask, parseAsks } from "./asking.ts"
import type { Block } from "./blocks.ts"
import type { Prelude } from "./preludes/prelude.ts"
import { outlineOf } from "./typescript/outline.ts"

const PRELUDES: Readonly<Record<string, () => Promise<Prelude>>> = {
  express: () => import("./preludes/express.ts"),
  koa: () => import("./preludes/koa.ts"),
  fastify: () => import("./preludes/fastify.ts"),
  hono: () => import("./preludes/hono.ts"),
  dynamodb: () => import("./preludes/dynamodb.ts"),
  work: () => import("./preludes/work.ts"),
}

/** The frameworks, by the modules that a block imports. The default is Express. */
const FRAMEWORKS = {
  koa: /^(@sluice\/)?koa|^@koa\//,
  fastify: /^(@sluice\/)?fastify|^@fastify\//,
  hono: /^(@sluice\/fetch\/)?hono/,
}

/**
 * Returns the prelude that a block's comment names, or else the prelude of the block's framework.
 * @throws Error when the named prelude does not exist
 */
export function preludeOf({ run, text }: Block): string {
  const named = /^\w+/.exec(run ?? "")?.[0]
  if (named !== undefined) {
    if (!(named in PRELUDES))
      throw new Error(`there is no prelude "${named}": ${Object.keys(PRELUDES).join(", ")}`)
    return named
  }
  const { imports } = outlineOf(text)
  const [framework = "express"] =
    Object.entries(FRAMEWORKS).find(([, pattern]) => imports.some((name) => pattern.test(name))) ?? []
  return framework
}

/** Returns the names that a prelude provides to a block. */
export async function namesOf(prelude: string): Promise<string[]> {
  return Object.keys((await loadPrelude(prelude)).given)
}

/** Creates the values that this block uses from its prelude, for the current test. */
export async function givenTo(block: Block): Promise<Record<string, unknown>> {
  const { given } = await loadPrelude(preludeOf(block))
  const { free } = outlineOf(block.text)
  const wanted = Object.entries(given).filter(([name]) => free.has(name))
  return Object.fromEntries(await Promise.all(wanted.map(async ([name, make]) => [name, await make()])))
}

/**
 * Sends the requests in the block's comment to the block's app. Without a comment, sends one request to each route.
 * Returns the wrong responses.
 */
export async function askApp(block: Block, app: unknown): Promise<string[]> {
  const { serve } = await loadPrelude(preludeOf(block))
  if (app === undefined || serve === undefined) return []
  const served = await serve(app as never)
  onTestFinished(() => served.close())
  return await ask(served.url, parseAsks(block))
}

function loadPrelude(name: string): Promise<Prelude> {
  const load = PRELUDES[name]
  if (load === undefined) throw new Error(`there is no prelude "${name}"`)
  return load()
}
