import { type Frame, type Point, picture, type Style, WIDTH } from "./draw.ts"

/** A picture of docs/pictures. */
export interface Diagram {
  /** The name of the file in docs/pictures. */
  readonly file: string
  /** The content of the picture in words. Documents have it as alt text. */
  readonly description: string
  readonly svg: string
}

/** The x of the middle of every picture. */
export const MIDDLE: number = WIDTH / 2

/** Draws a picture of parts, and names its file. `style` has the colors of additional elements. */
export function diagram(file: string, frame: Frame, parts: readonly string[], style?: Style): Diagram {
  return { file, description: frame.description, svg: picture(frame, parts, style) }
}

/** Returns the ends of a horizontal arrow. */
export function across(y: number, from: number, to: number): Point[] {
  return [
    [from, y],
    [to, y],
  ]
}

/** Returns the ends of a vertical arrow. */
export function down(x: number, from: number, to: number): Point[] {
  return [
    [x, from],
    [x, to],
  ]
}
