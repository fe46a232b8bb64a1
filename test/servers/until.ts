/**
 * Asks `holds` every 10 ms until it yields true. A throw counts as "not yet", since a server that starts refuses
 * connections first. Rejects after `timeoutMs`, naming `what` was waited for and the last error. That is no measure of speed: it only
 * ends a test that would wait for ever, sooner than the runner would and with a reason.
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
      throw new Error(`waited ${timeoutMs} ms in vain until ${what}`, { cause: reason })
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
