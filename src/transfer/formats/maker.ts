import type { Format } from './format.js'
import type { FormatName } from './format-names.js'
import type { FieldRules, Intake } from './intake.js'

/** Gives what makes readers of a format; each is loaded only for an input that needs it. */
export function formatMaker(name: FormatName, intake: Intake, rules: FieldRules): Promise<() => Format> {
  return makers[name](intake, rules)
}

const makers: Record<FormatName, (intake: Intake, rules: FieldRules) => Promise<() => Format>> = {
  ndjson: async (intake) => {
    const { Ndjson } = await import('./ndjson.js')
    return () => new Ndjson(intake)
  },
  json: async (intake) => {
    const { JsonValues } = await import('./json-values.js')
    return () => new JsonValues(intake)
  },
  csv: async (intake, rules) => {
    const { Csv } = await import('./csv.js')
    return () => new Csv(intake, rules, ',')
  },
  tsv: async (intake, rules) => {
    const { Csv } = await import('./csv.js')
    return () => new Csv(intake, rules, '\t')
  },
}
