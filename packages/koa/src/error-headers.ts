import type { HeaderLine } from "@sluice/core"
import type { Context } from "koa"

/** Of a context: what an error's answer has to tell, too. */
const TOLD = Symbol("sluice.told")
type Telling = Context & { [TOLD]?: readonly HeaderLine[] }

/**
 * Has these headers, which are set already, stay on the response if there is an error. Koa answers one with the error's own
 * headers and takes all others off. The error may be anything, frozen or shared by all requests, and stays as it is.
 */
export function keepOnError(ctx: Telling, headers: readonly HeaderLine[]): void {
  const before = ctx[TOLD]
  ctx[TOLD] = before === undefined ? headers : [...before, ...headers]
  const { onerror } = ctx
  if (onerror === tellWithError) return
  // One function for all: with one for each request V8 kept what hundreds of them had until a full collection.
  if (!Object.hasOwn(ctx, "onerror")) ctx.onerror = tellWithError
  // The app has its own, which may call ours.
  else ctx.onerror = (error) => withHeaders(ctx, error, onerror)
}

function tellWithError(this: Telling, error: Error | null | undefined): void {
  withHeaders(this, error, Object.getPrototypeOf(this).onerror)
}

function withHeaders(ctx: Telling, error: Error | null | undefined, onerror: Context["onerror"]): void {
  // Koa calls it at the end of every response, and looks whether there is one.
  if (error === null || error === undefined) return
  const { res } = ctx
  const { removeHeader } = res
  const told = new Set((ctx[TOLD] as readonly HeaderLine[]).map(([name]) => name.toLowerCase()))
  // What sets the error's headers is no place for it: Koa calls that from 3.3.0 on only where the error has some.
  res.removeHeader = (name) => {
    if (!told.has(name.toLowerCase())) removeHeader.call(res, name)
  }
  try {
    onerror.call(ctx, error as Error)
  } finally {
    res.removeHeader = removeHeader
  }
}
