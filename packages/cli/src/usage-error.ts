import { SluiceError } from "@sluice/core"

/** The command line is invalid, or a file that it names cannot be used. The message explains what to do. */
export class UsageError extends SluiceError {
  readonly code = "SLUICE_USAGE"
}
