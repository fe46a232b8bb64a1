// The package has no types of its own; these are the members in use.
declare module "negotiator" {
  export default class Negotiator {
    constructor(request: { readonly headers: Readonly<Record<string, string | undefined>> })
    /** The media ranges of `Accept` with a weight above 0; of `available`, when it is given, those that they cover. */
    mediaTypes(available?: readonly string[]): string[]
  }
}
