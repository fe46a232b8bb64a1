/** A stream to write to, such as `process.stdout`. */
export interface Output {
  readonly isTTY?: boolean | undefined
  write(text: string): unknown
}

/** The environment of a run, apart from files and the network. `process` implements it. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
}
