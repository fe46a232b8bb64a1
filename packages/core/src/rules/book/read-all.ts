import { Slices } from "../slices.ts"
import type { FoundRules, RuleSource } from "../source.ts"
import { loadError } from "./rule-snapshot.ts"
import { ignore, inTime, type Timing } from "./timing.ts"

/** The function by which a source lists the rules of every service. */
export type ListAll = NonNullable<RuleSource["loadAll"]>

/**
 * Calls `take` with what is stored for each service, giving requests their turn in between. Rejects when a page does
 * not come, or not within ten seconds, and when `loading` is aborted; what was taken by then stays taken. `fresh`: what
 * is stored now.
 */
export async function readAll(
  listAll: ListAll,
  loading: AbortController,
  timing: Timing,
  take: (found: FoundRules) => void | Promise<void>,
  fresh = false,
): Promise<void> {
  const slices = new Slices()
  let pages: AsyncIterator<readonly FoundRules[]> | undefined
  const nextPage = async (): Promise<IteratorResult<readonly FoundRules[]>> => {
    pages ??= listAll({ signal: loading.signal, fresh })[Symbol.asyncIterator]()
    return pages.next()
  }
  try {
    for (;;) {
      const { done, value } = await inTime(nextPage(), loading, timing, (error) =>
        loadError(undefined, error),
      )
      if (done === true) return
      slices.begin()
      for (const found of value) {
        if (slices.isUsedUp) await slices.pause()
        loading.signal.throwIfAborted()
        const taking = take(found)
        if (taking === undefined) continue
        await taking
        slices.begin()
      }
    }
  } catch (error) {
    // Nobody waits for it: a source that hangs would not answer this either.
    const end = async () => pages?.return?.()
    end().catch(ignore)
    throw error
  }
}
