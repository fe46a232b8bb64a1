// The package has no types of its own; this is what is used.
declare module "parseurl" {
  /** Throws for some hosts and ports that are none. */
  export default function parseUrl(request: {
    readonly url: string
  }): { readonly pathname: string | null } | undefined
}
