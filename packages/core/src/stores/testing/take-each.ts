import type { Check, Store, StoreResult } from "../store.ts"

/** Takes several requests at the same time. Returns their results in order. */
export async function takeEach(
  store: Pick<Store, "take">,
  requests: readonly (readonly Check[])[],
): Promise<readonly StoreResult[]> {
  return Promise.all(requests.map(async (checks) => store.take(checks)))
}
