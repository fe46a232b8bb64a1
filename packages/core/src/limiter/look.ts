import type { Answer } from "../stores/store.ts"
import type { Ask } from "./ask.ts"

/** Sees how a store has answered, before it is a decision: `asked[i]` is what the answer's i-th check answers. */
export type Look = (asked: readonly Ask[], answer: Answer) => void
