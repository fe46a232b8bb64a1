import { SluiceError } from "@sluice/core"

/**
 * Thrown when a log cannot be read, or when an option about logs is invalid. The message explains what to do. The
 * message names options as the command `sluice` does. For example, `--map` is the option `map`.
 */
export class LogError extends SluiceError {
  readonly code = "SLUICE_LOG"
}
