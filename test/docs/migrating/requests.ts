/** A request that says something of itself in a header. */
export const as = (
  name: string,
  value: string,
  path = "/",
): { readonly path: string; readonly headers: Record<string, string> } => ({
  path,
  headers: { [name]: value },
})

/** Two requests, and what is answered to them where the limit is one. */
export const twice: readonly string[] = ["/", "/"]
export const thenRefused: readonly number[] = [200, 429]

export const times = <T>(count: number, value: T): T[] => new Array<T>(count).fill(value)

/** How many were admitted. */
export const admitted = (statuses: readonly number[]): number =>
  statuses.filter((status) => status === 200).length

/** A logger that keeps it all to itself. */
export const quiet = { warn: (): void => undefined, error: (): void => undefined }
