import type { IncomingMessage } from "node:http"

/** Returns a request with one header. */
export const as = (
  name: string,
  value: string,
  path = "/",
): { readonly path: string; readonly headers: Record<string, string> } => ({
  path,
  headers: { [name]: value },
})

/** Returns a request that comes from an address, for apps with `pretendAddress`. */
export const fromAddress = (address: string): ReturnType<typeof as> => as("X-From", address)

/** Before the app receives a request, sets the connection's address to the address from `fromAddress`. */
export function pretendAddress({ socket, headers }: IncomingMessage): void {
  Object.defineProperty(socket, "remoteAddress", { value: headers["x-from"], configurable: true })
}

/** Two requests, and the expected statuses under a limit of one. */
export const twice: readonly string[] = ["/", "/"]
export const thenRefused: readonly number[] = [200, 429]

export const times = <T>(count: number, value: T): T[] => new Array<T>(count).fill(value)

/** Returns the number of admitted requests. */
export const admitted = (statuses: readonly number[]): number =>
  statuses.filter((status) => status === 200).length

/** A logger without output. */
export const quiet = { warn: (): void => undefined, error: (): void => undefined }
