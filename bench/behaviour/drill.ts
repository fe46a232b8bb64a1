import type { Place, World } from "./world.ts"

/** What was observed of one contender. */
export interface Finding {
  /** Whether it did what is wanted. */
  readonly isGood: boolean
  /** In a few words. */
  readonly seen: string
  /** The figures behind both. */
  readonly figures: Readonly<Record<string, unknown>>
}

export interface Drill {
  /** One word or two, the head of a column. */
  readonly name: string
  /** What is done, in one line. */
  readonly asks: string
  /** What a client or the owner of a service would want of it, in one line. */
  readonly wants: string
  /** Where apps are started beside the first process. */
  readonly places?: readonly Place[]
  /** Whether contenders take it one after the other, since they would take each other's time. */
  readonly isAlone?: boolean
  run(world: World): Promise<Finding>
}
