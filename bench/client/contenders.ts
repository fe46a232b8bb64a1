/** Calls an API once. Resolves with the status that the caller gets, or rejects if the client gives up. */
export type Send = (url: string) => Promise<number>

/** The clients by name, each set up as its documentation says. `limit` calls in `windowMs` are what the server allows. */
export const CLIENTS: Readonly<Record<string, (limit: number, windowMs: number) => Promise<Send>>> = {
  async paced() {
    const { paced } = await import("@sluice/client")
    const api = paced(fetch, { maxWaitMs: 120_000 })
    return async (url) => {
      const response = await api(url)
      await response.arrayBuffer()
      return response.status
    }
  },
}
