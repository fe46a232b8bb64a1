import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"

const root = new URL("../../", import.meta.url)
const licenseIn = (folder: string): string => readFileSync(new URL(`${folder}LICENSE`, root), "utf8")

it.each(readdirSync(new URL("packages/", root)))(
  "the folder of @sluice/%s contains the license, because `npm pack` does not look in the folders above",
  (name) => {
    expect(licenseIn(`packages/${name}/`)).toBe(licenseIn(""))
  },
)
