/** One place of a script changed: a mistake that somebody could make, and that a test has to notice. */
export interface Mutant {
  /** The script's name in packages/core/src/stores/redis/scripts, without its ending. */
  readonly script: string
  /** Text that is in the script once. */
  readonly text: string
  readonly replacement: string
  /** The file of tests that goes red. */
  readonly suite: string
}

/** By script: a text of it, what is put in its place and, where it is not the differential test, the file in test/redis that goes red. */
export type Replacements = Readonly<
  Record<string, readonly (readonly [text: string, replacement: string, suite?: string])[]>
>
