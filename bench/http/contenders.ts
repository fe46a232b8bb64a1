import type { Protection, Setup } from "./setup.ts"
import type { Framework } from "./worker.ts"

export interface Contender extends Setup {
  readonly name: string
  readonly framework: Framework
  /** Whether the limiter refuses the requests. Even then, it admits the first request. */
  readonly refuses: boolean
  /** Name of the contender without a limiter with which this contender is compared. */
  readonly bare: string
  /** A response header that shows that the limiter is active. */
  readonly header: string | undefined
}

/** A limit that is never reached. */
const NO_LIMIT = 100_000_000

const PEERS: Readonly<Record<Framework, { readonly name: string; readonly header: string }>> = {
  fastify: { name: "@fastify/rate-limit", header: "x-ratelimit-remaining" },
  express: { name: "express-rate-limit", header: "ratelimit" },
  koa: { name: "koa-ratelimit", header: "x-ratelimit-remaining" },
}

/**
 * The contenders for each framework: bare, two constant headers, a constant refusal, a handwritten counter, and
 * Sluice and its peer. Sluice and the peer are measured admitting and refusing.
 */
export const CONTENDERS: readonly Contender[] = (Object.keys(PEERS) as Framework[]).flatMap((framework) => {
  const bare = `${framework}, bare`
  const { name, header } = PEERS[framework]
  const protectedBy = (refuses: boolean): Contender[] => {
    const limit = refuses ? 1 : NO_LIMIT
    const does = refuses ? "refuses" : "admits"
    return [
      {
        name: `${framework}, sluice ${does}`,
        framework,
        protection: "sluice",
        limit,
        refuses,
        bare,
        header: "ratelimit",
      },
      { name: `${framework}, ${name} ${does}`, framework, protection: "peer", limit, refuses, bare, header },
    ]
  }
  const plain = (
    named: string,
    protection: Exclude<Protection, "sluice" | "peer">,
    told?: string,
  ): Contender => {
    const refuses = protection === "refusal"
    return { name: named, framework, protection, limit: NO_LIMIT, refuses, bare, header: told }
  }
  return [
    plain(bare, "bare"),
    plain(`${framework}, two headers`, "headers", "ratelimit"),
    plain(`${framework}, a constant refusal`, "refusal", "ratelimit"),
    plain(`${framework}, by hand admits`, "by hand", "ratelimit"),
    ...protectedBy(false),
    ...protectedBy(true),
  ]
})
