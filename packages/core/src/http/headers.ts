import type { InvalidOptionError } from "../ground/errors.ts"
import {
  type HeaderDialect,
  type HeaderFormat,
  type HeadersOption,
  requireHeaderFormats,
} from "../limiter/options/header-formats.ts"
import type { HeaderPolicy, HeaderWriter } from "./headers/header-values.ts"
import { compileMembers } from "./headers/members.ts"
import { compileSingleValues, fromNow, type SingleValueNames, sinceEpoch } from "./headers/single-values.ts"

type AllNames = SingleValueNames & { readonly policy: string }
type Compile = (policies: readonly HeaderPolicy[], names: AllNames) => HeaderWriter

// `next` also defines RateLimit-Partition, which names the counted client. That header is left out, because a
// decision contains nothing that distinguishes clients without revealing who they are.
const DIALECTS: Readonly<Record<HeaderDialect, Compile>> = {
  "draft-11": (policies, names) =>
    compileMembers(policies, { ...names, remaining: "r", seconds: "t", cost: undefined }),
  next: (policies, names) => compileMembers(policies, { ...names, remaining: "a", seconds: "w", cost: "c" }),
  triple: (policies, names) => compileSingleValues(policies, names, fromNow),
  legacy: (policies, names) => compileSingleValues(policies, names, sinceEpoch),
}

/**
 * Returns a function that writes a decision's rate limit headers in these dialects. The function knows only the rules
 * given here, so compile it again when the rules change. Throws when a name is not printable ASCII.
 *
 * For example, `draft-11` writes this for a limit of 100 per minute with 50 units left:
 * `RateLimit-Policy: "ip-1m";q=100;w=60` and `RateLimit: "ip-1m";r=50;t=30`.
 */
export function compileHeaders(
  formats: readonly HeaderFormat[],
  policies: readonly HeaderPolicy[],
): HeaderWriter {
  const writers = formats.map(({ dialect, names }) => DIALECTS[dialect](policies, names as AllNames))
  const [only] = writers
  if (only !== undefined && writers.length === 1) return only
  return (decision, nowMs) => writers.flatMap((write) => write(decision, nowMs))
}

/**
 * Returns the fields that a script on another origin can read only if Access-Control-Expose-Headers lists them. The
 * argument is the limiter's option `headers`. For "draft-11" the fields are `RateLimit-Policy`, `RateLimit` and
 * `Retry-After`.
 * @throws {@link InvalidOptionError} for an option that a limiter does not accept
 */
export function exposedHeaders(headers: HeadersOption): readonly string[] {
  return [...requireHeaderFormats(headers).flatMap(({ names }) => Object.values(names)), "Retry-After"]
}
