import { inputError, PlantsError, usageError } from '../errors.js'
import { describeUnknownFields } from '../output/output.js'
import { isObject, parseJson } from '../plant/json.js'
import {
  describeInvalidPlant,
  listOtherFields,
  parseDecimalId,
  parsePlant,
} from '../plant/plant.js'
import { shorten } from '../platform/escape.js'
import { readText } from '../platform/text-files.js'
import type { InputPlant } from '../stores/next-id.js'
import type { CommandContext } from './command-context.js'
import type { GlobalOptions } from './global-options.js'

export interface PlantOptions extends GlobalOptions {
  id?: string
  name?: string
  tag?: string
  file?: string
  idempotencyKey?: string
}

const onePlantHint =
  'create takes one plant, such as {"id":1,"name":"Fern","tag":"shade"}. For many: plants import'

/**
 * Reads the plant of a create: from options, from JSON in a file or on stdin, or from prompts. No
 * store is open meanwhile, because a person may take long to answer.
 */
export async function readPlant(
  options: PlantOptions,
  context: CommandContext,
): Promise<InputPlant> {
  const { id, name, tag, file, idempotencyKey } = options
  const isNext = id === 'next'
  const hasFields = name !== undefined || tag !== undefined || (id !== undefined && !isNext)
  if (file !== undefined && hasFields)
    throw usageError(
      'A plant from JSON cannot be combined with --name, --tag or --id, except --id next',
      'Leave them out',
    )
  if (isNext && idempotencyKey !== undefined)
    throw usageError('--id next cannot be used with --idempotency-key', 'Give a number as the id')
  const path = file ?? (hasFields || context.io.stdin.isTerminal ? undefined : '-')
  if (path === undefined) return readPlantFromOptions(options, context)
  const value = await readPlantJson(path, context)
  if (isNext && isObject(value) && Object.hasOwn(value, 'id'))
    throw usageError('--id next cannot be used for a plant that has an id', 'Leave one of them out')
  return acceptPlant(value, isNext, onePlantHint, context)
}

async function readPlantFromOptions(
  options: PlantOptions,
  context: CommandContext,
): Promise<InputPlant> {
  const { id, name, tag, idempotencyKey } = options
  const isNext = id === 'next'
  // A text that is not an id stays a text, so that all wrong fields are reported together.
  const given = {
    ...(id !== undefined && { id: parseDecimalId(id) ?? id }),
    ...(name !== undefined && { name }),
    ...(tag !== undefined && { tag }),
  }
  const hasId = id !== undefined && !isNext
  const valid = parsePlant({ name: '', ...given, ...(!hasId && { id: 0n }) })
  const isComplete = id !== undefined && name !== undefined
  if (isComplete || !valid || !context.mayAsk) {
    const both =
      'Give both --id and --name. To read the plant from stdin, give neither of them, nor --tag'
    const digits = 'Give the id in plain digits. To let the store choose it: --id next'
    const isText = typeof given.id === 'string' && !isNext
    const fieldsHint = isText ? digits : 'Correct the options'
    return acceptPlant(given, isNext, isComplete ? fieldsHint : both, context)
  }
  const { askForPlant } = await import('./prompts.js')
  // A create with an idempotency key must have the same id when it is repeated, so the store may
  // not choose it.
  const mayBeNext = idempotencyKey === undefined
  return askForPlant({ id: hasId ? valid.id : id, name, tag }, mayBeNext, context.io)
}

async function readPlantJson(path: string, { io }: CommandContext): Promise<unknown> {
  if (path === '') throw usageError('--file needs a path', 'To read stdin: --file -')
  const isStdin = path === '-'
  const fileHint = 'Give the path of a file that contains one plant as JSON'
  const text = await readText(path, io, isStdin ? onePlantHint : fileHint)
  const source = isStdin ? 'Stdin' : path
  if (text.trim() === '') throw inputError(`${source} is empty`, onePlantHint)
  const parsed = parseJson(text)
  if ('value' in parsed) return parsed.value
  throw inputError(`${source} is not JSON: ${parsed.reason}`, onePlantHint)
}

/**
 * Accepts a plant, and warns of fields that plants do not have.
 *
 * @throws {PlantsError} `invalid` with a sentence for each wrong field
 */
async function acceptPlant(
  given: unknown,
  isNext: boolean,
  hint: string,
  { reporter }: CommandContext,
): Promise<InputPlant> {
  const value = isNext && isObject(given) ? { ...given, id: 0n } : given
  const plant = parsePlant(value)
  if (!plant) {
    const { findProblems } = await import('../plant/schema.js')
    throw new PlantsError('invalid', describeInvalidPlant(findProblems(value)), { hint })
  }
  const unknown = isObject(value) ? listOtherFields(value).map(shorten) : []
  if (unknown.length > 0) await reporter.warn(describeUnknownFields(unknown), 'warning')
  return isNext ? { ...plant, id: 'next' } : plant
}
