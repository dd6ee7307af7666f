import type { Format } from './format.js'
import type { FormatName } from './format-names.js'
import type { FieldRules, Intake } from './intake.js'

/** Makes what reads a format; each is loaded only for an input that needs it. */
export async function makeFormat(name: FormatName, intake: Intake, rules: FieldRules): Promise<Format> {
  return makers[name](intake, rules)
}

const makers: Record<FormatName, (intake: Intake, rules: FieldRules) => Promise<Format>> = {
  ndjson: async (intake) => new (await import('./ndjson.js')).Ndjson(intake),
  json: async (intake) => new (await import('./json-values.js')).JsonValues(intake),
  csv: async (intake, rules) => new (await import('./csv.js')).Csv(intake, rules, ','),
  tsv: async (intake, rules) => new (await import('./csv.js')).Csv(intake, rules, '\t'),
}
