import { afterAll, describe, expect, it } from "vitest"
import { type Block, readBlocks } from "./blocks.ts"
import { cover } from "./cover.ts"
import { stopRedis } from "./preludes/redis.ts"
import { commandLines } from "./shell/words.ts"

// Tests the results of the document tests for documents with mistakes.

afterAll(stopRedis)

const block = (language: string, text: string, more: Partial<Block> = {}): Block => ({
  document: "docs/page.md",
  line: 7,
  language,
  text: `${text}\n`,
  ...more,
})

describe("a document", () => {
  it("has its blocks with place, language and what the comments before them say", () => {
    const page = [
      "# Page",
      "<!-- run: koa, / 200 -->",
      "```ts",
      "app.use(handler)",
      "```",
      "- and",
      "",
      "  <!-- tested by: test/docs/page.test.ts -->",
      "",
      "  ~~~~http",
      "  HTTP/1.1 200 OK",
      "  ```",
      "  ~~~~",
    ]
    expect(readBlocks("docs/page.md", page.join("\n"))).toEqual([
      { document: "docs/page.md", line: 4, language: "ts", text: "app.use(handler)\n", run: "koa, / 200" },
      {
        document: "docs/page.md",
        line: 11,
        language: "http",
        text: "HTTP/1.1 200 OK\n```\n",
        testedBy: "test/docs/page.test.ts",
      },
    ])
  })

  it.each([
    ["a fence that is not closed", "```ts\nawait", /docs\/page\.md:1: the block is not closed/],
    ["a comment that is before no block", "<!-- run: koa -->\nText", /docs\/page\.md:2: the comment/],
    ["a comment at its end", "Text\n<!-- tested by: a.test.ts -->\n", /its last comment/],
  ])("fails with %s", (_, page, message) => {
    expect(() => readBlocks("docs/page.md", page)).toThrow(message)
  })
})

describe("a block", () => {
  it.each([
    ["no language", block("", "text"), /page\.md:7: no test knows the language ""/],
    ["a language that nobody knows", block("rust", "fn main() {}"), /no test knows the language "rust"/],
    ["output that no test compares", block("text", "done"), /page\.md:7: no test is named/],
    [
      "a test that there is not",
      block("text", "done", { testedBy: "test/docs/nobody.test.ts" }),
      /page\.md:7: test\/docs\/nobody\.test\.ts is no test/,
    ],
    [
      "a test that is about something else",
      block("text", "done", { testedBy: "test/refunds.test.ts" }),
      /page\.md:7: test\/refunds\.test\.ts says nothing of docs\/page\.md/,
    ],
    ["JSON that is none", block("json", '{ "a": 1, }'), /page\.md:7: /],
    ["YAML that is none", block("yaml", "a: 1\nb: ]"), /page\.md:8: /],
    [
      "rules that are wrong",
      block("yaml", "service_id: shop\nrules:\n  - { limit: 5, windw: 1 minute }"),
      /page\.md:9: "windw" is not a member/,
    ],
    ["a program that nobody knows", block("sh", "cd docs\nwget http://localhost"), /page\.md:8: wget/],
    ["a script that there is not", block("sh", "npx -y pnpm@10.34.9 tset"), /no script "tset"/],
    ["another pnpm", block("sh", "npx -y pnpm@9.0.0 test"), /pnpm@9\.0\.0 is not pnpm@/],
    ["a folder that there is not", block("sh", "cd exampels && npx -y pnpm@10.34.9 koa"), /exampels is not/],
    ["a package that nobody uses", block("sh", "npm install @sluice/expres"), /@sluice\/expres/],
    ["a flag that there is not", block("sh", "sluice rules list --tabel rules"), /no flag --tabel/],
    ["a command that there is not", block("sh", "sluice rules pish a.yaml"), /no command "pish"/],
    ["a flag of the service that there is not", block("sh", "sluice-service --rule a"), /no flag --rule/],
    ["a variable that nobody reads", block("sh", "UP=1 npx tsx examples/src/gateway/main.ts"), /reads no UP/],
    ["curl that asks elsewhere", block("sh", "curl http://example.com/"), /curl's http:\/\/example\.com/],
    ["a port of its own", block("ts", "app.listen(3000)"), /listens on a port/],
    [
      "a Redis of its own",
      block("ts", 'import { Redis } from "ioredis"\nconst client = new Redis()'),
      /REDIS_URL/,
    ],
    [
      "an app that answers otherwise",
      block("ts", 'app.use(rateLimit({ limit: 2, window: "1 minute" }))', { run: "express, / 200*3 429" }),
      /GET \/: 200\*2 429\*2, not 200\*3 429$/,
    ],
    [
      "an app that warns",
      block(
        "ts",
        'const options = { limit: 5, window: "1 minute", store: redisStore({ client }) }\napp.use(rateLimit(options))',
      ),
      /page\.md:7: SLUICE_DEFAULT_SERVICE /,
    ],
    [
      "an app that breaks",
      block("ts", 'app.get("/jobs/:id", () => {\n  throw new Error("no")\n})'),
      /GET \/jobs\/1: 500/,
    ],
  ])("fails with %s", async (_, wrong, message) => {
    expect((await cover(wrong)).join("\n")).toMatch(message)
  })

  it.each([
    ["a promise that is not kept", "const sum = 1 + 1 // => 3", /page\.md:7/],
    [
      "a promise about a member",
      'const limiter = createLimiter({ limit: 5, window: "1 minute" })\nlimiter.status // => { service: "other" }',
      /page\.md:8/,
    ],
    ["a promise of nothing", "if (true) { // => 3\n}", /stands behind an expression/],
    [
      "an option that there is not",
      'rateLimit({ limit: 5, windw: "1 minute" } as never)',
      /page\.md:7: .*windw/s,
    ],
    ["a name that nobody gives", "ap.use(handler)", /page\.md:7: ap is not defined/],
    ["a prelude that there is not", "app.use(handler)", /no prelude "hono"/, { run: "hono" }],
    ["requests that cannot be read", "app.use(handler)", /is not like/, { run: "express, GET 200" }],
  ])("throws with %s", async (_, text, message, more: Partial<Block> = {}) => {
    await expect(cover(block("ts", text, more))).rejects.toThrow(message)
  })

  it("keeps what it promises", async () => {
    const text = [
      'const limiter = createLimiter({ limit: 5, window: "1 minute", field: "service" })',
      "const decision = await limiter.decide({}, { cost: 2 }) // => { allowed: true, remaining: 3 }",
      "decision.remaining // => 3",
      'decision.checks.map(({ policy }) => policy) // => ["service-1m"]',
    ]
    expect(await cover(block("ts", text.join("\n")))).toEqual([])
  })
})

describe("command lines", () => {
  it("are told apart as a shell does", () => {
    const text = [
      "# first",
      "cd docs && npx a   # then",
      "A=1 curl -s \\",
      '  -d \'{ "a": 1,',
      '  "b": 2 }\' "x y"z | cat',
      "T=$(openssl rand -hex 16) go",
    ]
    expect(commandLines(text.join("\n"))).toEqual([
      { line: 2, words: ["cd", "docs"] },
      { line: 2, words: ["npx", "a"] },
      { line: 3, words: ["A=1", "curl", "-s", "-d", '{ "a": 1,\n  "b": 2 }', "x yz"] },
      { line: 5, words: ["cat"] },
      { line: 6, words: ["T=$(openssl rand -hex 16)", "go"] },
    ])
  })

  it("are not understood where a quote is not closed", () => {
    expect(() => commandLines('echo "a')).toThrow('line 1: " is not understood')
  })
})
