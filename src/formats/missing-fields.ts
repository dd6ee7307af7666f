/*
 * The error for a table or a list that lacks a column or a key that an import needs.
 *
 * A person who follows the hint must not get the same error again. So the hint depends on the
 * options: `--by-name` does not help if `--map` names a column of ids that the file lacks, and a
 * column of one file does not help if another file has other columns.
 */
import { PlantsError } from '../errors.js'
import type { FieldName } from '../plant/fields.js'
import { quoteWord } from '../platform/shell.js'
import type { InputOptions } from './chunk.js'
import { assignsIds, idOptionsHint, listNames } from './columns.js'
import { listColumnHints, type TableSample } from './propose-columns.js'

export class MissingFieldsError extends PlantsError {
  constructor(message: string, hint: string) {
    super('input', message, { hint })
  }
}

interface FieldSource {
  /** The file, for messages. */
  name: string
  noun: 'column' | 'key'
  /** Says which columns or keys are there instead: `line 3 has only "Nr", "Kind"`. */
  description: string
  /** The first rows of a table without a header; undefined for JSON, and with `--columns`. */
  sample?: TableSample | undefined
  /** Whether there is a column or key of the tags. */
  hasTag: boolean
}

export const separatePairsHint = 'Separate the fields by commas: --map id=A,name=B'
const changeTagsHint = 'To change only the tags of plants that exist, add --if-exists update'

export function createMissingFieldsError(
  missingFields: readonly FieldName[],
  options: InputOptions,
  source: FieldSource,
): MissingFieldsError {
  const { name, noun, description } = source
  const isIgnored = (field: FieldName) => options.map[field] === ''
  const neededFields = missingFields.filter((field) => !isIgnored(field))
  if (missingFields.some(isIgnored) && (neededFields.length === 0 || isIgnored('name')))
    return createIgnoredError(isIgnored('name') ? 'name' : 'id', source)
  const names = listNames(neededFields.map((field) => options.map[field] ?? field))
  return new MissingFieldsError(
    `${name} has no ${neededFields.length === 1 ? noun : `${noun}s`} ${names}: ${description}`,
    chooseHints(missingFields, options, source).join('. '),
  )
}

/** Creates the error for a field that `--map` excludes, as in `--map id=`. */
function createIgnoredError(field: 'id' | 'name', { name, noun }: FieldSource): MissingFieldsError {
  const hint =
    field === 'id' ? idOptionsHint : `In --map, replace name= with name=${noun.toUpperCase()}`
  return new MissingFieldsError(`The ${field}s in ${name} are ignored, but plants need them`, hint)
}

function chooseHints(
  missingFields: readonly FieldName[],
  options: InputOptions,
  { noun, sample, hasTag }: FieldSource,
): string[] {
  const { map } = options
  const canGenerate = missingFields.includes('id') && !map.id && !assignsIds(options)
  const canChangeTags = hasTag && missingFields.join() === 'name' && options.idFrom === undefined
  const tagHints = canChangeTags ? [changeTagsHint] : []
  const otherHints = [...(canGenerate ? [idOptionsHint] : []), ...tagHints]
  const wrongNames = missingFields.map((field) => map[field] ?? '').filter(Boolean)
  if (wrongNames.some((wrongName) => /[\s;|&](?:id|name|tag)\s*=/.test(wrongName)))
    return [separatePairsHint]
  if (wrongNames.length > 0) {
    const numbers = noun === 'column' ? ' or their numbers' : ''
    return [`In --map, give ${noun}s that are there, by their exact names${numbers}`, ...otherHints]
  }
  const placeholder = noun.toUpperCase()
  if (missingFields.join() === 'id')
    return [...otherHints, `If a ${noun} has the ids, name it with --map id=${placeholder}`]
  if (noun === 'column' && !sample)
    return [`In --columns, name a column ${missingFields.join(' and ')}`, ...otherHints]
  const pairs = missingFields
    .filter((field) => map[field] !== '')
    .map((field) => `${field}=${placeholder}`)
  const ownIds = `--map ${pairs.join()}`
  const generatedIds = `--map name=${placeholder} --by-name`
  const mapOption = canGenerate
    ? `${ownIds} or, if the plants have no ids, with ${generatedIds}`
    : ownIds
  if (!sample) return [`Name the keys with ${mapOption}`, ...tagHints]
  const mapHint = `Choose the columns by name or number with ${mapOption}`
  return listColumnHints(sample, options, mapHint, tagHints)
}

/**
 * Extends the hint of an error if there are several files. The options that it names help for all
 * files if the first one lacks them. If a later one lacks them, it needs its own command.
 */
export function explainOneOfSeveral(
  { message, hint }: MissingFieldsError,
  { file, isFirst }: { file: string; isFirst: boolean },
  { storeFlag = '' }: InputOptions,
): MissingFieldsError {
  const ownCommand = `Import it with its own command: plants import ${quoteWord(file)}${storeFlag}`
  return new MissingFieldsError(
    message,
    isFirst ? `${hint}. ${oneByOneHint}` : `${ownCommand}. ${hint}`,
  )
}

const oneByOneHint = 'If the other files have other columns or keys, import them one by one'
