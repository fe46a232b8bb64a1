/** The results of some requests of one user. */
export interface Round {
  readonly user: string
  readonly admitted: number
  readonly refused: number
  /** The rule in the last refusal, and the rule's message to the client. Empty if nothing was refused. */
  readonly rule: string
  readonly told: string
}

/** The part of a refusal's body that is shown. */
interface Refusal {
  readonly "violated-policies"?: readonly string[]
  readonly rejection?: string
}

/** Sends `times` requests of a user, one after another. */
export async function ask(url: string, user: string, times: number): Promise<Round> {
  let admitted = 0
  let refusal: Refusal | undefined
  for (let sent = 0; sent < times; sent += 1) {
    const answer = await fetch(url, { headers: { "x-user-id": user } })
    if (answer.status === 200) admitted += 1
    else if (answer.status === 429) refusal = (await answer.json()) as Refusal
    else throw new Error(`${url} answered with ${answer.status}`)
  }
  return {
    user,
    admitted,
    refused: times - admitted,
    rule: refusal?.["violated-policies"]?.join(", ") ?? "",
    told: refusal?.rejection ?? "",
  }
}
