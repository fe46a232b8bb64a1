import { across, type Diagram, diagram, down } from "./diagram.ts"
import { arrow, box, type Point, text } from "./draw.ts"

/** The longest that a request waits for Redis by default, in milliseconds. */
export const STORE_TIMEOUT_MS = 50

/** Draws the steps of one request, in the order in which a limiter takes them. */
export function drawRequest(): Diagram {
  const description =
    "The limiter finds the rules of a request in memory. A cache in memory or Redis refuses the client with 429, or Redis " +
    `admits the request to your handler. If Redis does not reply within ${STORE_TIMEOUT_MS} ms, this process counts alone.`
  const step = (y: number, look: "ours" | "others" | "good", title: string, line: string): string =>
    box({ x: 24, y, width: 304, height: 54 }, look, [title], [line])
  const toRefusal: Point[] = [
    [328, 319],
    [576, 319],
    [576, 254],
  ]
  return diagram("request.svg", { title: "One request", description, height: 452 }, [
    step(16, "others", "A client's request", "GET /search"),
    arrow(down(176, 70, 108), "ours"),
    step(108, "ours", "1. Which rules apply?", "path, method and fields, in memory"),
    arrow(down(176, 162, 200), "ours"),
    step(200, "ours", "2. Is the client refused already?", "a cache in memory"),
    arrow(across(227, 328, 456), "refused"),
    text([392, 219], "yes", { look: "refused" }),
    box({ x: 456, y: 200, width: 240, height: 54 }, "refused", ["429"], ["Retry-After and the message"]),
    arrow(down(176, 254, 292), "ours"),
    text([186, 278], "no", { anchor: "start" }),
    step(292, "others", "3. Redis", "counts for all rules, in one call"),
    arrow(toRefusal, "refused"),
    text([452, 311], "over a limit", { look: "refused" }),
    arrow(down(176, 346, 384), "good"),
    text([186, 370], "admitted", { anchor: "start", look: "good" }),
    step(384, "good", "4. Your handler", "and headers on the response"),
    arrow(
      [
        [328, 334],
        [520, 334],
        [520, 384],
      ],
      "others",
      { isDashed: true },
    ),
    text([532, 362], `no answer in ${STORE_TIMEOUT_MS} ms`, { anchor: "start" }),
    box(
      { x: 456, y: 384, width: 240, height: 54 },
      "ours",
      ["This process counts alone"],
      ["until Redis is back"],
    ),
    arrow(across(411, 456, 328), "good"),
  ])
}

/** The lines of a refusal, each with its meaning. A test compares them with the refusal in the README. */
export const REFUSAL: readonly (readonly [line: string, meaning: string])[] = [
  ["HTTP/1.1 429 Too Many Requests", "refused, and no units were taken"],
  ['RateLimit-Policy: "ip-1m";q=100;w=60', "the rule: 100 in 60 seconds"],
  ['RateLimit: "ip-1m";r=0;t=17', "0 left, and more in 17 seconds"],
  ["Retry-After: 17", "a retry after 17 seconds can succeed"],
  ["Cache-Control: no-store", "no cache stores this response"],
  ["Content-Type: application/problem+json", "the body has the form of RFC 9457"],
  ['"title":"Quota Exceeded"', "a message for people"],
  ['"violated-policies":["ip-1m"]', "the rules that refused, for programs"],
]

/** Returns the status or the name in a line of a refusal. */
const nameOf = (line: string): string => /429|[\w-]+(?=":|:)/.exec(line)?.[0] ?? line

/** Draws the lines of a refusal beside their meaning. */
export function drawRefusal(): Diagram {
  const description = `The lines of a refusal: ${REFUSAL.map(([line, meaning]) => `${nameOf(line)} (${meaning})`).join(", ")}.`
  const height = 24 + REFUSAL.length * 30
  const column = (x: number, texts: readonly string[], isStrong: boolean): string[] =>
    texts.map((line, row) => text([x, 49 + row * 30], line, { anchor: "start", isStrong }))
  const lines = REFUSAL.map(([line]) => line)
  const meanings = REFUSAL.map(([, meaning]) => meaning)
  return diagram("refusal.svg", { title: "A refusal, line by line", description, height: height + 32 }, [
    box({ x: 24, y: 16, width: 330, height }, "refused", [], [], { parts: column(40, lines, true) }),
    box({ x: 412, y: 16, width: 284, height }, "others", [], [], { parts: column(424, meanings, false) }),
    ...REFUSAL.map((_, row) => arrow(across(44 + row * 30, 412, 354), "ours")),
  ])
}

/** The addresses of the picture of proxies. A test sends the header with them, and expects the client. */
export const CHAIN = {
  forged: "1.2.3.4",
  client: "203.0.113.7",
  cdn: "198.51.100.2",
  balancer: "10.0.0.5",
} as const

/** Draws what each proxy adds to X-Forwarded-For, and which entry the option `trustedProxies: 2` selects. */
export function drawProxies(): Diagram {
  const { forged, client, cdn, balancer } = CHAIN
  const description =
    `A client at ${client} sends X-Forwarded-For: ${forged}, which is forged. The CDN at ${cdn} adds ${client}. The load ` +
    `balancer at ${balancer} adds ${cdn}. The app has trustedProxies: 2. It counts two proxies from the right: ${balancer}, ` +
    `which the connection comes from, and ${cdn}. The entry before them is the client, ${client}.`
  const hops = [
    ["Client", client, "others"],
    ["CDN", cdn, "others"],
    ["Load balancer", balancer, "others"],
    ["Your app", "trustedProxies: 2", "ours"],
  ] as const
  const header = (
    y: number,
    entries: readonly (readonly [words: string, width: number, look?: "refused" | "good"])[],
  ) => {
    let x = 368
    return entries.map(([words, width, look]) => {
      const drawn = text([x, y], words, { anchor: "start", isStrong: true, ...(look && { look }) })
      x += width
      return drawn
    })
  }
  return diagram("proxies.svg", { title: "A chain of proxies", description, height: 424 }, [
    ...hops.flatMap(([name, address, look], at) => [
      box({ x: 24, y: 16 + at * 96, width: 176, height: 54 }, look, [name], [address]),
      ...(at === 0 ? [] : [arrow(down(112, 70 + (at - 1) * 96, 16 + at * 96), "others")]),
    ]),
    ...[0, 1, 2].flatMap((at) => [text([224, 96 + at * 96], "X-Forwarded-For:", { anchor: "start" })]),
    ...header(96, [
      [forged, 60, "refused"],
      ["forged by the client", 0],
    ]),
    ...header(192, [
      [`${forged},`, 60, "refused"],
      [client, 0, "good"],
    ]),
    ...header(288, [
      [`${forged},`, 60, "refused"],
      [`${client},`, 96, "good"],
      [cdn, 0],
    ]),
    text([224, 322], "From the right, the app skips two proxies:", { anchor: "start" }),
    text([224, 344], `${balancer}, from which the connection comes, and ${cdn}.`, { anchor: "start" }),
    text([224, 366], `The entry before them is the client: ${client}.`, {
      anchor: "start",
      look: "good",
      isStrong: true,
    }),
    text([224, 388], "What the client forged is never reached.", { anchor: "start" }),
  ])
}

/** Draws Fastify's hooks in their order, with the rules that are decided in each. */
export function drawHooks(): Diagram {
  const description =
    "Rules by address, method, route, header, query or cookie are decided in onRequest, rules by the body in preHandler, and " +
    "rules by your own fields right before the handler."
  const hooks = ["onRequest", "preParsing", "preValidation", "preHandler", "handler"]
  const rules = new Map([
    ["onRequest", ["Rules by address, route,", "header, query or cookie"]],
    ["preHandler", ["Rules by the body", "where the plugin was registered"]],
    ["handler", ["Rules by your own fields", "after every preHandler"]],
  ])
  const known = [
    "knows the request's line and headers",
    "",
    "has parsed the body",
    "may set the user",
    "answers",
  ]
  return diagram("hooks.svg", { title: "Fastify's hooks", description, height: 436 }, [
    ...hooks.flatMap((hook, at) => {
      const y = 16 + at * 84
      const [title, line] = rules.get(hook) ?? []
      return [
        ...(at === 0 ? [] : [arrow(down(160, y - 32, y), "others")]),
        box(
          { x: 24, y, width: 272, height: 52 },
          hook === "handler" ? "good" : "others",
          [hook],
          known[at] === "" ? [] : [known[at] as string],
        ),
        ...(title === undefined || line === undefined
          ? []
          : [
              arrow(across(y + 26, 440, 296), "ours"),
              box({ x: 440, y: y - 2, width: 256, height: 56 }, "ours", [title], [line]),
            ]),
      ]
    }),
  ])
}
