import { addLookupHint, describePlant, styleFor, unknownField, writeResult } from '../../output/output.js'
import { plantFields } from '../../plant/fields.js'
import { parseInt64, parseJson, severalValues, toJson } from '../../plant/json.js'
import { acceptNewPlant, equalFields, isIdempotencyKey, isObject, largestId, type NewPlant, plantFrom, plantOf } from '../../plant/plant.js'
import type { Checked } from '../../plant/schema.js'
import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { capital, readText, sourceName } from '../../platform/text-files.js'
import { idAfter, idExists } from '../../stores/conflict.js'
import { isOwn, kindNoun, openIfThere, openStore, takesToken } from '../../stores/registry.js'
import type { Settings } from '../context.js'
import { resolveSettings } from '../context.js'
import { defineCommand, type GlobalFlags, type OptionDefinition, type OptionValues, retryOption } from '../define-command.js'

/** Hints for a document that is not what it should be. */
const onePlant = 'plants create takes one plant. For many, use plants import'
const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'

type FieldOption<Field> = Field extends { name: `${infer Letter}${infer Rest}`; type: infer Type extends string }
  ? { flags: `-${Letter}, --${Letter}${Rest} <${Type}>`; description: string }
  : never

/** An option for each field of a NewPlant, which its first letter is short for. */
const fieldOptions = plantFields.map(({ name, type, meaning }) => ({
  flags: `-${name[0]}, --${name} <${type}>`,
  description: meaning,
})) as unknown as {
  [Index in keyof typeof plantFields]: FieldOption<(typeof plantFields)[Index]>
} // as `map` makes them, in their order

const options = [
  ...fieldOptions,
  {
    flags: '-f, --file <path>',
    description: 'read the plant as JSON from a file, or from stdin with "-"; flags override its fields',
    values: 'file',
  },
  {
    flags: '--idempotency-key <key>',
    description: 'make it safe to repeat: the same key and plant get the same answer',
    parse: parseIdempotencyKey,
  },
  { flags: '--dry-run', description: 'show what would be sent where, and create nothing' },
  retryOption,
  { flags: '--curl', description: 'print the curl command that would create it at a service, and create nothing' },
] as const satisfies readonly OptionDefinition[]

type CreateFlags = GlobalFlags & OptionValues<typeof options>

export const create = defineCommand({
  name: 'create',
  description: 'Create a plant, from flags, from JSON in a file or on stdin, or from answers to questions.',
  options,
  examples: [
    'plants create --id 1 --name Fern --tag shade',
    'plants create --id next --name Moss',
    `echo '{"id":2,"name":"Moss"}' | plants create`,
  ],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { idempotencyKey } = flags
    if (flags.id === 'next' && idempotencyKey !== undefined)
      throw new PlantsError('malformed', '--id next has no use for --idempotency-key: a repeat would be another plant', {
        hint: 'Give the id itself, or leave the key out',
      })
    if (flags.dryRun || flags.curl) {
      const { showPreview } = await import('../preview.js')
      const isCurl = flags.curl === true
      return showPreview({ idempotencyKey, isCurl, readPlant: (preview) => previewPlant(flags, preview, io) }, settings, io)
    }
    const { plant, isNext } = await readPlant(flags, settings, io)
    if (flags.retry !== undefined && isOwn(settings.store)) {
      await settings.warn(`--retry is about services, and changes nothing for ${kindNoun(settings.store.kind)}`)
    }
    const store = await openStore(settings.store, { ...settings.storeOptions, retry: flags.retry })
    try {
      const create = async () => ({ ...(await store.create(plant, { idempotencyKey })), id: plant.id })
      const answer = await (isNext ? store.createNext(plant) : create()).catch((error: unknown) => {
        throw addLookupHint(error, plant.id, settings)
      })
      if (!equalFields(answer, plant)) {
        const given = toJson({ ...plantOf(plant) })
        await settings.warn(
          `The store answered with another plant than it was given: ${toJson({ ...plantOf(answer) })} instead of ${given}`,
        )
      }
      const planted = describePlant(answer, await styleFor(settings.colors(io.stdout)))
      const see = isOwn(settings.store) ? `. See it with: plants get ${answer.id}${settings.storeFlag}` : ''
      await writeResult(io, settings, { ...plantOf(answer) }, `Planted ${planted}`, `The plant is stored${see}`)
      if (isNext && settings.output === 'json') await settings.warn(`Its id is ${answer.id}`)
    } finally {
      await store.close()
    }
  },
})

function parseIdempotencyKey(flag: string, key: string): string {
  if (isIdempotencyKey(key)) return key
  const failure = /^[\x21-\x7e]+$/.test(key) ? `has ${key.length}` : `was ${JSON.stringify(shorten(key))}`
  throw new PlantsError('malformed', `${flag} must be 1 to 255 visible ASCII characters, but ${failure}`, {
    hint: `A key that fits: ${flag} "$(uuidgen)"`,
  })
}

interface PlantInput {
  plant: NewPlant
  /** whether the store is to choose the id, in the place of the one that stands there */
  isNext: boolean
}

/** The plant as a create would make it now. */
async function previewPlant(flags: CreateFlags, settings: Settings, io: Io): Promise<NewPlant> {
  const { store, storeOptions } = settings
  if (flags.id === 'next' && !isOwn(store))
    throw new PlantsError('malformed', '--id next asks the service, and nothing is sent to it here', { hint: 'Give the id itself' })
  const { plant, isNext } = await readPlant(flags, settings, io)
  if (!isNext) return plant
  const existing = await openIfThere(store, storeOptions)
  try {
    return plantFrom(idAfter(await existing?.greatestId()), ({ name }) => plant[name])
  } finally {
    await existing?.close()
  }
}

/** The plant from wherever it was given: flags over a document, or flags and answers. */
async function readPlant(flags: CreateFlags, settings: Settings, io: Io): Promise<PlantInput> {
  const isNext = flags.id === 'next'
  const given = fieldsOf(flags)
  const hasFlags = Object.keys(given).length > 0
  const path = flags.file ?? (hasFlags || io.stdin.isTerminal ? undefined : '-')
  if (path !== undefined) {
    const document = await readDocument(path, io)
    const hint = Array.isArray(document) ? onePlant : example
    const checked = await check(hasFlags && isObject(document) ? { ...document, ...given } : document)
    return { plant: await accept(checked, 'Invalid plant: ', hint, settings), isNext }
  }
  if (settings.mayAsk()) {
    const { plant, isProposed } = await ask(given, flags, settings, io)
    return { plant: await accept(await check(plant), '', 'Correct the flags', settings), isNext: isNext || isProposed }
  }
  const missing = plantFields.filter(({ name, isRequired }) => isRequired && given[name] === undefined)
  const checked = await check(given)
  const other = io.stdin.isPiped ? 'read JSON from stdin with --file -' : 'give a file of JSON with --file PATH'
  const isOnlyMissing = 'problems' in checked && checked.problems.length === missing.length
  if (isOnlyMissing)
    throw new PlantsError('invalid', `create needs ${missing.map(({ name }) => `--${name}`).join(' and ')}`, {
      hint: `Give ${missing.map(({ name, type }) => `--${name} ${type === 'text' ? 'TEXT' : 'NUMBER'}`).join(' and ')}, or ${other}`,
    })
  return { plant: await accept(checked, '', `Correct the flags, or ${other}`, settings), isNext }
}

/**
 * The fields that were given as flags. An id that is no int64 stays a text, which is rejected with the other fields; in the place of `next` is
 * one that the store replaces.
 */
function fieldsOf(flags: CreateFlags): Record<string, unknown> {
  const given = plantFields.flatMap(({ name, type }): [string, unknown][] => {
    const text = flags[name]
    return text === undefined ? [] : [[name, type === 'int64' ? (text === 'next' ? 0n : (parseInt64(text) ?? text)) : text]]
  })
  return Object.fromEntries(given)
}

/** Asks for what is missing, unless what was given is invalid already, or the store cannot take it. */
async function ask(given: Record<string, unknown>, flags: CreateFlags, settings: Settings, io: Io) {
  if ('id' in given && 'name' in given) return { plant: given, isProposed: false }
  const checked = await check({ id: 0n, name: '', ...given })
  if ('problems' in checked) return { plant: given, isProposed: false }
  if (takesToken(settings.store)) await settings.storeOptions.access(settings.store) // before somebody answers for nothing
  const store = isOwn(settings.store) ? await openIfThere(settings.store, settings.storeOptions) : undefined
  const isTaken = async (id: bigint) => !flags.idempotencyKey && (await store?.get(id)) !== undefined
  try {
    const { id } = checked.plant
    if ('id' in given && flags.id !== 'next' && (await isTaken(id))) throw addLookupHint(idExists(id), id, settings)
    // What a service has would take many requests to find out, and a key goes with one id.
    const mayPropose = isOwn(settings.store) && !('id' in given) && flags.idempotencyKey === undefined
    const greatest = mayPropose ? await store?.greatestId() : undefined
    const proposal = mayPropose && greatest !== largestId ? idAfter(greatest) : undefined
    const { askForPlant } = await import('../prompts.js')
    const check = async (other: bigint) => ((await isTaken(other)) ? idExists(other).message : undefined)
    const plant = await askForPlant(given, { check, proposal }, settings.colors(io.stderr), io)
    return { plant, isProposed: proposal !== undefined && plant['id'] === proposal }
  } finally {
    await store?.close()
  }
}

/** The schema is loaded only for a plant that is invalid, to say why. */
async function check(value: unknown): Promise<Checked> {
  return acceptNewPlant(value) ?? (await import('../../plant/schema.js')).checkNewPlant(value)
}

/** @param what begins the message about problems */
async function accept(checked: Checked, what: string, hint: string, settings: Settings): Promise<NewPlant> {
  const names = checked.otherFields.slice(0, 5).map((name) => JSON.stringify(shorten(name)))
  const more = checked.otherFields.length - names.length
  const others = `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  if ('problems' in checked) {
    const message = `${what}${checked.problems.join('; ')}`
    throw new PlantsError('invalid', message, { hint: others === '' ? hint : `${hint}. Unknown fields: ${others}` })
  }
  for (const name of checked.otherFields.slice(0, 5)) await settings.warn(await unknownField(shorten(name)), 'warning')
  if (more > 0) await settings.warn(`ignored ${more} more unknown ${more === 1 ? 'field' : 'fields'}`, 'warning')
  return checked.plant
}

/**
 * Reads one JSON document from a file, or from stdin when the path is `-`: UTF-8, at most 1 MiB, a byte order mark is skipped.
 *
 * @throws {PlantsError} `malformed` or `tooLarge`, naming the source
 */
async function readDocument(path: string, io: Io): Promise<unknown> {
  if (path === '') throw new PlantsError('malformed', '--file needs a path', { hint: 'Or read stdin with: --file -' })
  const text = await readText(path, io, { wanted: 'Give a file that holds one plant as JSON', tooLarge: onePlant })
  if (text.trim() === '' && path !== '-') throw new PlantsError('malformed', `${path} is empty`, { hint: example })
  if (text.trim() === '')
    throw new PlantsError('malformed', 'Nothing on stdin', { hint: 'Give the plant with flags: plants create --id 1 --name Fern' })
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const source = capital(sourceName(path))
    if (error.cause === severalValues)
      throw new PlantsError('malformed', `${source} contains ${error.message}`, { hint: onePlant, cause: error })
    throw new PlantsError('malformed', `${source} is not JSON: ${error.message}`, { hint: example, cause: error })
  }
}
