import { addLookupHint, describePlant, similarField, styleFor, unknownField, writeResult } from '../../output/output.js'
import { isObject, parseJson, toJson } from '../../plant/exact-json.js'
import { plantFields, textFields } from '../../plant/fields.js'
import {
  acceptNewPlant,
  equalFields,
  idFromText,
  isIdempotencyKey,
  largestId,
  type NewPlant,
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
import type { OpenOptions } from '../../stores/common/store.js'
import { isOwn, nextIdIn, schemeOf, takesCredential, takesToken } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import {
  defineCommand,
  dryRunOption,
  fieldFlags,
  type GlobalFlags,
  type OptionDefinition,
  type OptionValues,
  retryOption,
} from '../define-command.js'

const onePlant = 'plants create takes one plant. For many, use plants import'
const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'

const options = [
  ...plantFields.map((field) => ({ flags: fieldFlags(field), description: field.meaning })),
  {
    flags: '-f, --file <path>',
    description: 'read the plant as JSON from a file, or from stdin with "-"; flags override its fields',
    values: 'file',
  },
  {
    flags: '--idempotency-key <key>',
    description: 'make the command safe to repeat: the same key and plant return the same result',
    parse: parseIdempotencyKey,
  },
  dryRunOption('show what would be created and where, but create nothing'),
  retryOption,
] as const satisfies readonly OptionDefinition[]

type CreateFlags = GlobalFlags & OptionValues<typeof options>

export const create = defineCommand({
  name: 'create',
  description:
    'Create a plant from flags, from JSON in a file or on stdin, or from prompts. With --id, --name or --tag, stdin is left untouched, except by --file -, so that a loop can read it.',
  options,
  formats: outputFormats,
  examples: [
    'plants create --id 1 --name Fern --tag shade',
    'plants create --id next --name Moss',
    `echo '{"id":2,"name":"Moss"}' | plants create`,
  ],
  async run({ flags, formats }, io) {
    const settings = await resolveSettings(flags, io, { formats })
    const { idempotencyKey } = flags
    if (flags.id === 'next' && idempotencyKey !== undefined) {
      const message = '--id next cannot be used with --idempotency-key: a repeat would create another plant'
      throw malformed(message, 'Use a specific id')
    }
    if (flags.dryRun) {
      const { showPreview } = await import('../preview.js')
      const readPlant = (storeOptions: OpenOptions) => previewPlant(flags, { ...settings, storeOptions }, io)
      await showPreview({ idempotencyKey, readPlant }, settings, io)
      return warnOfEmpty(flags, settings)
    }
    const { plant, isNext } = await readPlant(flags, settings, io)
    if (flags.retry !== undefined && !takesCredential(settings.store))
      await settings.warn('--retry applies to services and databases, and has no effect on a file')
    const store = await schemeOf(settings.store).open(settings.store, { ...settings.storeOptions, retry: flags.retry })
    try {
      const create = async () => (await writeOne(store, { type: 'create', plant, key: idempotencyKey })).plant
      const answer = await (isNext ? createNext(store, plant) : create()).catch((error: unknown) => {
        throw addLookupHint(error, plant.id, settings)
      })
      if (!equalFields(answer, plant)) {
        const [returned, given] = [answer, plant].map((one) => toJson({ ...plantOf(one) }))
        await settings.warn(
          `The store returned a plant that differs from the one that was sent: ${returned} instead of ${given}`,
        )
      }
      await warnOfEmpty(flags, settings)
      const planted = describePlant(answer, await styleFor(settings.colors(io.stdout)))
      const see = isOwn(settings.store) ? `. Show it with: plants get ${answer.id}${settings.storeFlag}` : ''
      const fields = isNext ? answer : plantOf(answer)
      await writeResult(io, settings, fields, `Planted ${planted}`, `The plant is stored${see}`)
    } finally {
      await store.close()
    }
  },
})

function parseIdempotencyKey(flag: string, key: string): string {
  if (isIdempotencyKey(key)) return key
  const failure = /^[\x21-\x7e]+$/.test(key) ? `has ${key.length}` : `was ${JSON.stringify(shorten(key))}`
  const hint = `For example: ${flag} "$(uuidgen)"`
  throw malformed(`${flag} must be 1 to 255 visible ASCII characters, but ${failure}`, hint)
}

async function previewPlant(flags: CreateFlags, settings: Settings, io: Io): Promise<NewPlant> {
  const { store, storeOptions } = settings
  if (flags.id === 'next' && !isOwn(store))
    throw malformed('The service chooses the id of --id next', 'Use a specific id')
  const { plant, isNext } = await readPlant(flags, settings, io)
  return isNext ? { ...plant, id: await nextIdIn(store, storeOptions) } : plant
}

/** With `isNext`, the store chooses the id, which replaces that of `plant`. */
async function readPlant(flags: CreateFlags, settings: Settings, io: Io) {
  const isNext = flags.id === 'next'
  const given = fieldsOf(flags)
  const hasFlags = Object.keys(given).length > 0
  const path = flags.file ?? (hasFlags || io.stdin.isTerminal ? undefined : '-')
  if (path !== undefined) {
    const document = await readDocument(path, io)
    const hint = Array.isArray(document) ? onePlant : example
    const value = hasFlags && isObject(document) ? { ...document, ...given } : document
    return { plant: await accept(value, 'Invalid plant: ', hint, settings), isNext }
  }
  if (settings.mayAsk()) {
    const { plant, isProposed } = await ask(given, flags, settings, io)
    return { plant: await accept(plant, '', 'Correct the flags', settings), isNext: isNext || isProposed }
  }
  const [unread, other] = io.stdin.isPiped
    ? ['Stdin was not read, because flags were given. ', 'read JSON from stdin with --file -']
    : ['', 'read JSON from a file with --file PATH']
  const missing = plantFields.flatMap(({ name, isRequired }) => (isRequired && !(name in given) ? `--${name}` : []))
  const correction = missing.length > 0 ? `Add ${missing.join(' and ')}` : 'Correct the flags'
  return { plant: await accept(given, '', `${unread}${correction}, or ${other}`, settings), isNext }
}

/** An unset variable of a shell must not leave a text empty silently. */
async function warnOfEmpty(flags: CreateFlags, { warn }: Settings): Promise<void> {
  for (const { name } of textFields)
    if (flags[name] === '') await warn(`--${name} is empty: the plant gets the ${name} ""`, 'warning')
}

/** in place of what is missing, to check what is given */
const anyPlant = { id: 0n, name: '' }

/** An id that is not an int64 stays a text, to be rejected with the other fields. For `next`, it is a placeholder. */
function fieldsOf(flags: CreateFlags): Record<string, unknown> {
  const given: Record<string, unknown> = {}
  for (const { name, type } of plantFields) {
    const text = flags[name]
    if (text === undefined) continue
    const id = text === 'next' ? 0n : idFromText(text)
    given[name] = type === 'int64' ? (id ?? text) : text
  }
  return given
}

/** Prompts for the missing fields, unless a given field is invalid or the given id exists. */
async function ask(given: Record<string, unknown>, flags: CreateFlags, settings: Settings, io: Io) {
  const partial = acceptNewPlant({ ...anyPlant, ...given })
  if (!partial || ('id' in given && 'name' in given)) return { plant: given, isProposed: false }
  // fails without a token, before the prompts
  if (takesToken(settings.store)) await settings.storeOptions.access(settings.store)
  const store = isOwn(settings.store)
    ? await schemeOf(settings.store).openExisting(settings.store, settings.storeOptions)
    : undefined
  const exists = async (id: bigint) => !flags.idempotencyKey && (await store?.get([id]))?.has(id) === true
  try {
    const { id } = partial
    if ('id' in given && flags.id !== 'next' && (await exists(id))) throw addLookupHint(idExists(id), id, settings)
    // Finding the greatest id of a service takes many requests, and an idempotency key belongs to one id.
    const canPropose = isOwn(settings.store) && !('id' in given) && flags.idempotencyKey === undefined
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
    for (const name of unknown) await warn(unknownField(name, await similarField(name)), 'warning')
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
  const instead = path === '-' ? 'For a plant in flags: plants create --id ID --name NAME' : example
  if (text.trim() === '') throw malformed(`${source} is empty`, instead)
  const parsed = parseJson(text)
  if ('value' in parsed) return parsed.value
  const firstLine = /^(?<line>[^\n]+)\n\s*\S/.exec(text)?.groups?.['line']
  if (firstLine !== undefined && 'value' in parseJson(firstLine))
    throw malformed(`${source} contains more than one JSON value`, onePlant)
  throw malformed(`${source} is not JSON: ${parsed.reason}`, example)
}
