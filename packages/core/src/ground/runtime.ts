/** True in Cloudflare Workers. There, a timer or a call ends with the request that has started it. */
export function isWorker(): boolean {
  // Node 20 has no navigator.
  const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } }
  return navigator?.userAgent === "Cloudflare-Workers"
}
