/** True in `pnpm test:long`, which searches as widely as each test can. */
const isLongRun: boolean = process.env.TESTS === "long"

/**
 * Returns how many examples a test tries: `everyTime` in `pnpm test`, and `long` in `pnpm test:long`. A test that
 * searches widely tries few examples on each change, and all of them before a release.
 */
export function examples(everyTime: number, long: number): number {
  return isLongRun ? long : everyTime
}
