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

declare module "@sveltejs/kit" {
  export interface RequestEvent {
    readonly request: Request
    readonly url: URL
    readonly isSubRequest: boolean
    readonly params: Readonly<Record<string, string>>
    readonly route: { readonly id: string | null }
    getClientAddress(): string
  }
  export type Handle = (input: {
    readonly event: RequestEvent
    resolve(event: RequestEvent): Promise<Response>
  }) => Response | Promise<Response>
}
