import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type RuleSourceUnderTest, ruleSourceContract, type StoredRules } from "@sluice/contracts"
import { parseRuleDocument } from "../packages/core/src/rules/documents/rule-document.ts"
import { fileRules } from "../packages/rules/src/sources/file.ts"
import { staticRules } from "../packages/rules/src/sources/static.ts"
import { runContract } from "./contracts/run-contract.ts"

function fileSource(extension: string): RuleSourceUnderTest {
  return {
    async create(documents) {
      const folder = await mkdtemp(join(tmpdir(), "sluice-"))
      const path = join(folder, `rules.${extension}`)
      const replace = async (text: string): Promise<void> => {
        await writeFile(`${path}.new`, text)
        await rename(`${path}.new`, path)
      }
      // JSON is valid YAML.
      const write = (stored: readonly StoredRules[]) => replace(JSON.stringify(stored))
      await write(documents)
      return {
        source: fileRules(path, { pollMs: 10 }),
        write,
        breakDown: () => replace("["),
        dispose: () => rm(folder, { recursive: true }),
      }
    },
    deviations: [{ behaviour: "lists nothing if nothing is stored", reason: "an empty file is a mistake" }],
  }
}

runContract("a YAML file", ruleSourceContract(fileSource("yaml")))
runContract("a JSON file", ruleSourceContract(fileSource("json")))

const FOR_ALL = "its rules are for every service"
const NEVER_CHANGE = "its rules never change"

const inCode: RuleSourceUnderTest = {
  async create(documents) {
    const rules = documents.flatMap((document) => parseRuleDocument(document))
    const nothing = async (): Promise<void> => {}
    return { source: staticRules(rules), write: nothing, breakDown: nothing, dispose: nothing }
  },
  deviations: [
    { behaviour: "returns the version of the stored rules", reason: "code has no version" },
    {
      behaviour: "keeps the rules of services separate, and returns no rules for an unknown service",
      reason: FOR_ALL,
    },
    {
      behaviour: "returns the valid rules, and the problems of the invalid rules",
      reason: "a wrong rule in code throws immediately",
    },
    { behaviour: "throws from a synchronous load while the rules cannot be read", reason: NEVER_CHANGE },
    { behaviour: "lets a limiter keep its rules while a stored rule is invalid", reason: NEVER_CHANGE },
    { behaviour: "does not load for a signal that has been aborted", reason: "there is nothing to wait for" },
    { behaviour: "loads changed rules on the next load", reason: NEVER_CHANGE },
    {
      behaviour: "returns the latest rules to a call with fresh: true",
      reason: NEVER_CHANGE,
    },
    {
      behaviour: "rejects while the rules cannot be read, and loads them once they can be read",
      reason: NEVER_CHANGE,
    },
    { behaviour: "lists every service, with its rules", reason: FOR_ALL },
    { behaviour: "lists nothing if nothing is stored", reason: FOR_ALL },
    {
      behaviour: "keeps the stamp of unchanged rules, and changes the stamp of changed ones",
      reason: FOR_ALL,
    },
    { behaviour: "rejects a listing while the rules cannot be read", reason: FOR_ALL },
    { behaviour: "does not list for a signal that has been aborted", reason: FOR_ALL },
    { behaviour: "calls its watchers when the stored rules have changed", reason: NEVER_CHANGE },
    {
      behaviour: "stops calling a watcher that was removed, and still calls the others",
      reason: NEVER_CHANGE,
    },
    { behaviour: "updates a limiter, which keeps its counts when a limit changes", reason: NEVER_CHANGE },
  ],
}
runContract("rules in code", ruleSourceContract(inCode))
