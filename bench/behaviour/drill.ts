import type { Place, World } from "./world.ts"

/** The observed behavior of one contender. */
export interface Finding {
  /** Whether the contender behaved as wanted. */
  readonly isGood: boolean
  /** A short description of the observation. */
  readonly seen: string
  /** The figures on which the verdict is based. */
  readonly figures: Readonly<Record<string, unknown>>
}

export interface Drill {
  /** The heading of the drill's column, one or two words long. */
  readonly name: string
  /** A line that describes what the drill does. */
  readonly asks: string
  /** A line that describes the behavior that a client or the owner of a service expects. */
  readonly wants: string
  /** The additional processes that run apps. */
  readonly places?: readonly Place[]
  /** True if contenders run the drill one after the other, because they would slow each other down. */
  readonly isAlone?: boolean
  run(world: World): Promise<Finding>
}
