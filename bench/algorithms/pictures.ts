import { describe, draw } from "./picture.ts"
import { tell } from "./story.ts"

export interface Picture {
  /** The file in docs/pictures/charts. */
  readonly file: string
  readonly svg: string
  /** The content of the picture in words, for readers who cannot see it. */
  readonly words: string
}

const RULES: Readonly<Record<string, Parameters<typeof tell>[0]>> = {
  "sliding-window": { algorithm: "sliding-window" },
  "sliding-window, 60 buckets": { algorithm: "sliding-window", buckets: 60 },
  "sliding-window-strict": { algorithm: "sliding-window-strict" },
  "sliding-log": { algorithm: "sliding-log" },
  "fixed-window": { algorithm: "fixed-window" },
  "token-bucket": { algorithm: "token-bucket" },
  "leaky-bucket": { algorithm: "leaky-bucket" },
}

/** Draws the picture of each algorithm from the decisions of a limiter. */
export async function drawPictures(): Promise<readonly Picture[]> {
  return Promise.all(
    Object.entries(RULES).map(async ([name, rule]) => {
      const story = await tell(rule)
      const file = `${name.replaceAll(/[^a-z0-9]+/g, "-")}.svg`
      return { file, svg: draw(name, story), words: describe(name, story) }
    }),
  )
}
