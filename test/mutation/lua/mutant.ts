/** A script with one mistake that a developer could make and that a test must notice. */
export interface Mutant {
  /** The script's name in packages/redis/src/scripts, without its extension. */
  readonly script: string
  /** Text that occurs exactly once in the script. */
  readonly text: string
  readonly replacement: string
  /** The test file that must fail. */
  readonly suite: string
}

/**
 * Lists of changes, keyed by script. A change contains a text, its replacement, and the file in test/redis that must
 * fail, or a file in another folder of test. The default file is the differential test.
 */
export type Replacements = Readonly<
  Record<string, readonly (readonly [text: string, replacement: string, suite?: string])[]>
>
