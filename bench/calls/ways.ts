/** The ways in which a request, or the text of a rule, reaches the limiter. */
export const WAYS = ["decide", "express", "fastify", "koa", "rule text"] as const
export type Way = (typeof WAYS)[number]

/** The number of calls of each function in each file. An anonymous function has the name "". */
export type Calls = Readonly<Record<string, Readonly<Record<string, number>>>>
