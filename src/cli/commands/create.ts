import { Option } from 'commander'
import {
  addLookupHint,
  describePlant,
  quoteIfNeeded,
  reportWaiting,
  styleFor,
  unknownFields,
  writeResult,
} from '../../output/output.js'
import { isObject, parseJson, toJson } from '../../plant/exact-json.js'
import {
  acceptNewPlant,
  equalFields,
  idFromText,
  isIdempotencyKey,
  type NewPlant,
  newPlant,
  otherFieldsOf,
  plantOf,
} from '../../plant/plant.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { readText } from '../../platform/text-files.js'
import { invalidValue, outputFormats } from '../../platform/values.js'
import { writeOne } from '../../stores/common/change.js'
import {
  createNext,
  greatestId,
  idAfter,
  isOwn,
  nextIdIn,
  ownSchemeOf,
  schemeOf,
  takesToken,
} from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { resolveSettings } from '../context.js'
import { addRetry, warnOfEmptyTexts, warnOfUselessRetry } from '../options.js'
import type { GivenFields } from '../prompts.js'
import type { Settings } from '../settings.js'

export interface CreateOptions extends GlobalOptions {
  /** an id in digits, or `next` */
  id?: string
  name?: string
  tag?: string
  file?: string
  idempotencyKey?: string
  dryRun?: true
  /** milliseconds */
  retry?: number
}

export function defineCreate(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Create a plant from options, from JSON in a file or on stdin, or from prompts. With --id, --name or --tag, stdin is left untouched, so that a loop can read it.',
    )
    .option('-i, --id <int64>', 'identification number, or next: the greatest id plus 1')
    .option('-n, --name <text>', 'name of the plant')
    .option('-t, --tag <text>', 'tag of the plant, such as shade')
    .addOption(
      new Option('-f, --file <path>', 'read the plant as JSON from a file, or from stdin with "-"').conflicts([
        'id',
        'name',
        'tag',
      ]),
    )
    .value(
      '--idempotency-key <key>',
      'make the command safe to repeat: the same key and plant return the same result',
      parseIdempotencyKey,
    )
    .option('--dry-run', 'show what would be created and where, but create nothing')
  addRetry(command)
    .addExamples(
      'plants create --id 1 --name Fern --tag shade',
      'plants create --id next --name Moss',
      `echo '{"id":2,"name":"Moss"}' | plants create`,
    )
    .handler((options: CreateOptions) => create(options, io))
}

export async function create(options: CreateOptions, io: Io): Promise<void> {
  const settings = await resolveSettings(options, io, { formats: outputFormats })
  const { idempotencyKey: key, dryRun, retry } = options
  const { store: address, warn } = settings
  if (options.id === 'next' && key !== undefined)
    throw malformed(
      '--id next cannot be used with --idempotency-key: a repeat would create another plant',
      'Use a specific id',
    )
  await warnOfUselessRetry(retry, settings)
  const { plant, isNext } = await readPlant(options, settings, io)
  await warnOfEmptyTexts(options, settings)
  if (dryRun) return preview(plant, { isNext, key }, settings, io)

  const store = await schemeOf(address).open(address, { ...settings.storeOptions, retry })
  try {
    const create = async () => (await writeOne(store, { type: 'create', plant, key })).plant
    const created = await (isNext ? createNext(store, plant) : create()).catch((error: unknown) => {
      throw addLookupHint(error, plant.id, settings)
    })
    if (!equalFields(created, plant)) {
      const [returned, given] = [created, plant].map((one) => toJson({ ...plantOf(one) }))
      await warn(`The store returned a plant that differs from the one that was sent: ${returned} instead of ${given}`)
    }
    const what = describePlant(created, await styleFor(settings.colors(io.stdout)))
    const see = isOwn(address) ? `. Show it with: plants get ${created.id}${settings.storeFlag}` : ''
    // the specification's Plant has no id, but one that the store chose is the result
    const fields = isNext ? created : plantOf(created)
    await writeResult(io, settings, fields, `Planted ${what}`, `The plant is stored${see}`)
  } finally {
    await store.close()
  }
}

/** Creates the plant in a transaction that is rolled back. Sends nothing to a service, and asks it nothing. */
async function preview(
  plant: NewPlant,
  { isNext, key }: { isNext: boolean; key: string | undefined },
  settings: Settings,
  io: Io,
): Promise<void> {
  const { store: address, storeOptions } = settings
  let [shown, isMissing] = [plant, false]
  if (isOwn(address)) {
    const store = await ownSchemeOf(address).openExisting(address, storeOptions)
    const over = new PlantsError('incomplete', 'The dry run is over')
    try {
      if (isNext) shown = newPlant(idAfter(store && (await greatestId(store))), plant.name, plant.tag)
      isMissing = store === undefined
      await store?.transaction(async ({ write }) => {
        await writeOne({ write }, { type: 'create', plant: shown, key })
        throw over
      })
    } catch (error) {
      if (error !== over) throw addLookupHint(error, shown.id, settings)
    } finally {
      await store?.close()
    }
  } else if (isNext) throw malformed('The service chooses the id of --id next', 'Use a specific id')
  else await (await import('../store-access.js')).assertAccess(address, settings, io)
  const what = describePlant(shown, await styleFor(settings.colors(io.stdout)))
  const fields = { dryRun: true, ...(isNext ? shown : plantOf(shown)) }
  const sentence = `Would plant ${what} in ${quoteIfNeeded(address.name)}${isMissing ? ', which would be created' : ''}`
  await writeResult(io, { output: settings.output }, fields, sentence, 'Nothing was created')
}

function parseIdempotencyKey(flag: string, key: string): string {
  if (isIdempotencyKey(key)) return key
  throw invalidValue(flag, '1 to 255 visible ASCII characters', key, '"$(uuidgen)"')
}

/** With `isNext`, the store chooses the id, in place of that of `plant`. */
async function readPlant(options: CreateOptions, settings: Settings, io: Io) {
  const { id, name, tag, file } = options
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
    const document = await readDocument(path, settings, io)
    const hint = Array.isArray(document) ? onePlant : example
    return { plant: await accept(document, 'Invalid plant: ', hint, settings), isNext }
  }
  const isComplete = number !== undefined && name !== undefined
  const valid = acceptNewPlant({ id: 0n, name: '', ...given })
  if (settings.mayAsk() && !isComplete && valid) {
    const known = { ...valid, id: id === undefined ? undefined : valid.id, name }
    const { plant, isProposed } = await ask(known, options, settings, io)
    return { plant: await accept(plant, '', 'Correct the options', settings), isNext: isNext || isProposed }
  }
  const missing = [number === undefined ? '--id' : '', name === undefined ? '--name' : ''].filter(Boolean)
  const unread = io.stdin.isPiped ? '. Stdin is read only without --id, --name and --tag' : ''
  const hint = (missing.length > 0 ? `Add ${missing.join(' and ')}` : 'Correct the options') + unread
  return { plant: await accept(given, '', hint, settings), isNext }
}

const onePlant = 'plants create takes one plant. For many, use plants import'
const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'

/** Prompts for the missing fields. The greatest id plus 1 is proposed, which is the id that the store chooses. */
async function ask(given: GivenFields, { dryRun, idempotencyKey }: CreateOptions, settings: Settings, io: Io) {
  const { store, storeOptions, colors } = settings
  // fails without a token, before the prompts
  if (takesToken(store) && !dryRun) await storeOptions.access(store)
  // An idempotency key belongs to one id, and a service may not let its greatest one be read.
  const canPropose = isOwn(store) && given.id === undefined && idempotencyKey === undefined
  const proposal = canPropose ? await nextIdIn(store, storeOptions).catch(unlessNoneIsLeft) : undefined
  const { askForPlant } = await import('../prompts.js')
  const plant = await askForPlant(given, proposal, colors(io.stderr), io)
  return { plant, isProposed: proposal !== undefined && plant.id === proposal }
}

/** After the largest id, the user may still choose a smaller one. */
function unlessNoneIsLeft(error: unknown): undefined {
  if (!(error instanceof PlantsError && error.type === 'conflict')) throw error
}

async function accept(value: unknown, prefix: string, hint: string, { warn }: Settings): Promise<NewPlant> {
  const plant = acceptNewPlant(value)
  const unknown = (isObject(value) ? otherFieldsOf(value) : []).map(shorten)
  if (plant) {
    if (unknown.length > 0) await warn(unknownFields(unknown), 'warning')
    return plant
  }
  const { problemsOf } = await import('../../plant/plant-schema.js')
  const names = unknown
    .slice(0, 5)
    .map((name) => JSON.stringify(name))
    .join(', ')
  const others = names && `. Unknown fields: ${names}`
  throw new PlantsError('invalid', `${prefix}${problemsOf(value).join('; ')}`, { hint: hint + others })
}

async function readDocument(path: string, settings: Settings, io: Io): Promise<unknown> {
  if (path === '') throw malformed('--file needs a path', 'To read stdin: --file -')
  const wanted = 'Use a file that contains one plant as JSON'
  const onWaiting = reportWaiting('a plant', io, settings)
  const text = await readText(path, io, { wanted, tooLarge: onePlant, onWaiting })
  const source = path === '-' ? 'Stdin' : path
  if (text.trim() === '')
    throw malformed(`${source} is empty`, path === '-' ? 'Or use options: plants create --id ID --name NAME' : example)
  const parsed = parseJson(text)
  if ('value' in parsed) return parsed.value
  const firstLine = /^(?<line>[^\n]+)\n\s*\S/.exec(text)?.groups?.['line']
  if (firstLine !== undefined && 'value' in parseJson(firstLine))
    throw malformed(`${source} contains more than one JSON value`, onePlant)
  throw malformed(`${source} is not JSON: ${parsed.reason}`, example)
}
