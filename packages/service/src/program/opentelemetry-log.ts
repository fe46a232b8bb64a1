import { DiagLogLevel, diag } from "@opentelemetry/api"

/** Has the log say what OpenTelemetry says of itself: that a variable of its own is wrong, or metrics could not be sent. */
export function logOpenTelemetry(log: { warn(message: string): void }): void {
  const warn = (said: string, ...more: readonly unknown[]): void => {
    const errors = more.filter((each) => each instanceof Error)
    log.warn(["OpenTelemetry", messageOf(said), ...errors.map(({ message }) => message)].join(": "))
  }
  const silent = (): void => undefined
  diag.setLogger(
    { error: warn, warn, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
}

/** Of an error that it has caught it says everything, as JSON. */
function messageOf(said: string): string {
  try {
    return (JSON.parse(said) as { readonly message?: string }).message ?? said
  } catch {
    return said
  }
}
