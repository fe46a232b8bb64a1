/** The text of a file. `page-texts.ts` loads it, in the build and in tests. */
declare module "*?text" {
  const text: string
  export default text
}

/** A script for browsers, with all of its imports. `page-texts.ts` bundles it. */
declare module "*?script" {
  const script: string
  export default script
}
