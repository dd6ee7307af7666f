import type { Format } from './format.js'
import type { FormatName } from './format-names.js'
import type { Intake } from './intake.js'
import { Ndjson } from './ndjson.js'

/** Makes what reads a format. */
export async function makeFormat(name: FormatName, intake: Intake): Promise<Format> {
  if (name !== 'ndjson') throw new Error('not yet')
  return new Ndjson(intake)
}
