/** A text that cannot be the value of a setting. Neither part repeats the text, which may be a secret. */
export class NotAccepted extends Error {
  override readonly name = "NotAccepted"
  /** What would be accepted. */
  readonly accepted: string

  /** `is` says what is wrong: "is no address". */
  constructor(is: string, accepted: string) {
    super(is)
    this.accepted = accepted
  }
}
