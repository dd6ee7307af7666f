import { unknownFields } from '../output/output.js'
import type { Reporter } from '../output/reporter.js'
import { isObject, parseJson } from '../plant/exact-json.js'
import { idFromText, type NewPlant, otherFieldsOf, parsePlant } from '../plant/plant.js'
import { inputError, PlantsError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import { readText } from '../platform/text-files.js'
import { idExists } from '../stores/common/change.js'
import type { GlobalOptions } from './command.js'
import type { CommandContext } from './command-context.js'
import { nextIdIn } from './next-id.js'
import type { GivenFields } from './prompts.js'

export interface PlantOptions extends GlobalOptions {
  /** An id in digits, or `next`. */
  id?: string
  name?: string
  tag?: string
  file?: string
  idempotencyKey?: string
  dryRun?: true
}

/** From options, JSON or prompts. With `isNext`, the store chooses the id, in place of that of `plant`. */
export async function readPlant(
  options: PlantOptions,
  context: CommandContext,
): Promise<{ plant: NewPlant; isNext: boolean }> {
  const { id, name, tag, file } = options
  const { reporter, io } = context
  const isNext = id === 'next'
  // What is not an id stays a text, to be rejected with the other fields.
  const number = id === undefined ? undefined : isNext ? 0n : (idFromText(id) ?? id)
  const given = {
    ...(number !== undefined && { id: number }),
    ...(name !== undefined && { name }),
    ...(tag !== undefined && { tag }),
  }
  const hasFields = Object.keys(given).length > 0
  const path = file ?? (hasFields || io.stdin.isTerminal ? undefined : '-')
  if (path !== undefined) {
    const document = await readDocument(path, context)
    const hint = Array.isArray(document) ? onePlant : example
    return { plant: await accept(document, 'Invalid plant: ', hint, reporter), isNext }
  }
  const isComplete = number !== undefined && name !== undefined
  const valid = parsePlant({ id: 0n, name: '', ...given })
  if (context.mayAsk && !isComplete && valid) {
    const known = { ...valid, id: id === undefined ? undefined : valid.id, name }
    const { plant, isProposed } = await ask(known, options, context)
    return {
      plant: await accept(plant, '', 'Correct the options', reporter),
      isNext: isNext || isProposed,
    }
  }
  // With an idempotency key, the user chooses the id.
  const newId = options.idempotencyKey === undefined ? '--id next' : '--id'
  const missing = [number === undefined ? newId : '', name === undefined ? '--name' : ''].filter(
    Boolean,
  )
  const unread = io.stdin.isPiped ? '. Stdin is read only without --id, --name and --tag' : ''
  const correct = typeof number === 'string' ? 'For example: --id 1' : 'Correct the options'
  const hint = (missing.length > 0 ? `Add ${missing.join(' and ')}` : correct) + unread
  return { plant: await accept(given, '', hint, reporter), isNext }
}

const onePlant = 'plants create takes one plant. For many, use plants import'
const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'

/** Prompts for the missing fields. The greatest id plus 1 is proposed, which is the id that the store chooses. */
async function ask(
  given: GivenFields,
  { dryRun, idempotencyKey }: PlantOptions,
  context: CommandContext,
) {
  const { address, io } = context
  // Without a token this fails before the prompts.
  if (address.scheme === 'http' && !dryRun) await context.httpOptions(address)
  // An idempotency key belongs to one id, and a service may not let its greatest one be read.
  const isOwn = address.scheme !== 'http'
  const canPropose = isOwn && given.id === undefined && idempotencyKey === undefined
  const proposal = canPropose
    ? await nextIdIn(await context.opener()).catch(unlessNoneIsLeft)
    : undefined
  // With a key, an id that exists may be that of the same plant.
  const isTaken = async (id: bigint) =>
    isOwn && idempotencyKey === undefined && (await hasId(id, context))
  if (given.id !== undefined && (await isTaken(given.id))) {
    const hint = `Look at it with: plants get ${given.id}${context.storeFlag}`
    throw new PlantsError('conflict', idExists(given.id).message, { hint })
  }
  const { askForPlant } = await import('./prompts.js')
  const plant = await askForPlant(
    given,
    { proposal, isTaken, isColored: context.isColored(io.stderr) },
    io,
  )
  return { plant, isProposed: proposal !== undefined && plant.id === proposal }
}

/** Of a store that may not be read, the create says so. */
async function hasId(id: bigint, context: CommandContext): Promise<boolean> {
  try {
    const store = await (await context.opener()).openExisting()
    const plants = await store?.get([id]).finally(() => store.close())
    return plants?.has(id) ?? false
  } catch (error) {
    if (error instanceof PlantsError && !error.isInterruption) return false
    throw error
  }
}

/** After the largest id, the user may still choose a smaller one. */
function unlessNoneIsLeft(error: unknown): undefined {
  if (!(error instanceof PlantsError && error.kind === 'conflict')) throw error
}

async function accept(
  value: unknown,
  prefix: string,
  hint: string,
  reporter: Reporter,
): Promise<NewPlant> {
  const plant = parsePlant(value)
  const unknown = (isObject(value) ? otherFieldsOf(value) : []).map(shorten)
  if (plant) {
    if (unknown.length > 0) await reporter.warn(unknownFields(unknown), 'warning')
    return plant
  }
  const { problemsOf } = await import('../plant/plant-schema.js')
  const names = unknown
    .slice(0, 5)
    .map((name) => JSON.stringify(name))
    .join(', ')
  const others = names && `. Unknown fields: ${names}`
  throw new PlantsError('invalid', `${prefix}${problemsOf(value).join('; ')}`, {
    hint: hint + others,
  })
}

async function readDocument(path: string, { io }: CommandContext): Promise<unknown> {
  if (path === '') throw inputError('--file needs a path', 'To read stdin: --file -')
  const wanted = 'Use a file that contains one plant as JSON'
  const text = await readText(path, io, { wanted, tooLarge: onePlant })
  const source = path === '-' ? 'Stdin' : path
  if (text.trim() === '')
    throw inputError(
      `${source} is empty`,
      path === '-' ? 'Or use options: plants create --id ID --name NAME' : example,
    )
  const parsed = parseJson(text)
  if ('value' in parsed) return parsed.value
  const firstLine = /^(?<line>[^\n]+)\n\s*\S/.exec(text)?.groups?.['line']
  if (firstLine !== undefined && 'value' in parseJson(firstLine))
    throw inputError(`${source} contains more than one JSON value`, onePlant)
  throw inputError(`${source} is not JSON: ${parsed.reason}`, example)
}
