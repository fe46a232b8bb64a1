import type { RequestListener } from "node:http"
import { onTestFinished } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"

/** Serves an app until the current test ends. Resolves to the app's URL, which has no path. */
export async function listening(listener: RequestListener): Promise<string> {
  const { url, close } = await listen(listener)
  onTestFinished(close)
  return url
}
