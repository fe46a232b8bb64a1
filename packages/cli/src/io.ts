/** A stream to write to, as `process.stdout` is one. */
export interface Output {
  readonly isTTY?: boolean | undefined
  write(text: string): unknown
}

/** What a run of the program has of the world beside files and the network; `process` is one. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
}
