import { createServer, type RequestListener } from "node:http"
import { createRequire } from "node:module"
import { type AddressInfo, connect } from "node:net"
import Router from "@koa/router"
import express, { type Request, type Response } from "express"
import fc from "fast-check"
import Fastify from "fastify"
import Koa from "koa"
import { afterAll, beforeAll, expect, test } from "vitest"
import { compilePath } from "../packages/core/src/rules/matching/match.ts"
import { pathReadings } from "../packages/core/src/rules/matching/path.ts"

/** Express 4 has no types under this name. The parts that this test uses have the same types in both versions. */
const express4 = createRequire(import.meta.url)("express4") as typeof express

/** A rule's pattern, and the same route in Express 5 and Koa, in Express 4, and in Fastify. */
const ROUTES = [
  ["/login", "/login", "/login", "/login"],
  ["/users/:id", "/users/:id", "/users/:id", "/users/:id"],
  ["/users/:id/posts", "/users/:id/posts", "/users/:id/posts", "/users/:id/posts"],
  ["/files/*", "/files/*rest", "/files/*", "/files/*"],
  ["/flights/:from-:to", "/flights/:from-:to", "/flights/:from-:to", "/flights/:from-:to"],
] as const
const rules = new Map<string, ReturnType<typeof compilePath>>(
  ROUTES.map(([rule]) => [rule, compilePath(rule)]),
)

/**
 * The ports of the servers. Each server responds with the rule's pattern, and with the route if the framework
 * provides the route in time.
 */
const ports = new Map<string, number>()
const closers: (() => unknown)[] = []

async function serve(name: string, listener: RequestListener): Promise<void> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  ports.set(name, (server.address() as AddressInfo).port)
  closers.push(() => server.close())
}

async function serveFastify(name: string, routerOptions: object): Promise<void> {
  const app = Fastify({ routerOptions })
  for (const [rule, , , route] of ROUTES) {
    app.get(route, (request, reply) => reply.send(`<${rule}|${request.routeOptions.url}>`))
  }
  await app.listen({ port: 0, host: "127.0.0.1" })
  ports.set(name, (app.server.address() as AddressInfo).port)
  closers.push(() => app.close())
}

beforeAll(async () => {
  const five = express()
  const four = express4()
  const router = new Router()
  for (const [rule, route, route4] of ROUTES) {
    const answer = (_request: Request, response: Response): void => void response.send(`<${rule}|>`)
    five.get(route, answer)
    four.get(route4, answer)
    router.get(route, (ctx) => {
      ctx.body = `<${rule}|>`
    })
  }
  await serve("Express 5", five)
  await serve("Express 4", four)
  await serve("Koa", new Koa().use(router.routes()).callback())
  await serveFastify("Fastify", {})
  const lenient = { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true }
  await serveFastify("lenient Fastify", { ...lenient, useSemicolonDelimiter: true })
})
afterAll(() => Promise.all(closers.map((close) => close())))

/** Returns the rule and the route of the handler for the target. The request is sent exactly as given, byte by byte. */
function reached(
  port: number,
  target: string,
): Promise<{ rule: string; route: string | undefined } | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    let answer = ""
    socket.on("data", (bytes) => {
      answer += bytes.toString("latin1")
    })
    socket.on("error", () => resolve(undefined))
    socket.on("close", () => {
      const [, rule, route] = /<(.*)\|(.*)>$/.exec(answer) ?? []
      resolve(rule === undefined ? undefined : { rule, route: route === "" ? undefined : route })
    })
    socket.write(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`, "latin1"))
  })
}

/** Returns the frameworks that route a target to a handler whose rule does not cover the target. */
async function uncovered(target: string): Promise<string[]> {
  const missed: string[] = []
  for (const [name, port] of ports) {
    const at = await reached(port, target)
    if (at !== undefined && !rules.get(at.rule)?.(pathReadings(target), at.route))
      missed.push(`${name}: ${at.rule}`)
  }
  return missed
}

test.each([
  ["/LOGIN/", ["Express 5", "Express 4", "Koa", "lenient Fastify"]],
  ["/%6Cogin", ["Fastify", "lenient Fastify"]],
  ["//login", ["lenient Fastify"]],
  ["/login;v=1", ["lenient Fastify"]],
  ["/users\\7#top", ["Express 5", "Express 4", "Koa"]],
  ["http://a/login?x", ["Express 5", "Express 4", "Koa", "Fastify", "lenient Fastify"]],
  ["http://a/users\\7", ["Express 5", "Express 4", "Koa"]],
  ["/users/a%2Fb", ["Express 5", "Express 4", "Koa", "Fastify", "lenient Fastify"]],
  ["/users/", ["Fastify"]],
])(
  "the target %j reaches its handler in %j, and the rule for that route matches it",
  async (target, frameworks) => {
    const names: string[] = []
    for (const [name, port] of ports) if ((await reached(port, target)) !== undefined) names.push(name)
    expect(names).toEqual(frameworks)
    expect(await uncovered(target)).toEqual([])
  },
)

test("no spelling of a path reaches a handler without the rule for its route", async () => {
  const start = fc.constantFrom(
    "/login",
    "/users/7",
    "/users/7/posts",
    "/files/a/b",
    "/flights/x-y",
    "/files/",
  )
  const part = fc.constantFrom(
    ...[
      "/",
      "//",
      "\\",
      ";",
      "#",
      "?",
      "%2F",
      "%6C",
      "login",
      "LOGIN",
      "users",
      "7",
      "posts",
      "files",
      "a",
      "-",
    ],
    ...["\xa0", "%20", ".", "..", "%", "%zz", "%3B", "%5C", "%00", "@", "%E2%84%AA"],
  )
  const insertions = fc.array(fc.tuple(fc.nat(16), part), { maxLength: 3 })
  const path = fc
    .tuple(start, insertions)
    .map(([base, added]) =>
      added.reduce<string>((text, [at, piece]) => text.slice(0, at) + piece + text.slice(at), base),
    )
  const target = fc.oneof(
    path,
    path.map((text) => `http://a${text}`),
  )
  await fc.assert(
    fc.asyncProperty(target, async (text) => {
      expect(await uncovered(text)).toEqual([])
    }),
    { numRuns: 150 },
  )
})
