import { DiagLogLevel, diag } from "@opentelemetry/api"

/**
 * Logs the diagnostics of OpenTelemetry, for example about an invalid environment variable or about metrics that
 * could not be sent.
 */
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

/**
 * Returns the message of a diagnostic. OpenTelemetry reports a caught error as JSON with all properties of the error.
 */
function messageOf(said: string): string {
  try {
    return (JSON.parse(said) as { readonly message?: string }).message ?? said
  } catch {
    return said
  }
}
