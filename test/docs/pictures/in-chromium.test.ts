import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { drawDiagrams, drawPackages } from "../../../docs/pictures/diagrams.ts"
import { arrow, box, curve, lane, picture, text } from "../../../docs/pictures/draw.ts"
import { startChromium } from "../../servers/chromium.ts"
import { findMistakes, type Measured, measure } from "./measured.ts"
import { TWENTY_PACKAGES } from "./twenty-packages.ts"

let browser: Browser
let page: Page
beforeAll(async () => {
  browser = await startChromium()
  page = await browser.newPage()
  // The timeout is long enough to download Chromium over a slow network.
}, 600_000)
afterAll(() => browser?.close())

const pictures = [...(await drawDiagrams()), { ...drawPackages(TWENTY_PACKAGES), file: "of twenty packages" }]

describe.each(pictures)("the picture $file", ({ svg }) => {
  it("is readable in Chromium, in light and in dark mode", async () => {
    const [light, dark] = [await measure(page, svg, "light"), await measure(page, svg, "dark")]
    expect(findMistakes(light)).toEqual([])
    expect(findMistakes(dark)).toEqual([])
    const contrasts = ({ texts }: Measured): number[] => texts.map(({ contrast }) => contrast)
    expect(contrasts(dark)).not.toEqual(contrasts(light))
    // The measurement must include every text and every arrow.
    expect(light.texts).toHaveLength(svg.match(/<text/g)?.length ?? 0)
    expect(light.arrows).toHaveLength(svg.match(/<path class="line/g)?.length ?? 0)
    expect(light.width).toBe(720)
  })
})

describe("the check of pictures", () => {
  const area = { x: 100, y: 20, width: 120, height: 60 }
  const below = { ...area, y: 120 }
  const right = { ...area, x: 300 }

  it.each([
    ["a text that leaves the picture", [text([700, 40], "far right")], ['"far right" leaves the picture']],
    [
      "a text that is too long for its box",
      [box(area, "ours", ["a name that is much too long"], [])],
      ['"a name that is much too long" leaves its box'],
    ],
    [
      "a text that runs into a box",
      [box(area, "ours", ["Box"], []), text([90, 30], "beside it")],
      ['"beside it" runs into the box "Box"'],
    ],
    [
      "a text that covers another",
      [text([100, 40], "one text"), text([120, 45], "another")],
      ['"one text" covers "another"'],
    ],
    [
      "a text that leaves a lane",
      [lane(area, "Lane"), text([210, 70], "too far")],
      ['"too far" runs into the box "Lane"'],
    ],
    [
      "two boxes that overlap",
      [box(area, "ours", ["One"], []), box({ ...area, y: 70 }, "ours", ["Two"], [])],
      ['the box "One" runs into the box "Two"'],
    ],
    [
      "a box that leaves the box around it",
      [box(area, "ours", [], [], { parts: [box({ ...area, x: 150 }, "ours", ["Inner"], [])] })],
      ['the box "Inner" leaves the box ""'],
    ],
    [
      "an arrow that runs through a box and its text",
      [
        box(below, "ours", ["Box"], []),
        arrow(
          [
            [160, 80],
            [160, 190],
          ],
          "ours",
        ),
      ],
      [
        'an arrow runs through "Box"',
        'an arrow runs through the box "Box"',
        "an arrow begins or ends at 160,80, where no box is",
        "an arrow begins or ends at 160,190, where no box is",
      ],
    ],
    [
      "an arrow that does not reach a box",
      [
        box(area, "ours", ["One"], []),
        box(right, "ours", ["Two"], []),
        arrow(
          [
            [220, 50],
            [295, 50],
          ],
          "ours",
        ),
      ],
      ["an arrow begins or ends at 295,50, where no box is"],
    ],
    [
      "a line of a chart that runs through a text",
      [
        text([160, 50], "crossed"),
        curve(
          [
            [100, 46],
            [200, 46],
          ],
          "ours",
        ),
      ],
      ['a line of a chart runs through "crossed"'],
    ],
    [
      "a text that is too small",
      [text([360, 100], "small").replace("<text", '<text style="font-size: 12px"')],
      ['"small" has only 12 px'],
    ],
    [
      "a text that is too pale",
      [text([360, 100], "pale").replace("<text", '<text style="fill: #bbb"')],
      ['"pale" has a contrast of only 1.9'],
    ],
  ])("detects %s", async (_mistake, parts, expected) => {
    const svg = picture({ title: "A test", description: "A test.", height: 200 }, parts)
    expect(findMistakes(await measure(page, svg, "light"))).toEqual(expected)
  })

  it("accepts boxes in boxes and lanes, with an arrow between them", async () => {
    const inner = { x: 112, y: 65, width: 96, height: 28 }
    const svg = picture({ title: "A test", description: "A test.", height: 200 }, [
      lane({ x: 80, y: 0, width: 160, height: 140 }, "Lane"),
      box({ ...area, y: 40 }, "ours", ["Outer"], [], {
        parts: [box(inner, "others", [], ["inner"])],
        partsHeight: 35,
      }),
      box(right, "others", ["Box"], []),
      arrow(
        [
          [208, 79],
          [300, 79],
        ],
        "ours",
      ),
      text([270, 70], "asks"),
    ])
    expect(findMistakes(await measure(page, svg, "dark"))).toEqual([])
  })
})
