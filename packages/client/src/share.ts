import type { Gate } from "./gate.ts"
import type { PacedOptions } from "./options.ts"
import { PaceError } from "./pace-error.ts"
import { type PacedCall, throwIfAborted, watch } from "./watch.ts"

/**
 * Waits until `share.acquire` allows a call of this key for all processes together. Waits no longer than the call may
 * wait, even if `acquire` ignores its signal. Rejects with the reason of a signal, or with {@link PaceError}.
 */
export function acquired(
  share: NonNullable<PacedOptions["share"]>,
  gate: Gate,
  call: PacedCall,
): Promise<unknown> {
  throwIfAborted(call)
  const { key } = gate
  const ending = new AbortController()
  return new Promise((resolve, reject) => {
    const stop = watch(
      call,
      () => gate.tooLong(call),
      (reason) => {
        ending.abort(reason)
        reject(reason)
      },
    )
    const acquire = async (): Promise<unknown> => share.acquire(key, ending.signal)
    acquire()
      .then(resolve, (cause) => {
        reject(
          new PaceError("SLUICE_PACE_SHARE_FAILED", `share.acquire failed for ${key}.`, {
            key,
            cause,
          }),
        )
      })
      .finally(stop)
  })
}
