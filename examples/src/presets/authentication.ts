/** Who is asking, as the app's authentication found it. */
export interface Account {
  readonly id: string
  readonly plan: "free" | "pro"
}

const accounts: Readonly<Record<string, Account>> = {
  "token-of-ann": { id: "ann", plan: "free" },
  "token-of-bob": { id: "bob", plan: "pro" },
  "token-of-cyd": { id: "cyd", plan: "pro" },
}

/**
 * The account behind an Authorization header; undefined when there is none. It stands in for the app's own
 * authentication: a limit by account is only as good as the proof that the account is the client's.
 */
export function accountOf(authorization: string | undefined): Account | undefined {
  const token = authorization?.match(/^Bearer (\S+)$/i)?.[1]
  return token !== undefined && Object.hasOwn(accounts, token) ? accounts[token] : undefined
}
