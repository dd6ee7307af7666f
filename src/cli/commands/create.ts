import { Option } from 'commander'
import {
  addLookupHint,
  describePlant,
  quoteIfNeeded,
  styleFor,
  unknownField,
  writeResult,
} from '../../output/output.js'
import { isObject, parseJson, toJson } from '../../plant/exact-json.js'
import { plantFields, textFields } from '../../plant/fields.js'
import {
  acceptNewPlant,
  equalFields,
  idFromText,
  isIdempotencyKey,
  largestId,
  type NewPlant,
  newPlant,
  otherFieldsOf,
  plantOf,
} from '../../plant/plant.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { readText } from '../../platform/text-files.js'
import { outputFormats } from '../../platform/values.js'
import { writeOne } from '../../stores/common/change.js'
import { idAfter, idExists } from '../../stores/common/conflict.js'
import { createNext, greatestId } from '../../stores/common/create-next.js'
import type { Store } from '../../stores/common/store.js'
import { isOwn, ownSchemeOf, schemeOf, takesToken } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { resolveSettings } from '../context.js'
import { retryOption, warnOfUselessRetry } from '../options.js'
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
  command.description(
    'Create a plant from options, from JSON in a file or on stdin, or from prompts. With --id, --name or --tag, stdin is left untouched, so that a loop can read it.',
  )
  for (const { name, short, type, meaning } of plantFields) command.option(`-${short}, --${name} <${type}>`, meaning)
  command
    .addOption(
      new Option('-f, --file <path>', 'read the plant as JSON from a file, or from stdin with "-"').conflicts(
        plantFields.map(({ name }) => name),
      ),
    )
    .option(
      '--idempotency-key <key>',
      'make the command safe to repeat: the same key and plant return the same result',
      parseIdempotencyKey,
    )
    .option('--dry-run', 'show what would be created and where, but create nothing')
    .addOption(retryOption)
    .addExamples(
      'plants create --id 1 --name Fern --tag shade',
      'plants create --id next --name Moss',
      `echo '{"id":2,"name":"Moss"}' | plants create`,
    )
    .handler((options: CreateOptions) => create(options, io))
}

export async function create(options: CreateOptions, io: Io): Promise<void> {
  const settings = await resolveSettings(options, io, { formats: outputFormats })
  const { idempotencyKey, dryRun, retry } = options
  const { store: address, warn } = settings
  if (options.id === 'next' && idempotencyKey !== undefined)
    throw malformed(
      '--id next cannot be used with --idempotency-key: a repeat would create another plant',
      'Use a specific id',
    )
  await warnOfUselessRetry(retry, settings)
  const { plant, isNext } = await readPlant(options, settings, io)
  // An unset variable of a shell must not leave a text empty silently.
  for (const { name } of textFields)
    if (options[name] === '') await warn(`--${name} is empty: the plant gets the ${name} ""`, 'warning')
  if (dryRun) return preview(plant, { isNext, idempotencyKey }, settings, io)

  const store = await schemeOf(address).open(address, { ...settings.storeOptions, retry })
  try {
    const create = async () => (await writeOne(store, { type: 'create', plant, key: idempotencyKey })).plant
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
  { isNext, idempotencyKey }: { isNext: boolean; idempotencyKey: string | undefined },
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
      await store?.transaction(async (write) => {
        await writeOne({ write }, { type: 'create', plant: shown, key: idempotencyKey })
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

function parseIdempotencyKey(key: string): string {
  if (isIdempotencyKey(key)) return key
  const failure = /^[\x21-\x7e]+$/.test(key) ? `has ${key.length}` : `was ${JSON.stringify(shorten(key))}`
  const message = `--idempotency-key must be 1 to 255 visible ASCII characters, but ${failure}`
  throw malformed(message, 'For example: --idempotency-key "$(uuidgen)"')
}

/** With `isNext`, the store chooses the id, in place of that of `plant`. */
async function readPlant(options: CreateOptions, settings: Settings, io: Io) {
  const given: Record<string, unknown> = {}
  for (const { name, type } of plantFields) {
    const text = options[name]
    // What is no id stays a text, to be rejected with the other fields.
    if (text !== undefined) given[name] = type === 'int64' ? (idFromText(text) ?? text) : text
  }
  const isNext = options.id === 'next'
  if (isNext) given['id'] = 0n
  const hasFields = Object.keys(given).length > 0
  const path = options.file ?? (hasFields || io.stdin.isTerminal ? undefined : '-')
  if (path !== undefined) {
    const document = await readDocument(path, io)
    const hint = Array.isArray(document) ? onePlant : example
    return { plant: await accept(document, 'Invalid plant: ', hint, settings), isNext }
  }
  if (settings.mayAsk()) {
    const { plant, isProposed } = await ask(given, options, settings, io)
    return { plant: await accept(plant, '', 'Correct the options', settings), isNext: isNext || isProposed }
  }
  const missing = plantFields.flatMap(({ name, isRequired }) => (isRequired && !(name in given) ? `--${name}` : []))
  const unread = io.stdin.isPiped ? '. Stdin is read only without --id, --name and --tag' : ''
  const hint = (missing.length > 0 ? `Add ${missing.join(' and ')}` : 'Correct the options') + unread
  return { plant: await accept(given, '', hint, settings), isNext }
}

const onePlant = 'plants create takes one plant. For many, use plants import'
const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'

/** Prompts for the missing fields, unless a given one is invalid or the given id exists. */
async function ask(given: Record<string, unknown>, options: CreateOptions, settings: Settings, io: Io) {
  const { store: address, storeOptions } = settings
  const partial = acceptNewPlant({ id: 0n, name: '', ...given })
  if (!partial || ('id' in given && 'name' in given)) return { plant: given, isProposed: false }
  // fails without a token, before the prompts
  if (takesToken(address) && !options.dryRun) await storeOptions.access(address)
  const store: Store | undefined = isOwn(address)
    ? await schemeOf(address).openExisting(address, storeOptions)
    : undefined
  const exists = async (id: bigint) => !options.idempotencyKey && (await store?.get([id]))?.has(id) === true
  try {
    const { id } = partial
    if ('id' in given && options.id !== 'next' && (await exists(id))) throw addLookupHint(idExists(id), id, settings)
    // An idempotency key belongs to one id, and a service may not let its greatest one be read.
    const canPropose = isOwn(address) && !('id' in given) && options.idempotencyKey === undefined
    const greatest = canPropose && store ? await greatestId(store) : undefined
    const proposal = canPropose && greatest !== largestId ? idAfter(greatest) : undefined
    const { askForPlant } = await import('../prompts.js')
    const check = async (other: bigint) => ((await exists(other)) ? idExists(other).message : undefined)
    const plant = await askForPlant(given, { check, proposal }, settings.colors(io.stderr), io)
    return { plant, isProposed: proposal !== undefined && plant['id'] === proposal }
  } finally {
    await store?.close()
  }
}

async function accept(value: unknown, prefix: string, hint: string, { warn }: Settings): Promise<NewPlant> {
  const plant = acceptNewPlant(value)
  const unknown = (isObject(value) ? otherFieldsOf(value) : []).slice(0, 5).map(shorten)
  if (plant) {
    for (const name of unknown) await warn(unknownField(name), 'warning')
    return plant
  }
  const { problemsOf } = await import('../../plant/plant-schema.js')
  const names = unknown.map((name) => JSON.stringify(name)).join(', ')
  const others = names && `. Unknown fields: ${names}`
  throw new PlantsError('invalid', `${prefix}${problemsOf(value).join('; ')}`, { hint: hint + others })
}

async function readDocument(path: string, io: Io): Promise<unknown> {
  if (path === '') throw malformed('--file needs a path', 'To read stdin: --file -')
  const text = await readText(path, io, { wanted: 'Use a file that contains one plant as JSON', tooLarge: onePlant })
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
