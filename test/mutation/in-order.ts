import { relative } from "node:path"
import type { TestSequencer, TestSpecification } from "vitest/node"

/**
 * Returns a sequencer that runs files in this order. If a file notices a mutant, later files need not try it.
 * Patterns in `files` do not affect the order.
 */
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
