import { type PacedFetch, paced } from "@sluice/client"
import { onTestFinished } from "vitest"
import { listen } from "../../contracts/adapter/listen.ts"
import { limiting } from "./limiting.ts"

/** The values for blocks about work that waits: a queue's worker, or a caller of another company's API. */
export const given = {
  createLimiter: limiting.createLimiter,
  limiter: limiting.limiter,
  signal: (): AbortSignal => new AbortController().signal,
  /** Returns the URL of a supplier that responds. */
  async url(): Promise<string> {
    const supplier = await listen((_request, response) => response.end("ok"))
    onTestFinished(() => supplier.close())
    return supplier.url
  },
  api: (): PacedFetch => paced(fetch),
  job: (): object => ({ remoteAddress: "192.0.2.7" }),
  request: (): object => ({ remoteAddress: "192.0.2.7" }),
  messages: (): string[] => Array.from({ length: 600 }, (_, number) => `message ${number}`),
  send:
    () =>
    async (_messages: readonly string[]): Promise<void> =>
      undefined,
  estimate: (): number => 60,
  prompt: (): string => "Say it in one word.",
  model: () => ({ complete: async (_prompt: string) => ({ usage: { total_tokens: 42 } }) }),
} as const
