/** A stream to write to, such as `process.stdout`. */
export interface Output {
  readonly isTTY?: boolean | undefined
  /** The size of the terminal. */
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  write(text: string): unknown
}

/** The environment of a run, apart from files and the network. `process` implements it. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Calls `listener` when the user presses Ctrl+C, which then does not end the process. */
  once?(event: "SIGINT", listener: () => void): unknown
}
