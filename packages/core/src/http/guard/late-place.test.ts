import { describe, expect, it } from "vitest"
import { latePlace, type MountedLayer } from "./late-place.ts"

const limiter = {}
const LIMITER: MountedLayer = { handle: limiter, path: "", isLimited: true, isRouting: false }
const HANDLER: MountedLayer = { handle: {}, path: "", isLimited: false, isRouting: false }

function route(methods: readonly string[], path: string): MountedLayer {
  return { path, isLimited: false, isRouting: true, route: { methods, pattern: path } }
}

describe("the place of a limiter after a route", () => {
  it.each([
    { methods: ["get"], said: "GET" },
    { methods: ["get", "head", "put"], said: "GET,HEAD,PUT" },
    { methods: ["get", "head", "put", "post"], said: "ALL" },
  ])("names $methods as $said", ({ methods, said }) => {
    expect(latePlace([route(methods, "/login"), LIMITER], limiter)).toEqual({
      routes: `${said} /login and every other route`,
      hasHandlers: false,
    })
  })

  it("has handlers if it is followed by a function that could respond", () => {
    const routes = "GET /login and every other route"
    expect(latePlace([route(["get"], "/login"), LIMITER, HANDLER], limiter)).toEqual({
      routes,
      hasHandlers: true,
    })
  })

  it("is unknown if the app does not contain the limiter", () => {
    expect(latePlace([route(["get"], "/login"), HANDLER], limiter)).toBeUndefined()
  })

  it("does not depend on a limiter of another path", () => {
    const other = { ...LIMITER, handle: {}, path: "/status" }
    const layers = [other, route(["get"], "/api/login"), { ...LIMITER, path: "/api" }]
    expect(latePlace(layers, limiter)).toEqual({
      routes: "GET /api/login and every other route below /api",
      hasHandlers: false,
    })
  })

  it("is undefined if all routes are mounted after the limiter", () => {
    const alone = { ...LIMITER, path: "/api" }
    expect(
      latePlace([alone, { ...HANDLER, route: { methods: ["get"], pattern: "/" } }], limiter),
    ).toBeUndefined()
  })
})
