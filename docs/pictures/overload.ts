import { InFlight } from "../../packages/service/src/bounds/in-flight.ts"
import { type Peer, Peers } from "../../packages/service/src/bounds/peers.ts"
import { SETTINGS } from "../../packages/service/src/program/settings/settings-table.ts"
import { type Diagram, diagram } from "./diagram.ts"
import { box, text } from "./draw.ts"

/** The places for calls of a server: the default of `--max-in-flight`. */
export const PLACES = Number(SETTINGS.maxInFlight.otherwise)

/** Callers that all want as many places as they can get. */
interface Scene {
  readonly name: string
  readonly callers: number
  /** Whether each caller comes when the ones before have all that they can get. */
  readonly isOneByOne?: boolean
}

const SCENES: readonly Scene[] = [
  { name: "One gateway", callers: 1 },
  { name: "A second comes later", callers: 2, isOneByOne: true },
  { name: "Two at the same time", callers: 2 },
  { name: "Four at the same time", callers: 4 },
]

/** Returns how many places each caller gets. */
export function sharesOf({ callers, isOneByOne = false }: Scene): readonly number[] {
  const peers = new Peers()
  const inFlight = new InFlight(PLACES, Number.POSITIVE_INFINITY, peers, {})
  const all = Array.from({ length: callers }, (_, i) => peers.of(`192.0.2.${i}`))
  const gets = (peer: Peer): boolean => {
    try {
      return inFlight.enter(peer, "calls", 1) > 0
    } catch {
      return false
    }
  }
  if (isOneByOne) for (const peer of all) while (gets(peer));
  else while (all.map(gets).includes(true));
  return all.map(({ calls }) => calls)
}

/** Draws who gets which share of the places for calls. */
export function drawOverload(): Diagram {
  const rows = SCENES.map((scene) => ({ ...scene, shares: sharesOf(scene) }))
  const places = new Intl.NumberFormat("en").format(PLACES)
  const description =
    `Callers that want as many of the ${places} places for calls as they can get. ` +
    rows
      .map(({ name, shares }) => `${name}: ${new Intl.ListFormat("en").format(shares.map(String))}.`)
      .join(" ") +
    " The rest stays free for callers that come later."
  return diagram("overload.svg", { title: "Shares of the places for calls", description, height: 232 }, [
    ...rows.flatMap(({ name, shares }, row) => {
      let x = 208
      const free = PLACES - shares.reduce((sum, share) => sum + share, 0)
      const part = (share: number, look: "ours" | "others", words: string): string => {
        const width = (share / PLACES) * 488
        const drawn = box({ x, y: 16 + row * 46, width: width - 2, height: 36 }, look, [], [words])
        x += width
        return drawn
      }
      return [
        text([24, 39 + row * 46], name, { anchor: "start", isStrong: true }),
        ...shares.map((share) => part(share, "ours", `${share}`)),
        part(free, "others", free > PLACES / 10 ? `${free} free` : `${free}`),
      ]
    }),
    text([208, 218], `Calls in flight of each caller, and free places, of ${places} (--max-in-flight)`, {
      anchor: "start",
    }),
  ])
}
