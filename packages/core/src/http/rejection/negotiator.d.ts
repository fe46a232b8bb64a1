// The package has no types of its own, and this is the one module of it that is used.
declare module "negotiator/lib/mediaType.js" {
  /** The media ranges of `Accept` with a weight above 0; of `available`, when it is given, those that they cover. */
  export default function preferredMediaTypes(accept: string, available?: readonly string[]): string[]
}
