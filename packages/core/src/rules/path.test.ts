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
])("normalizes %j to %j", (path, normal) => {
  expect(normalizePath(path)).toBe(normal)
})

test.each([
  ["an ordinary target", "/Users/7/?full=1", ["/users/7"]],
  ["the root", "/?x", ["/"]],
  ["a query with anything in it", "/a?b=//;%2F\\#", ["/a"]],
  ["percent encoding", "/%6Cogin?x=%zz", ["/login"]],
  ["a fragment", "/login#/x", ["/login"]],
  ["repeated slashes", "//a///b/", ["/a/b", "//a///b"]],
  ["a semicolon, which some routers take for a query", "/login;v=1/x?y", ["/login;v=1/x", "/login"]],
  ["a backslash, which the URL parser takes for a slash", "/api\\login", ["/api\\login", "/api/login"]],
  ["both", "/a\\b;c", ["/a\\b;c", "/a\\b", "/a/b;c", "/a/b"]],
  ["space around it, which the URL parser trims", "/login\u00a0", ["/login"]],
  ["the absolute form", "http://example.com/Login?x", ["/login"]],
  ["the absolute form with nothing after the host", "http://example.com", ["/"]],
  ["the absolute form with a query alone", "http://example.com?x=/login", ["/"]],
  ["the absolute form with a fragment alone", "http://example.com#/login", ["/"]],
  ["the absolute form with a backslash", "http://example.com\\login", ["/\\login", "/login"]],
  ["the asterisk form", "*", ["/*"]],
  ["nothing", "", ["/"]],
])("reads %s", (_name, target, readings) => {
  expect(pathReadings(target)).toEqual(readings)
})

test("reads a long target of nothing but one odd part", () => {
  for (const part of ["/", "\\", ";", "%", "%41", "/%", "//;\\"]) {
    expect(pathReadings(`/${part.repeat(20_000)}`).length).toBeGreaterThan(0)
  }
})
