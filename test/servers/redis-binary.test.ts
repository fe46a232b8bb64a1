import { spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { findRedis } from "./redis-binary.ts"

const scratch = mkdtempSync(join(tmpdir(), "sluice-binary-"))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** A program that prints the version line of a Redis server. */
function programAt(path: string, version = "9.9.9"): string {
  mkdirSync(join(path, ".."), { recursive: true })
  writeFileSync(path, `#!/bin/sh\necho "Redis server v=${version} sha=0"\n`)
  chmodSync(path, 0o755)
  return path
}

describe("findRedis", () => {
  it("prefers the server in SLUICE_REDIS_SERVER to the PATH, with the client in the same folder", async () => {
    const named = programAt(join(scratch, "named", "my-redis"), "1.2.3")
    const cli = programAt(join(scratch, "named", "redis-cli"))
    const env = { SLUICE_REDIS_SERVER: named, PATH: join(programAt(join(scratch, "a/redis-server")), "..") }
    expect(await findRedis({ env })).toEqual({ server: named, cli, env: {}, version: "1.2.3" })
  })

  it("uses the first server in the PATH that runs, and prefers Redis to Valkey", async () => {
    const valkey = programAt(join(scratch, "valkey", "valkey-server"))
    const redis = programAt(join(scratch, "redis", "redis-server"))
    const broken = join(scratch, "broken")
    mkdirSync(broken)
    writeFileSync(join(broken, "redis-server"), "#!/bin/sh\nexit 127\n", { mode: 0o755 })
    const path = [broken, join(valkey, ".."), join(redis, "..")]
    expect((await findRedis({ env: { PATH: path.join(":") } })).server).toBe(redis)
    expect((await findRedis({ env: { PATH: path.slice(0, 2).join(":") } })).server).toBe(valkey)
  })

  it("uses an unpacked server with its libraries instead of unpacking a second one", async () => {
    const first = await findRedis({ env: { PATH: "" }, cacheFolder: cacheWithRedis() })
    expect(first.version).toBe("8.8.8")
    expect(first.env.LD_LIBRARY_PATH).toMatch(/usr\/lib\/x-linux-gnu$/)
  })
})

/**
 * A cache with an unpacked Redis for this machine. The folder is named after the distribution, as read by the shell.
 */
function cacheWithRedis(): string {
  const cache = join(scratch, "cache")
  const release = `. /etc/os-release 2>/dev/null; echo "\${ID:-any}-\${VERSION_ID:-any}"`
  const { stdout } = spawnSync("sh", ["-c", release], { encoding: "utf8" })
  const folder = join(cache, `${stdout.trim()}-${process.arch}`)
  programAt(join(folder, "usr/bin/redis-server"), "8.8.8")
  mkdirSync(join(folder, "usr/lib/x-linux-gnu"), { recursive: true })
  return cache
}
