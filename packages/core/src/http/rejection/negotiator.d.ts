// The package comes without types. This is its only module that is used.
declare module "negotiator/lib/mediaType.js" {
  /**
   * Returns the media ranges of `Accept` with a weight above 0. With `available`, returns the types in
   * it that those ranges cover.
   */
  export default function preferredMediaTypes(accept: string, available?: readonly string[]): string[]
}
