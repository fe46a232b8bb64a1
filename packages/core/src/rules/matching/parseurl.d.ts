// The package does not include types. These cover what Sluice uses.
declare module "parseurl" {
  /** Throws for some invalid hosts and ports. */
  export default function parseUrl(request: {
    readonly url: string
  }): { readonly pathname: string | null } | undefined
}
