import type { HeaderLine } from "@sluice/core/adapters"
import type { Context } from "koa"

/** The key under which a context stores the headers that an error response must contain. */
const TOLD = Symbol("sluice.told")
type Telling = Context & { [TOLD]?: readonly HeaderLine[] }

/**
 * Keeps these headers on the response if there is an error. The headers are already set, but Koa's error response
 * removes all headers except the error's own. The error is not modified, because it may be frozen or shared by
 * requests.
 */
export function keepOnError(ctx: Telling, headers: readonly HeaderLine[]): void {
  const before = ctx[TOLD]
  ctx[TOLD] = before === undefined ? headers : [...before, ...headers]
  const { onerror } = ctx
  if (onerror === tellWithError) return
  // All requests share this function. With one closure per request, V8 retained the data of hundreds of requests
  // until a full garbage collection.
  if (!Object.hasOwn(ctx, "onerror")) ctx.onerror = tellWithError
  // The app has set its own `onerror`, which may call this function.
  else ctx.onerror = (error) => withHeaders(ctx, error, onerror)
}

function tellWithError(this: Telling, error: Error | null | undefined): void {
  withHeaders(this, error, Object.getPrototypeOf(this).onerror)
}

function withHeaders(ctx: Telling, error: Error | null | undefined, onerror: Context["onerror"]): void {
  // Koa calls `onerror` at the end of every response, even without an error.
  if (error === null || error === undefined) return
  const { res } = ctx
  const { removeHeader } = res
  const told = new Set((ctx[TOLD] as readonly HeaderLine[]).map(([name]) => name.toLowerCase()))
  // Wrap this function, because since 3.3.0, Koa only calls the function that sets an error's headers if the error
  // has headers.
  res.removeHeader = (name) => {
    if (!told.has(name.toLowerCase())) removeHeader.call(res, name)
  }
  try {
    onerror.call(ctx, error as Error)
  } finally {
    res.removeHeader = removeHeader
  }
}
