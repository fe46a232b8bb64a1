import { IN_PROCESS } from "../in-process/contenders.ts"
import { ON_REDIS } from "../redis/contenders.ts"
import type { ContenderKind } from "./contender.ts"
import { NOBODY } from "./names.ts"

/** All contenders by name. */
export const CONTENDERS: Readonly<Record<string, ContenderKind>> = {
  ...IN_PROCESS,
  ...ON_REDIS,
  [NOBODY]: {
    sends: [],
    create: async () => ({ count: async () => true, judge: () => "granted", judgeError: () => "failed" }),
  },
}
