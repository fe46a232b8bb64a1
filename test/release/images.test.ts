import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { imagesToPin } from "../../release/images.ts"

const DAY_MS = 86_400_000
const PINNED = "2026-01-01"
const DIGEST = `sha256:${"0a".repeat(32)}`
const daysLater = (days: number): number => Date.parse(PINNED) + days * DAY_MS

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "sluice-images-"))
  for (const folder of ["packages/service", "deploy/compose"])
    mkdirSync(join(root, folder), { recursive: true })
  write(`# Pinned on ${PINNED}.\nARG NODE_IMAGE=node:24@${DIGEST}\nFROM $NODE_IMAGE AS build\n`)
})
afterEach(() => rmSync(root, { recursive: true }))

function write(dockerfile: string, image = `# Pinned on ${PINNED}.\n    image: redis:7.4@${DIGEST}`): void {
  writeFileSync(join(root, "packages/service/Dockerfile"), dockerfile)
  writeFileSync(join(root, "deploy/compose/compose.yaml"), `services:\n  redis:\n    ${image}\n`)
}

describe("imagesToPin", () => {
  it("returns nothing for images that were pinned at most 90 days ago", () => {
    expect(imagesToPin(root, daysLater(90))).toEqual([])
  })

  it("returns each image that was pinned more than 90 days ago", () => {
    const why = "it was pinned 91 days ago, and 90 are allowed"
    expect(imagesToPin(root, daysLater(91))).toEqual([
      `packages/service/Dockerfile:2: pin node:24 again: ${why}`,
      `deploy/compose/compose.yaml:4: pin redis:7.4 again: ${why}`,
    ])
  })

  it.each([
    ["has no digest", "FROM node:24\n", "image: redis:7.4", "it has no digest"],
    [
      "has no date above it",
      `FROM node:24@${DIGEST}\n`,
      `image: redis:7.4@${DIGEST}`,
      'the line above does not say "Pinned on YYYY-MM-DD"',
    ],
  ])("returns an image that %s", (_title, dockerfile, image, why) => {
    write(dockerfile, image)
    expect(imagesToPin(root, daysLater(0))).toEqual([
      `packages/service/Dockerfile:1: pin node:24 again: ${why}`,
      `deploy/compose/compose.yaml:3: pin redis:7.4 again: ${why}`,
    ])
  })

  it("finds each image of this repository, with a digest and a date", () => {
    const here = fileURLToPath(new URL("../../", import.meta.url))
    const longAfter = Date.parse("2126-01-01")
    expect(imagesToPin(here, longAfter)).toEqual(
      ["node", "nginx", "redis", "prom/prometheus"].map((name) =>
        expect.stringMatching(new RegExp(`pin ${name}:v?\\d+\\.\\d+\\.\\d+\\S* again: it was pinned`)),
      ),
    )
  })
})
