import type { Page, Request } from "playwright-core"
import { HEAD_LENGTH, type Point } from "../../../docs/pictures/draw.ts"

/** A rectangle on the page, in pixels. */
export interface Rect {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** A box or a lane. */
export interface MeasuredBox {
  readonly rect: Rect
  readonly isLane: boolean
  /** The box's own words, without the words of boxes inside it. */
  readonly words: string
  /** The indexes of the boxes that contain this box, in the list of boxes. */
  readonly inside: readonly number[]
}

/** A line of text. */
export interface MeasuredText {
  readonly rect: Rect
  readonly words: string
  readonly fontSize: number
  /** Contrast with the color behind the text, from 1 to 21. */
  readonly contrast: number
  /** The indexes of the boxes that contain this text, in the list of boxes. The last index is the text's own box. */
  readonly inside: readonly number[]
}

/** The measurements of a picture in Chromium. */
export interface Measured {
  readonly width: number
  readonly height: number
  readonly boxes: readonly MeasuredBox[]
  readonly texts: readonly MeasuredText[]
  /** Points on each arrow, at most three pixels apart. */
  readonly arrows: readonly (readonly Point[])[]
  /** Points on each curve and each grid line of a chart. */
  readonly curves: readonly (readonly Point[])[]
  /** The URLs that the picture requests. */
  readonly requests: readonly string[]
}

/** Opens a picture in a page of Chromium, in light or dark mode, and measures the picture. */
export async function measure(page: Page, svg: string, colorScheme: "light" | "dark"): Promise<Measured> {
  const requests: string[] = []
  const listener = (request: Request): void => void requests.push(request.url())
  page.on("request", listener)
  await page.emulateMedia({ colorScheme })
  await page.setContent(`<!doctype html><style>body { margin: 0 }</style>${svg}`)
  const measured = await page.evaluate<Omit<Measured, "requests">>(IN_PAGE)
  page.off("request", listener)
  return { ...measured, requests }
}

/**
 * Returns a `Measured` without the requests. The code is plain JavaScript, because the tests have no types for
 * browser APIs.
 */
const IN_PAGE = String.raw`(() => {
  const svg = document.querySelector("svg")
  const groups = [...svg.querySelectorAll(".box, .lane")]
  const rectOf = (element) => {
    const { left, top, right, bottom } = element.getBoundingClientRect()
    return { left, top, right, bottom }
  }
  const frameOf = (group) => group.querySelector(":scope > rect")
  const around = (element) => groups.flatMap((group, i) => (group !== element && group.contains(element) ? [i] : []))

  const luminance = (color) => {
    const [r, g, b] = color.match(/\d+/g).map((part) => {
      const value = part / 255
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  /** The background of a text is the last rectangle that is drawn before the text and contains its center. */
  const colorBehind = (text) => {
    const { left, top, right, bottom } = text.getBoundingClientRect()
    const [x, y] = [(left + right) / 2, (top + bottom) / 2]
    const behind = [...svg.querySelectorAll("rect")].filter((rect) => {
      const area = rect.getBoundingClientRect()
      const isBefore = rect.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING
      return isBefore && area.left <= x && x <= area.right && area.top <= y && y <= area.bottom
    })
    return behind.length > 0 ? getComputedStyle(behind.at(-1)).fill : "rgb(255, 255, 255)"
  }
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((one, other) => one - other)
    return (light + 0.05) / (dark + 0.05)
  }
  const pointsOn = (line) => {
    const length = line.getTotalLength()
    return Array.from({ length: Math.ceil(length / 3) + 1 }, (_, i) => {
      const { x, y } = line.getPointAtLength(Math.min(3 * i, length))
      return [x, y]
    })
  }

  return {
    width: svg.clientWidth,
    height: svg.clientHeight,
    boxes: groups.map((group) => ({
      rect: rectOf(frameOf(group)),
      isLane: group.classList.contains("lane"),
      words: [...group.querySelectorAll(":scope > text")].map((text) => text.textContent).join(" "),
      inside: around(group),
    })),
    texts: [...svg.querySelectorAll("text")].map((text) => ({
      rect: rectOf(text),
      words: text.textContent,
      fontSize: Number.parseFloat(getComputedStyle(text).fontSize),
      contrast: contrast(getComputedStyle(text).fill, colorBehind(text)),
      inside: around(text),
    })),
    arrows: [...svg.querySelectorAll(".line")].map(pointsOn),
    curves: [...svg.querySelectorAll(".curve, .grid")].map(pointsOn),
  }
})()`

/** Minimum space between a text and the left and right edges of its box. */
const PADDING = 4

/** Returns descriptions of the mistakes in a picture that readers would see. */
export function findMistakes({ width, height, boxes, texts, arrows, curves, requests }: Measured): string[] {
  const picture: Rect = { left: 0, top: 0, right: width, bottom: height }
  const leavesItsBox = ({ rect, inside }: MeasuredText): boolean => {
    const own = boxes[inside.at(-1) ?? -1]
    const room = { ...rect, left: rect.left - PADDING, right: rect.right + PADDING }
    return own !== undefined && !isWithin(room, own.rect)
  }
  return [
    ...requests.map((url) => `the picture requests ${url}`),
    ...texts.flatMap((text, at) => [
      ...(text.fontSize < 13 ? [`"${text.words}" has only ${text.fontSize} px`] : []),
      ...(text.contrast < 4.5 ? [`"${text.words}" has a contrast of only ${text.contrast.toFixed(1)}`] : []),
      ...(isWithin(text.rect, picture) ? [] : [`"${text.words}" leaves the picture`]),
      ...(leavesItsBox(text) ? [`"${text.words}" leaves its box`] : []),
      ...boxes
        .filter((box, number) => !text.inside.includes(number) && runsInto(text.rect, box))
        .map((box) => `"${text.words}" runs into the box "${box.words}"`),
      ...texts
        .slice(at + 1)
        .filter(({ rect }) => overlap(text.rect, rect))
        .map(({ words }) => `"${text.words}" covers "${words}"`),
    ]),
    ...boxes.flatMap((box, at) => [
      ...(isWithin(box.rect, picture) ? [] : [`the box "${box.words}" leaves the picture`]),
      ...box.inside
        .filter((number) => !isWithin(box.rect, boxes[number]?.rect ?? picture))
        .map((number) => `the box "${box.words}" leaves the box "${boxes[number]?.words}"`),
      ...boxes
        .slice(at + 1)
        .filter((other) => !other.inside.includes(at) && !box.isLane && runsInto(box.rect, other))
        .map((other) => `the box "${box.words}" runs into the box "${other.words}"`),
    ]),
    ...curves.flatMap((points) =>
      texts
        // A box hides the lines behind it.
        .filter(({ rect, inside }) => inside.length === 0 && points.some((point) => contains(rect, point)))
        .map(({ words }) => `a line of a chart runs through "${words}"`),
    ),
    ...arrows.flatMap((points) => [
      ...texts
        .filter(({ rect }) => points.some((point) => contains(rect, point)))
        .map(({ words }) => `an arrow runs through "${words}"`),
      ...boxes
        .filter(({ rect, isLane }) => !isLane && passesThrough(points, rect))
        .map(({ words }) => `an arrow runs through the box "${words}"`),
      ...endsOf(points)
        .filter((end) => !boxes.some(({ rect, isLane }) => !isLane && contains(grown(rect, 1), end)))
        .map((end) => `an arrow begins or ends at ${end.map(Math.round)}, where no box is`),
    ]),
  ]
}

/** Whether a rectangle overlaps a box. A rectangle may lie completely inside a lane, but not partly. */
function runsInto(rect: Rect, box: MeasuredBox): boolean {
  return overlap(rect, box.rect) && !(box.isLane && isWithin(rect, box.rect))
}

function overlap(a: Rect, b: Rect): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

function isWithin(inner: Rect, outer: Rect): boolean {
  return (
    inner.left >= outer.left &&
    inner.right <= outer.right &&
    inner.top >= outer.top &&
    inner.bottom <= outer.bottom
  )
}

function contains({ left, top, right, bottom }: Rect, [x, y]: Point): boolean {
  return x > left && x < right && y > top && y < bottom
}

/** Whether an arrow passes through a rectangle, in which the arrow neither begins nor ends. */
function passesThrough(points: readonly Point[], rect: Rect): boolean {
  const [start, tip] = endsOf(points)
  const isThere = points.some((point) => contains(grown(rect, -1), point))
  return isThere && !contains(grown(rect, 1), start) && !contains(grown(rect, 1), tip)
}

/** Returns the beginning of an arrow, and the tip of its head. */
function endsOf(points: readonly Point[]): [Point, Point] {
  const [[x1, y1] = [0, 0], [x2, y2] = [0, 0]] = points.slice(-2)
  const scale = HEAD_LENGTH / Math.hypot(x2 - x1, y2 - y1)
  return [points[0] ?? [0, 0], [x2 + (x2 - x1) * scale, y2 + (y2 - y1) * scale]]
}

function grown({ left, top, right, bottom }: Rect, by: number): Rect {
  return { left: left - by, top: top - by, right: right + by, bottom: bottom + by }
}
