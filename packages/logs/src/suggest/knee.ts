import type { PeakCurve } from "./peak-curve.ts"

/** The minimum number of clients and of distinct peaks. A smaller curve has no recognizable shape. */
const FEWEST_CLIENTS = 20
const FEWEST_POINTS = 3

/**
 * No client is above the largest one, so its logarithm would be minus infinity. Use half a client, which continues a
 * straight line on average.
 */
const LEAST_HEIGHT = 0.5

/**
 * The minimum distance of the curve below its chord, if both axes are scaled to 1. A straight line (a power law) with
 * a random tail stays within about 0.1. Many ordinary clients and a few programs reach 0.2 and more.
 */
const LEAST_DISTANCE = 0.15

/**
 * Returns the peak at which the curve has a knee; undefined if the curve has no knee. The curve is log(peak) against
 * the logarithm of the number of clients above it. Below the knee, the number of clients falls quickly, because these
 * are the ordinary clients. Above the knee, a few clients are far apart.
 */
export function kneeOf(curve: PeakCurve): number | undefined {
  const points: { readonly peak: number; readonly x: number; readonly y: number }[] = []
  for (const peak of curve.peaks) {
    const clients = Math.max(LEAST_HEIGHT, curve.above(peak).clients)
    points.push({ peak, x: Math.log(peak), y: Math.log(clients) })
  }
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined || points.length < FEWEST_POINTS) return undefined
  if (curve.all.clients < FEWEST_CLIENTS) return undefined
  const width = last.x - first.x
  const height = first.y - last.y
  if (width <= 0 || height <= 0) return undefined
  let knee: number | undefined
  let farthest = LEAST_DISTANCE
  for (const { peak, x, y } of points) {
    // The chord falls from 1 to 0, while the scaled x rises from 0 to 1.
    const below = 1 - (x - first.x) / width - (y - last.y) / height
    const distance = below / Math.SQRT2
    if (distance <= farthest) continue
    farthest = distance
    knee = peak
  }
  return knee
}
