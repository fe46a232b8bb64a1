import fc from "fast-check"
import { expect, test } from "vitest"
import { normalizePath, pathReadings } from "./path.ts"

test.each([
  ["/login", "/login"],
  ["/", "/"],
  ["", "/"],
  ["/Login/", "/login"],
  ["//login///x//", "/login/x"],
  ["/%6Cogin", "/login"],
  ["/a%20b", "/a b"],
  ["/caf%C3%A9", "/café"],
  ["/%E2%84%AAey", "/key"], // the Kelvin sign, whose lower case is "k"
  ["/a%2Fb", "/a%2fb"],
  ["/a%2fb", "/a%2fb"],
  ["/a%252Fb", "/a%2fb"],
  ["/100%", "/100%"],
  ["/%zz/%6C", "/%zz/l"],
  ["/a/../b/./c", "/a/../b/./c"],
  ["/a?b/c", "/a"],
  ["/a#b?c", "/a"],
  ["a/b", "/a/b"],
])("normalizePath turns %j into %j", (path, normal) => {
  expect(normalizePath(path)).toBe(normal)
})

test.each([
  ["an ordinary target", "/Users/7/?full=1", ["/users/7"]],
  ["the root", "/?x", ["/"]],
  ["a query with special characters", "/a?b=//;%2F\\#", ["/a"]],
  ["percent encoding", "/%6Cogin?x=%zz", ["/login"]],
  ["a fragment", "/login#/x", ["/login"]],
  ["repeated slashes", "//a///b/", ["/a/b", "//a///b"]],
  [
    "a semicolon, which some routers treat as the start of a query",
    "/login;v=1/x?y",
    ["/login;v=1/x", "/login"],
  ],
  ["a backslash, which the URL parser treats as a slash", "/api\\login", ["/api\\login", "/api/login"]],
  ["a semicolon and a backslash", "/a\\b;c", ["/a\\b;c", "/a\\b", "/a/b;c", "/a/b"]],
  ["a target with a space at its end, which the URL parser trims", "/login\u00a0", ["/login"]],
  ["the absolute form", "http://example.com/Login?x", ["/login"]],
  ["the absolute form with nothing after the host", "http://example.com", ["/"]],
  ["the absolute form with only a query", "http://example.com?x=/login", ["/"]],
  ["the absolute form with only a fragment", "http://example.com#/login", ["/"]],
  ["the absolute form with a backslash", "http://example.com\\login", ["/\\login", "/login"]],
  ["a user and a host in front of a fragment", "//a@b/Login#", ["/a@b/login", "/login", "//a@b/login"]],
  ["a user and a host without a fragment, which are a path", "//a@b/login", ["/a@b/login", "//a@b/login"]],
  [
    "a user and a host with backslashes",
    "/\\a@b\\login#x",
    ["/\\a@b\\login", "/login", "/a@b/login", "//a@b/login"],
  ],
  ["the absolute form with a host that ends in a path", "http://h%66iles/x", ["/x", "/files/x"]],
  ["an invalid host, for which the URL parser throws", "//a@[b/x#", ["/a@[b/x", "//a@[b/x"]],
  ["dot segments, which file servers resolve", "/a/./b/../c/", ["/a/./b/../c", "/a/c"]],
  ["dot segments at the end and beyond the root", "/../../a/..", ["/../../a/..", "/"]],
  ["encoded dots and slashes", "/a%2fb/%2E%2e%2Fc", ["/a%2fb/..%2fc", "/a/c"]],
  ["an encoded percent sign, which is not a slash", "/a%252fb", ["/a%2fb"]],
  ["an encoded backslash, which is a slash on Windows", "/a%5c..%5Cb", ["/a\\..\\b", "/b"]],
  ["the absolute form with an invalid port", "http://u:p@h:1x/x#", ["/x", "/:1x/x"]],
  ["an invalid port without a scheme", "//u@h:zz/Login#x", ["/u@h:zz/login", "/:zz/login", "//u@h:zz/login"]],
  ["the absolute form with an IPv6 address", "http://[::1]:80/x", ["/x"]],
  ["names that contain dots", "/.well-known/...", ["/.well-known/..."]],
  ["the asterisk form", "*", ["/*"]],
  ["an empty target", "", ["/"]],
])("pathReadings returns every reading of %s", (_name, target, readings) => {
  expect(pathReadings(target)).toEqual(readings)
})

test("pathReadings handles a long target that repeats one special sequence", () => {
  for (const part of ["/", "\\", ";", "%", "%41", "/%", "//;\\", "/.", "/..", "%2f", "@", "//a@b#"]) {
    expect(pathReadings(`/${part.repeat(20_000)}`).length).toBeGreaterThan(0)
  }
})

test("pathReadings causes no Node warning, whatever the client sends", async () => {
  const warnings: Error[] = []
  const listener = (warning: Error) => void warnings.push(warning)
  process.on("warning", listener)
  const hosts = [
    "h:zz",
    "u@h:1x",
    "u:p@h:zz:1",
    "h:",
    "h:1",
    "[::1]:1",
    "a:b@[::1",
    "h%:z",
    "h:z%",
    "h;:zz",
    "a@b:c@d:e",
  ]
  for (const host of hosts) {
    for (const start of ["http://", "//", "\\\\", "/\\", "x:\\\\", " http://", "HTTP:/\\"]) {
      for (const end of ["/login#x", "#", " ", "/a b", "\\login#"]) pathReadings(start + host + end)
    }
  }
  await new Promise(setImmediate)
  process.off("warning", listener)
  expect(warnings).toEqual([])
})

/** Normalizes a path like `normalizePath`, but uses exceptions to detect malformed encodings. */
function normalizedByExceptions(path: string): string {
  const decode = (segment: string): string => {
    try {
      return decodeURIComponent(segment).replaceAll("/", "%2f").toLowerCase()
    } catch {
      return segment.toLowerCase()
    }
  }
  return `/${path
    .split("/")
    .map(decode)
    .filter((segment) => segment !== "")
    .join("/")}`
}

const escaped = (byte: number): string => `%${byte.toString(16).padStart(2, "0")}`

test("normalizePath decodes every well-formed sequence of two bytes and no other", () => {
  for (let first = 0; first < 256; first += 1) {
    for (let second = 0; second < 256; second += first < 0xc0 ? 15 : 1) {
      const path = `/${escaped(first)}${escaped(second)}`
      expect(normalizePath(path)).toBe(normalizedByExceptions(path))
    }
  }
})

test("normalizePath decodes longer sequences up to the limits of well-formed UTF-8", () => {
  const seconds = [0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0]
  const tails = [0x7f, 0x80, 0xbf, 0xc0].map(escaped)
  for (let first = 0xe0; first < 256; first += 1) {
    for (const start of seconds.map((second) => escaped(first) + escaped(second))) {
      for (const path of tails.flatMap((one) => [start + one, ...tails.map((two) => start + one + two)])) {
        expect(normalizePath(`/${path}`)).toBe(normalizedByExceptions(`/${path}`))
        expect(normalizePath(`/é${path}%41`)).toBe(normalizedByExceptions(`/é${path}%41`))
      }
    }
  }
})

test("normalizePath decodes a segment as decodeURIComponent does, or leaves it unchanged if it is malformed", () => {
  const parts = ["/", "%", "%4", "%41", "%2F", "%25", "%c3", "%A9", "%e2%84%aa", "%F0%9f%98%80", "%ed%a0%80"]
  const part = fc.oneof(
    fc.constantFrom(...parts, "é", "\ud800", "ΑΣ", "İ", "."),
    fc.integer({ min: 0, max: 255 }).map(escaped),
    fc.string({ unit: "grapheme", maxLength: 3 }).map((text) => text.replace(/[?#]/g, "")),
  )
  fc.assert(
    fc.property(fc.array(part), (path) => {
      expect(normalizePath(path.join(""))).toBe(normalizedByExceptions(path.join("")))
    }),
    { numRuns: 300 },
  )
})

test("normalizePath causes no internal exceptions, however many segments are malformed", () => {
  let thrown = 0
  const decodeStrictly = globalThis.decodeURIComponent
  globalThis.decodeURIComponent = (text) => {
    try {
      return decodeStrictly(text)
    } catch (error) {
      thrown += 1
      throw error
    }
  }
  try {
    for (const segment of ["/%", "/%c3", "/%zz", "/%ed%a0%80", "/é%61%ff"]) {
      pathReadings(`${segment}\\//${segment.repeat(2_000)};`)
    }
  } finally {
    globalThis.decodeURIComponent = decodeStrictly
  }
  expect(thrown).toBe(0)
})

test("pathReadings decodes equal segments once, even in several readings of a path", () => {
  let calls = 0
  const decode = globalThis.decodeURIComponent
  globalThis.decodeURIComponent = (text) => {
    calls += 1
    return decode(text)
  }
  try {
    expect(pathReadings(`/x\\//${"/%41/%42".repeat(2_000)};`)).toHaveLength(8)
  } finally {
    globalThis.decodeURIComponent = decode
  }
  expect(calls).toBe(3) // "%41", "%42", and the last one with ";" at its end
})
