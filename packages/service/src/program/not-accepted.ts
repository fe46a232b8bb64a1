/** An error for a text that is not a valid value of a setting. It does not contain the text, which may be a secret. */
export class NotAccepted extends Error {
  override readonly name = "NotAccepted"
  /** The accepted values. */
  readonly accepted: string

  /** `is` describes the problem, and begins with a verb. */
  constructor(is: string, accepted: string) {
    super(is)
    this.accepted = accepted
  }
}
