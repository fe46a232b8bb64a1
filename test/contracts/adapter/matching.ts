import { describe, expect } from "vitest"
import type { Behaves } from "./stage.ts"

/** Spellings of "/login" that some router or URL parser accepts. */
const SPELLINGS: readonly string[] = [
  "/login",
  "/login/",
  "/LOGIN",
  "/Login/",
  "//login",
  "///login//",
  "/login//",
  "/%6Cogin",
  "/%6cOGIN",
  "/l%6Fgin/",
  "/login?next=/",
  "/login/?x=1",
  "/login?",
  "/login#top",
  "/login;v=1",
  "/login;jsessionid=1?x=2",
  "/./login",
  "/x/../login",
  "/%2Flogin",
  "/login%2F",
  "/%2flogin/",
  "/login%20",
  "/login%00",
  "/%E0%A4login",
  "\\login",
  "/\\login",
  "/login\\",
  "http://other.example/login",
  "http://other.example/LOGIN/?x=1",
  "http://other.example//login",
  "https://user:secret@other.example:444/login#x",
  "HTTP://other.example/%6Cogin",
  "//a@b/login#",
  "//a:b@c:80/LOGIN/?x#",
  "//a@b\\login#",
  "/\\a@b/login#x",
  "http://l%6Fgin",
  "login",
  "*",
]

/** Spellings of "/users/:id" with the id 7. */
const PARAMETERS: readonly string[] = [
  "/users/7",
  "/users/7/",
  "/USERS/7",
  "/users//7",
  "/users/%37",
  "/users/7%2F",
  "/users/7%2Fx",
  "/%75sers/7",
  "/users/7?id=8",
  "/users/7;x",
  "http://other.example/users/7",
]

/** Registers the behaviors of matching, which determine the requests that match the path of a rule. */
export function matching(behaves: Behaves): void {
  describe("a rule for a path", () => {
    for (const [path, spellings] of [
      ["/login", SPELLINGS],
      ["/users/:id", PARAMETERS],
    ] as const) {
      behaves(`covers every spelling of ${path} that reaches its handler`, async ({ limited, start }) => {
        const routes = [{ path, handle: () => ({ body: "reached" }) }]
        const open = await start({ routes })
        const closed = await limited({ limit: 1, window: "1 minute", match: { path } }, { routes })
        expect((await closed(spellings[0] as string)).body).toBe("reached")

        const reaching: string[] = []
        const slipping: string[] = []
        for (const spelling of spellings) {
          if ((await open.exactly(spelling)).body !== "reached") continue
          reaching.push(spelling)
          if ((await closed.exactly(spelling)).status !== 429) slipping.push(spelling)
        }
        expect(slipping).toEqual([])
        // If fewer spellings reached the route, this test would prove nothing.
        expect(reaching.length).toBeGreaterThan(2)
      })
    }

    behaves("matches the path both before and after the app rewrites it", async ({ limited }) => {
      const plan = {
        rewrite: (target: string) => target.replace(/^\/(en|de)\//, "/"),
        // The path can only be read from the target, because the pattern of the route differs from the path.
        routes: [{ path: "/:page" }],
      }
      const asked = async (path: string, limit: number) => {
        const client = await limited({ limit, window: "1 minute", match: { path } }, { ...plan })
        const all: number[] = []
        for (const target of ["/login", "/en/login", "/DE/login", "/de/login?x=1", "/en/login", "/login"]) {
          all.push((await client(target)).status)
        }
        return all
      }
      // The app does not rewrite "/DE/", because only lowercase languages match.
      expect(await asked("/login", 3)).toEqual([200, 200, 404, 200, 429, 429])
      expect(await asked("/en/login", 1)).toEqual([200, 200, 404, 200, 429, 200])
    })

    behaves("matches no other path", async ({ limited }) => {
      const client = await limited(
        { limit: 1, window: "1 minute", match: { path: "/login" } },
        { routes: [{ path: "/login" }, { path: "/logins" }, { path: "/login/help" }] },
      )
      await client("/login")
      for (const path of ["/logins", "/login/help", "/login/help"]) {
        expect((await client(path)).status).toBe(200)
      }
      expect((await client("/login")).status).toBe(429)
    })

    behaves("and for methods matches a POST that names another method", async ({ limited }) => {
      const client = await limited(
        { limit: 1, window: "1 minute", match: { path: "/item", methods: ["DELETE"] } },
        { routes: [{ path: "/item", method: "POST" }] },
      )
      const rows: readonly (readonly [string, string | undefined, number])[] = [
        ["/item", undefined, 200],
        ["/item", "PUT", 200],
        ["/item", "delete", 200],
        ["/item?_method=DELETE", undefined, 429],
        ["/item?%5Fmethod=DELETE", undefined, 429],
        ["/item", "PUT, DELETE", 429],
        ["/item", undefined, 200],
      ]
      for (const [target, named, status] of rows) {
        const headers = named === undefined ? {} : { "X-HTTP-Method-Override": named }
        const response = await client(target, { method: "POST", headers })
        expect([target, named, response.status]).toEqual([target, named, status])
      }
    })
  })
}
