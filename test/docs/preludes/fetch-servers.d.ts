// The parts of servers that docs/start/fetch.md uses and that are not installed here. test/packages/fetch.check.ts runs
// the real ones.

interface PeerOfBun {
  requestIP(request: Request): { readonly address: string } | null
}

declare const Bun: {
  serve(options: {
    readonly port: number
    fetch(request: Request, server: PeerOfBun): Response | Promise<Response>
  }): unknown
}

declare const Deno: {
  serve(
    options: { readonly port: number },
    handler: (request: Request, info: { readonly remoteAddr: object }) => Response | Promise<Response>,
  ): unknown
}

declare module "@elysiajs/node" {
  /** Returns the adapter of Elysia for Node. */
  export const node: () => import("elysia/adapter").ElysiaAdapter
}
