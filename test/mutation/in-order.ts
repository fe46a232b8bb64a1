import { relative } from "node:path"
import type { TestSequencer, TestSpecification } from "vitest/node"

/** Runs files in this order: where one has noticed a mutant, those after it need not try. A pattern has no order. */
export function inOrder(files: readonly string[]): new () => TestSequencer {
  return class implements TestSequencer {
    shard(specifications: TestSpecification[]): TestSpecification[] {
      return specifications
    }

    sort(specifications: TestSpecification[]): TestSpecification[] {
      const place = ({ moduleId }: TestSpecification) => files.indexOf(relative(process.cwd(), moduleId))
      return specifications.toSorted((one, other) => place(one) - place(other))
    }
  }
}
