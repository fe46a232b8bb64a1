/** How a request reaches the limiter. */
export const WAYS = ["decide", "express", "fastify", "koa"] as const
export type Way = (typeof WAYS)[number]

/** How often each function of each file was called; a function without a name is "". */
export type Calls = Readonly<Record<string, Readonly<Record<string, number>>>>
