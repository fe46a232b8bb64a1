import { describe, expect, it } from "vitest"
import { latePlace, type MountedLayer } from "./late-place.ts"

const limiter = {}
const LIMITER: MountedLayer = { handle: limiter, path: "", isLimited: true, isRouting: false }
const HANDLER: MountedLayer = { handle: {}, path: "", isLimited: false, isRouting: false }

function route(methods: readonly string[], path: string): MountedLayer {
  return { path, isLimited: false, isRouting: true, route: { methods, pattern: path } }
}

describe("latePlace", () => {
  it.each([
    { methods: ["get"], said: "GET" },
    { methods: ["get", "head", "put"], said: "GET,HEAD,PUT" },
    { methods: ["get", "head", "put", "post"], said: "ALL" },
  ])("shows a route with the methods $methods as $said", ({ methods, said }) => {
    expect(latePlace([route(methods, "/login"), LIMITER], limiter)).toEqual({
      routes: `${said} /login and every other route`,
      hasHandlers: false,
    })
  })

  it("reports handlers if a function after the limiter could respond", () => {
    const routes = "GET /login and every other route"
    expect(latePlace([route(["get"], "/login"), LIMITER, HANDLER], limiter)).toEqual({
      routes,
      hasHandlers: true,
    })
  })

  it("returns undefined if the app does not contain the limiter", () => {
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

  it("returns undefined if all routes are mounted after the limiter", () => {
    const alone = { ...LIMITER, path: "/api" }
    expect(
      latePlace([alone, { ...HANDLER, route: { methods: ["get"], pattern: "/" } }], limiter),
    ).toBeUndefined()
  })
})
