import { unknownFields } from '../output/output.js'
import { isObject, parseJson } from '../plant/exact-json.js'
import {
  idFromText,
  invalidPlant,
  type NewPlant,
  otherFieldsOf,
  parsePlant,
} from '../plant/plant.js'
import { inputError, PlantsError, usageError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import { readText } from '../platform/text-files.js'
import type { GlobalOptions } from './command.js'
import type { CommandContext } from './command-context.js'

export interface PlantOptions extends GlobalOptions {
  /** An id in digits, or `next`. */
  id?: string
  name?: string
  tag?: string
  file?: string
  idempotencyKey?: string
}

/** With `isNext`, the store chooses the id, in place of that of `plant`. */
export interface InputPlant {
  plant: NewPlant
  isNext: boolean
}

const oneAsJson =
  'create takes one plant, such as {"id":1,"name":"Fern","tag":"shade"}. For many, use plants import'

const missing = 'Add --id and --name. Stdin is read only without them and --tag'

/** From options, from JSON in a file or on stdin, or from prompts. No store is open meanwhile. */
export async function readPlant(
  options: PlantOptions,
  context: CommandContext,
): Promise<InputPlant> {
  const { id, name, tag, file, idempotencyKey } = options
  const isNext = id === 'next'
  const hasFields = name !== undefined || tag !== undefined || (id !== undefined && !isNext)
  if (file !== undefined && hasFields)
    throw usageError(
      'A plant from JSON cannot have --name, --tag, or an --id other than next',
      'Leave them out',
    )
  if (isNext && idempotencyKey !== undefined)
    throw usageError(
      '--id next cannot be used with --idempotency-key: a repeat would create another plant',
      'Use a specific id',
    )
  const path = file ?? (hasFields || context.io.stdin.isTerminal ? undefined : '-')
  if (path === undefined) return readOptions(options, context)
  return { plant: await readJson(path, isNext, context), isNext }
}

async function readOptions(options: PlantOptions, context: CommandContext): Promise<InputPlant> {
  const { id, name, tag, idempotencyKey } = options
  const isNext = id === 'next'
  // What is not an id stays a text, to be rejected with the other fields.
  const number = id === undefined || isNext ? undefined : (idFromText(id) ?? id)
  const given = {
    ...(isNext ? { id: 0n } : number !== undefined && { id: number }),
    ...(name !== undefined && { name }),
    ...(tag !== undefined && { tag }),
  }
  const valid = parsePlant({ id: 0n, name: '', ...given })
  const isComplete = id !== undefined && name !== undefined
  if (isComplete || !valid || !context.mayAsk)
    return { plant: await acceptPlant(given, isComplete ? undefined : missing, context), isNext }

  const { askForPlant } = await import('./prompts.js')
  const knownId = id === undefined ? undefined : valid.id
  const known = { id: isNext ? ('next' as const) : knownId, name, tag }
  // With an idempotency key, the user chooses the id: a repetition must be the same plant.
  const asked = await askForPlant(known, idempotencyKey === undefined, context.io)
  const plant = asked.id === 'next' ? { ...asked, id: 0n } : asked
  return { plant: await acceptPlant(plant, undefined, context), isNext: asked.id === 'next' }
}

async function readJson(path: string, isNext: boolean, context: CommandContext): Promise<NewPlant> {
  if (path === '') throw usageError('--file needs a path', 'To read stdin: --file -')
  const text = await readText(path, context.io, { wanted: oneAsJson, tooLarge: oneAsJson })
  const source = path === '-' ? 'Stdin' : path
  if (text.trim() === '') throw inputError(`${source} is empty`, oneAsJson)
  const parsed = parseJson(text)
  if (!('value' in parsed)) throw inputError(`${source} is not JSON: ${parsed.reason}`, oneAsJson)
  const { value } = parsed
  if (!isNext || !isObject(value)) return acceptPlant(value, oneAsJson, context)
  if (Object.hasOwn(value, 'id'))
    throw usageError('The plant has an id, and --id next was given', 'Leave out one of them')
  return acceptPlant({ id: 0n, ...value }, oneAsJson, context)
}

/** Throws `invalid` with a sentence for each wrong field, and warns of fields that are not stored. */
async function acceptPlant(
  value: unknown,
  hint = 'Correct the options',
  { reporter }: CommandContext,
): Promise<NewPlant> {
  const plant = parsePlant(value)
  if (!plant) {
    const { problemsOf } = await import('../plant/plant-schema.js')
    throw new PlantsError('invalid', invalidPlant(problemsOf(value)), { hint })
  }
  const unknown = isObject(value) ? otherFieldsOf(value).map(shorten) : []
  if (unknown.length > 0) await reporter.warn(unknownFields(unknown), 'warning')
  return plant
}
