import { describe, expect, it } from "vitest"
import { Queue, type Waiter } from "./queue.ts"

const waiter = (number: number, isAsking = false): Waiter => ({ number, isAsking })

function numbersOf(queue: Queue<Waiter>): number[] {
  const numbers: number[] = []
  for (let place = queue.first; place !== undefined; place = place.behind) numbers.push(place.who.number)
  return numbers
}

describe("a queue", () => {
  it("puts who comes behind all who came earlier and those who are asking, and lets anybody out", () => {
    const queue = new Queue<Waiter>()
    const places = [waiter(5, true), waiter(3), waiter(4), waiter(2)].map((who) => queue.add(who))
    expect([numbersOf(queue), queue.size]).toEqual([[5, 2, 3, 4], 4])
    queue.remove(places[1] as (typeof places)[0])
    expect([numbersOf(queue), queue.first?.who.number, queue.last?.who.number]).toEqual([[5, 2, 4], 5, 4])
    queue.remove(places[0] as (typeof places)[0])
    queue.remove(places[2] as (typeof places)[0])
    expect([numbersOf(queue), queue.first, queue.size]).toEqual([[2], queue.last, 1])
  })

  it("leaves nobody with a place from which the others can be reached: they would be kept as long as it is", () => {
    const queue = new Queue<Waiter>()
    const [first, second, third] = [1, 2, 3].map((number) => queue.append(waiter(number)))
    queue.remove(second as NonNullable<typeof second>)
    expect([second?.ahead, second?.behind]).toEqual([undefined, undefined])
    expect([first?.behind, third?.ahead]).toEqual([third, first])
  })

  it("looks at nobody but the last to put who comes behind it, however many there are", () => {
    const queue = new Queue<Waiter>()
    let looks = 0
    for (let number = 0; number < 1_000; number++) {
      queue.add({
        get number() {
          looks++
          return number
        },
        isAsking: false,
      })
    }
    expect(looks).toBeLessThan(1_000 * 3)
  })
})
