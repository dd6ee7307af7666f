/*
 * Reads the plant that `plants create` creates.
 */
import { createInputError, createUsageError, PlantsError } from '../errors.js'
import { describeIgnoredFields } from '../output/output.js'
import { isObject, parseJson } from '../plant/json.js'
import {
  describeInvalidPlant,
  listUnknownFields,
  parseDecimalId,
  parsePlant,
} from '../plant/plant.js'
import { shorten } from '../platform/escape.js'
import { readText } from '../platform/text-files.js'
import type { InputPlant } from '../stores/next-id.js'
import type { CommandContext } from './context.js'
import type { GlobalOptions } from './global-options.js'

export interface PlantOptions extends GlobalOptions {
  id?: string
  name?: string
  tag?: string
  file?: string
  idempotencyKey?: string
}

const jsonHint =
  'Give one plant as JSON, such as {"id":1,"name":"Fern"}, or leave out its id with --id next'

const optionsHint = 'Give --id (a number, or next) and --name TEXT'

/**
 * Reads the plant of a create: from options, from JSON in a file or on stdin, or from prompts. This
 * must happen before the store is opened, because a person may take long to answer.
 *
 * Stdin is read if there is no `--file`, no option has a field of the plant, and stdin is not a
 * terminal. `--id next` is not a field: it only says how the id is chosen.
 *
 * Example: `echo '{"name":"Fern"}' | plants create --id next`
 *
 * @throws {PlantsError} `usage`, `input` for a file that is not JSON, and `invalid` for its content
 */
export async function readPlant(
  options: PlantOptions,
  context: CommandContext,
): Promise<InputPlant> {
  const { id, name, tag, file, idempotencyKey } = options
  const usesNextId = id === 'next'
  const hasFields = name !== undefined || tag !== undefined || (id !== undefined && !usesNextId)
  if (file !== undefined && hasFields)
    throw createUsageError(
      'A plant from JSON cannot be combined with --name, --tag or --id, except --id next',
      'Leave them out',
    )
  if (usesNextId && idempotencyKey !== undefined)
    throw createUsageError(
      '--id next cannot be used with --idempotency-key',
      'Give a number as the id',
    )
  const isOnStdin = file === undefined && !hasFields && !context.io.stdin.isTerminal
  const path = isOnStdin ? '-' : file
  if (path === undefined) return readPlantFromOptions(options, context)
  const value = await readPlantJson(path, context)
  if (usesNextId && isObject(value) && Object.hasOwn(value, 'id'))
    throw createUsageError(
      '--id next cannot be used for a plant that has an id',
      'Leave one of them out',
    )
  return acceptPlant(value, usesNextId, jsonHint, context)
}

/** Reads the plant from options. If a person is there, it asks for the missing fields. */
async function readPlantFromOptions(
  options: PlantOptions,
  context: CommandContext,
): Promise<InputPlant> {
  const { id, name, tag, idempotencyKey } = options
  const usesNextId = id === 'next'
  const parsedId = id === undefined || usesNextId ? id : parseDecimalId(id)
  const isIdWrong = id !== undefined && parsedId === undefined
  const isComplete = id !== undefined && name !== undefined
  // A wrong id stays a string, so that all wrong fields are reported at once.
  const fields = { id: isIdWrong ? id : parsedId, name, tag }
  // If the id is wrong, the command fails before it asks for other fields.
  if (!isComplete && !isIdWrong && context.mayAsk) {
    const { askForPlant } = await import('./prompts.js')
    // A create that is repeated with its idempotency key needs the same id again.
    const mayBeNext = idempotencyKey === undefined
    return askForPlant({ id: parsedId, name, tag }, mayBeNext, context.io)
  }
  return acceptPlant(fields, usesNextId, optionsHint, context)
}

async function readPlantJson(path: string, { io }: CommandContext): Promise<unknown> {
  if (path === '') throw createUsageError('--file needs a path', 'To read stdin: --file -')
  const isStdin = path === '-'
  const fileHint = 'Give the path of a file that contains one plant as JSON'
  const text = await readText(path, io, isStdin ? jsonHint : fileHint)
  const source = isStdin ? 'Stdin' : path
  if (text.trim() === '') throw createInputError(`${source} is empty`, jsonHint)
  const parseResult = parseJson(text)
  if ('value' in parseResult) return parseResult.value
  const { explainSyntaxError } = await import('../plant/json-syntax.js')
  throw createInputError(`${source} is not JSON: ${explainSyntaxError(text).description}`, jsonHint)
}

/** A valid id, with which the other fields of a plant are checked before it has its id. */
const placeholderId = 0n

/**
 * Accepts a plant, and warns of fields that plants do not have.
 *
 * @param usesNextId whether the id is `next`. The other fields are then checked
 * @throws {PlantsError} `invalid` with a sentence for each wrong field
 */
async function acceptPlant(
  input: unknown,
  usesNextId: boolean,
  hint: string,
  { reporter }: CommandContext,
): Promise<InputPlant> {
  const value = usesNextId && isObject(input) ? { ...input, id: placeholderId } : input
  const plant = parsePlant(value)
  const unknownFields = isObject(value) ? listUnknownFields(value).map(shorten) : []
  // The warning precedes an error, because the name of a missing field may be misspelled.
  if (unknownFields.length > 0) await reporter.warn(describeIgnoredFields(unknownFields), 'warning')
  if (!plant) {
    const { findProblems } = await import('../plant/schema.js')
    throw new PlantsError('invalid', describeInvalidPlant(findProblems(value)), { hint })
  }
  return usesNextId ? { ...plant, id: 'next' } : plant
}
