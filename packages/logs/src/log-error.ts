import { SluiceError } from "@sluice/core"

/**
 * A log cannot be read, or an option about logs is not valid. The message explains what to do. It names options as the
 * command `sluice` does: `--map` is the option `map`.
 */
export class LogError extends SluiceError {
  readonly code = "SLUICE_LOG"
}
