/** An error whose message says in one line who cannot listen where, and why. */
export function cannotListen(who: string, address: string): (error: unknown) => never {
  return (error) => {
    const { message } = error as Error
    const why = message.includes("EADDRINUSE") ? "the port is in use" : message
    throw new Error(`${who} cannot listen on ${address}: ${why}`, { cause: error })
  }
}
