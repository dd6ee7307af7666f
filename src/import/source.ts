import { isObject } from '../plant/json.js'
import { formatRejectsHeader } from './format-rejects.js'
import type { ImportPlan, InputReader } from './inputs.js'

/**
 * Describes the source of an import: the contents of its files, the options that decide what a
 * record is, and the format and the header that were detected. Two imports with the same
 * description have the same records at the same positions. Options that only decide how an import
 * runs, such as `--concurrency`, are not a part of the description.
 */
export function describeSource(
  plan: ImportPlan,
  hashes: readonly string[] | undefined,
  firstReader: InputReader,
): string {
  const { format, sheet, encoding, delimiter, map, columns, match } = plan
  const quotes = plan.quotes === false ? false : undefined
  const idFrom = plan.idFrom?.toString()
  const options = { format, sheet, encoding, delimiter, quotes, map, columns, idFrom, match }
  // The description is stored in checkpoints, so its members keep their names.
  const detectedFormat = [firstReader.format, formatRejectsHeader(firstReader)]
  return JSON.stringify({ hashes, ...options, found: detectedFormat })
}

/**
 * Describes why an interrupted import cannot resume, as the end of a sentence.
 *
 * @param before the source in the checkpoint
 * @param now the source of this command
 */
export function describeDifference(before: string, now: string, plan: ImportPlan): string {
  if (before === now) return '--atomic cannot resume it'
  const names = findDifferences(parseSource(before), parseSource(now), plan)
  if (names.length === 0) return 'its files are read in another way now'
  const subject = [names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ')
  return `${subject} ${names.length === 1 ? 'has' : 'have'} changed since`
}

/** Returns the names of the files that have other contents, and of the options that differ. */
function findDifferences(
  before: ParsedSource,
  now: ParsedSource,
  { inputs }: ImportPlan,
): string[] {
  const hashesBefore = toArray(before['hashes'])
  const hashes = toArray(now['hashes'])
  const files = inputs.filter((_, index) => hashesBefore[index] !== hashes[index])
  const options = Object.entries(optionNames)
    .filter(([key]) => JSON.stringify(before[key]) !== JSON.stringify(now[key]))
    .map(([, option]) => option)
  return [...files.map(({ name }) => name), ...options]
}

type ParsedSource = Record<string, unknown>

function parseSource(source: string): ParsedSource {
  try {
    const value: unknown = JSON.parse(source)
    return isObject(value) ? value : {}
  } catch (error) {
    if (error instanceof SyntaxError) return {}
    throw error
  }
}

/** Another program may have stored anything instead of hashes. */
function toArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The options that say what a record is, by their members of the source. */
const optionNames = {
  format: '--format',
  encoding: '--encoding',
  delimiter: '--delimiter',
  quotes: '--no-quotes',
  map: '--map',
  columns: '--columns',
  sheet: '--sheet',
  idFrom: '--id-from',
  match: '--match',
}
