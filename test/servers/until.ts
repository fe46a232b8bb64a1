/**
 * Calls `holds` every 10 ms until it returns true. An error counts as false, because a starting server refuses
 * connections at first. Rejects after `timeoutMs` with `what` and the last error.
 *
 * The timeout does not test speed. The timeout only ends a test that would wait forever, earlier than the test runner
 * and with a reason.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    let reason: unknown
    try {
      if (await holds()) return
    } catch (error) {
      reason = error
    }
    if (performance.now() > deadline) {
      throw new Error(`waited ${timeoutMs} ms without success until ${what}`, { cause: reason })
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
