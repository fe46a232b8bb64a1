/** Addresses that a release had and that have moved, each with its new address: `"/old/page": "/new/page"`. */
export const MOVED: Readonly<Record<string, string>> = {}

/** Returns a page that leads to another address, for hosts that cannot redirect. */
export function redirectTo(address: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Moved</title>
<meta http-equiv="refresh" content="0; url=${address}">
<link rel="canonical" href="${address}">
<p>This page is now at <a href="${address}">${address}</a>.</p>
</html>
`
}
