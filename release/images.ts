import { readFileSync } from "node:fs"
import { join } from "node:path"

/** Files that name images of other projects. */
const FILES = ["packages/service/Dockerfile", "deploy/compose/compose.yaml"]
/** An image gets security updates by a newer tag or digest only, so someone has to look. */
const MOST_DAYS = 90
const DAY_MS = 86_400_000

/**
 * Returns a line for each image that must be pinned again: it has no digest, the line above does not say
 * "Pinned on YYYY-MM-DD", or that was more than 90 days before `nowMs`.
 */
export function imagesToPin(root: string, nowMs: number): string[] {
  return FILES.flatMap((path) => {
    const lines = readFileSync(join(root, path), "utf8").split("\n")
    return lines.flatMap((line, i) => {
      const image = /^(?:ARG \w+_IMAGE=|FROM (?!\$)|\s*image: )(\S+)/.exec(line)?.[1]
      if (image === undefined) return []
      const fault = faultOf(image, lines[i - 1] ?? "", nowMs)
      return fault === undefined ? [] : [`${path}:${i + 1}: pin ${image.split("@")[0]} again: ${fault}`]
    })
  })
}

function faultOf(image: string, above: string, nowMs: number): string | undefined {
  if (!/@sha256:[0-9a-f]{64}$/.test(image)) return "it has no digest"
  const pinnedMs = Date.parse(/Pinned on (\d{4}-\d\d-\d\d)/.exec(above)?.[1] ?? "")
  if (Number.isNaN(pinnedMs)) return 'the line above does not say "Pinned on YYYY-MM-DD"'
  const days = Math.floor((nowMs - pinnedMs) / DAY_MS)
  return days > MOST_DAYS ? `it was pinned ${days} days ago, and ${MOST_DAYS} are allowed` : undefined
}
