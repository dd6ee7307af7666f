import { describeChange, describePlant, notFound, type Style, styleFor, writeResult } from '../../output/output.js'
import { textFields, textsInWords } from '../../plant/fields.js'
import {
  acceptNewPlant,
  idFromText,
  invalidPlant,
  type NewPlant,
  type PlantPatch,
  patchedPlant,
  plantCount,
} from '../../plant/plant.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { must, outputFormats } from '../../platform/values.js'
import { changedBy } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { defineCommand, dryRunOption, fieldFlags, idsArgument, type OptionValues, singleId } from '../define-command.js'
import { readIds } from '../ids.js'
import { performAll } from '../many.js'

const options = [
  ...textFields.map((field) => ({
    flags: fieldFlags(field),
    description: `the new ${field.name}, which can be empty`,
  })),
  ...textFields
    .filter(({ isRequired }) => !isRequired)
    .map(({ name }) => ({ flags: `--no-${name}` as const, description: `remove the ${name}` })),
  dryRunOption('print what the plants would be, but change nothing'),
]

type Changes = OptionValues<typeof options>

export const update = defineCommand({
  name: 'update',
  description: `Change the ${textsInWords} of plants, and print them. Their idempotency keys are removed.`,
  arguments: [idsArgument],
  options,
  formats: outputFormats,
  examples: ['plants update 1 --name "Sword fern"', 'plants list --search moss | plants update - --no-tag'],
  async run({ args, flags, formats }, io) {
    assertChanges(args, flags)
    const changes = await changesIn(flags)
    const id = singleId(args)
    const ids = await readIds(args, io)
    const settings = await resolveSettings(flags, io, { formats })
    const store = await openExistingStore(settings.store, { ...settings.storeOptions, needs: ['update'] })
    const emptied: Emptied = new Map()
    /** of a dry run, by id */
    const before = new Map<bigint, NewPlant>()
    const { dryRun: isDryRun = false } = flags
    const perform = async (wanted: bigint) => {
      const patch = { id: wanted, ...changes }
      const result = store && (await (isDryRun ? foresee(store, patch) : change(store, patch)))
      if (!result) throw notFound(wanted, settings, store)
      for (const { name } of textFields)
        if (flags[name] === '' && result.before?.[name] !== '')
          emptied.set(name, { count: (emptied.get(name)?.count ?? 0) + 1, before: result.before })
      if (isDryRun && settings.output === 'text' && result.before) before.set(wanted, result.before)
      return result.plant
    }
    const describe = (plant: NewPlant, style: Style) => {
      const old = before.get(plant.id)
      before.delete(plant.id)
      return old ? describeChange(old, plant, style) : describePlant(plant, style)
    }
    try {
      const work = { perform, verb: 'update', isDryRun, isCounted: isDryRun, describe } as const
      if (id === undefined) return await performAll([ids], work, settings, io)
      const updated = await perform(id)
      const what = describe(updated, await styleFor(settings.colors(io.stdout)))
      if (!isDryRun) return await writeResult(io, settings, updated, `Updated ${what}`, 'The plant was updated')
      const fields = { dryRun: true, ...updated }
      await writeResult(io, { output: settings.output }, fields, `Would update ${what}`, 'Nothing was updated')
    } finally {
      await store?.close()
      await warnOfEmptied(emptied, settings)
    }
  },
})

/** Throws `malformed` if nothing is to be changed, and for a text that is neither an id nor an option. */
function assertChanges(args: readonly string[], flags: Changes): void {
  const stray = args.slice(1).find((text) => text !== '-' && idFromText(text) === undefined)
  if (stray !== undefined)
    throw malformed(
      `update takes ids, but got ${JSON.stringify(shorten(stray))}`,
      'What changes is an option, and a text with spaces is in quotes: plants update ID --name "TEXT"',
    )
  if (textFields.some(({ name }) => flags[name] !== undefined)) return
  const names = options.slice(0, -1).map((option) => option.flags.replace(/^-., | <.*/g, ''))
  throw malformed('update needs something to change', `Add one of ${names.join(', ')}`)
}

/** By the name of the field: how many texts became empty, and a plant that had one, unless it is at a service. */
type Emptied = Map<string, { count: number; before: NewPlant | undefined }>

/** An unset variable of a shell must not empty a text silently. */
async function warnOfEmptied(emptied: Emptied, { warn }: Settings): Promise<void> {
  for (const { name, isRequired } of textFields) {
    const { count = 0, before } = emptied.get(name) ?? {}
    if (count === 0) continue
    const from = before && ` from ${before[name] === undefined ? 'none' : JSON.stringify(before[name])}`
    const change = count === 1 ? `the ${name} changes${from ?? ''}` : `the ${name} of ${plantCount(count)} changes`
    const remove = isRequired ? '' : `. To remove it, use --no-${name}`
    await warn(`--${name} is empty: ${change} to ""${remove}`, 'warning')
  }
}

type Patch = Omit<PlantPatch, 'id'>

/** Throws `invalid` for a text that no plant can have. */
async function changesIn(flags: Changes): Promise<Patch> {
  const changes: Patch = {}
  for (const { name } of textFields) {
    const text = flags[name]
    if (text !== undefined) changes[name] = text === false ? null : text
  }
  const value = { id: 0n, ...changes }
  if (acceptNewPlant(value, 'patch')) return changes
  const { problemsOf } = await import('../../plant/plant-schema.js')
  throw new PlantsError('invalid', invalidPlant(problemsOf(value, 'patch')), { hint: 'Correct the flags' })
}

interface Result {
  plant: NewPlant
  before?: NewPlant
}

/** Returns undefined if there is no such plant. */
async function change(store: Store, patch: PlantPatch): Promise<Result | undefined> {
  const [outcome] = await store.write([{ type: 'update', patch }])
  if (outcome?.type === 'rejected' && outcome.error.type === 'notFound') return undefined
  const done = changedBy(must(outcome))
  return done.type === 'updated' ? done : undefined
}

async function foresee(store: Store, patch: PlantPatch): Promise<Result | undefined> {
  const before = (await store.get([patch.id])).get(patch.id)
  const plant = before && patchedPlant(patch, before)
  return before && plant && { plant, before }
}
