/** The text of a file. `report-texts.ts` of the package loads it, in the build and in tests. */
declare module "*?text" {
  const text: string
  export default text
}

/** A script for browsers, with all of its imports. `report-texts.ts` of the package bundles it. */
declare module "*?script" {
  const script: string
  export default script
}
