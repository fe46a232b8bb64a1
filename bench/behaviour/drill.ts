import type { Place, World } from "./world.ts"

/** The observed behavior of one contender. */
export interface Finding {
  /** Whether the contender behaved as wanted. */
  readonly isGood: boolean
  /** The observation in a few words. */
  readonly seen: string
  /** The figures on which the verdict is based. */
  readonly figures: Readonly<Record<string, unknown>>
}

export interface Drill {
  /** One or two words, which are the heading of a column. */
  readonly name: string
  /** A line that describes what the drill does. */
  readonly asks: string
  /** A line that describes what a client or the owner of a service would want. */
  readonly wants: string
  /** The processes that run apps, besides the first one. */
  readonly places?: readonly Place[]
  /** Whether contenders take the drill one after the other, because they would slow each other down. */
  readonly isAlone?: boolean
  run(world: World): Promise<Finding>
}
