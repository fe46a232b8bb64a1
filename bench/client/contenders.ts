/** A client library that is ready to call an API. */
export interface Client {
  /** Calls the API. Resolves to the status that the caller receives. Rejects if the client library gives up. */
  send(url: string): Promise<number>
  close(): void
}

/** The limit of the server, which admits at most `limit` calls in any `windowMs`. */
export interface Allowed {
  readonly limit: number
  readonly windowMs: number
}

/** The client that {@link CLIENTS} compares the others with. */
export const PACED = "paced"
/** The name of the client that keeps retrying. The client shows how fast the server admits calls. */
export const PERSISTENT = "axios-retry, 20 retries"

/** Loads the package of a client, and returns a function that creates the client. */
type Load = () => Promise<(allowed: Allowed) => Client>

const RETRIES = 20

/**
 * The clients by name. Each client is set up as its documentation recommends. A client uses its defaults unless its
 * name states other settings.
 */
export const CLIENTS: Readonly<Record<string, Load>> = {
  async [PACED]() {
    const { paced } = await import("@sluice/client")
    return () => {
      const api = paced(fetch)
      return { send: (url) => statusOf(api(url)), close: () => api.close() }
    }
  },

  [PERSISTENT]: axiosRetrying(RETRIES),

  "axios-retry, 3 retries": axiosRetrying(3),

  async "undici RetryAgent"() {
    const { Agent, RetryAgent, request } = await import("undici")
    return () => {
      const dispatcher = new RetryAgent(new Agent())
      return {
        async send(url) {
          const { statusCode, body } = await request(url, { dispatcher })
          await body.dump()
          return statusCode
        },
        close: () => void dispatcher.close(),
      }
    }
  },

  async Bottleneck() {
    const { default: Bottleneck } = await import("bottleneck")
    return ({ limit, windowMs }) => {
      const refresh = { reservoirRefreshAmount: limit, reservoirRefreshInterval: windowMs }
      const limiter = new Bottleneck({ reservoir: limit, ...refresh })
      limiter.on("failed", ({ retryAfterMs }: Refused, { retryCount }) =>
        retryCount < RETRIES ? retryAfterMs : undefined,
      )
      return {
        send: (url) =>
          limiter.schedule(async () => {
            const response = await fetch(url)
            await response.arrayBuffer()
            if (response.status === 429) throw new Refused(response)
            return response.status
          }),
        close: () => void limiter.disconnect(),
      }
    }
  },
}

/** Returns a client of axios that waits for `Retry-After` before each retry. */
function axiosRetrying(retries: number): Load {
  return async () => {
    const { default: axios } = await import("axios")
    const { default: axiosRetry } = await import("axios-retry")
    return () => {
      const api = axios.create()
      axiosRetry(api, { retries })
      return { send: async (url) => (await api.get(url)).status, close: () => undefined }
    }
  }
}

async function statusOf(responding: Promise<Response>): Promise<number> {
  const response = await responding
  await response.arrayBuffer()
  return response.status
}

/** A refusal, with the wait in its `Retry-After`. */
class Refused extends Error {
  readonly retryAfterMs: number

  constructor({ status, headers }: Response) {
    super(`status ${status}`)
    this.retryAfterMs = Number(headers.get("retry-after")) * 1_000
  }
}
