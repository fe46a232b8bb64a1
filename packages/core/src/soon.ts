/** Runs it once what runs now has ended. By a promise: a test that fakes timers may have stopped `queueMicrotask`. */
export function soon(run: () => void): void {
  void Promise.resolve().then(run)
}
