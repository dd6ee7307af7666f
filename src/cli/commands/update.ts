import { describeChange, describePlant, notFound, type Style, styleFor, writeResult } from '../../output/output.js'
import { parseInt64 } from '../../plant/exact-json.js'
import { textFields, textsInWords } from '../../plant/fields.js'
import { acceptNewPlant, invalidPlant, type NewPlant, plantCount, plantFrom } from '../../plant/plant.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { outputFormats } from '../../platform/values.js'
import type { ReadableStore } from '../../stores/common/store.js'
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
    const id = singleId(args)
    const ids = await readIds(args, io)
    const settings = await resolveSettings(flags, io, { formats })
    const store = await openExistingStore(settings.store, { ...settings.storeOptions, needs: ['update'] })
    const emptied: Emptied = new Map()
    /** of a dry run, by id */
    const before = new Map<bigint, NewPlant>()
    const { dryRun: isDryRun = false } = flags
    const perform = async (wanted: bigint) => {
      const plant = await store?.get(wanted)
      const result = store && plant && (await replace(store, plant, flags))
      if (!result) throw notFound(wanted, settings, store)
      for (const { name } of textFields)
        if (flags[name] === '' && result.old[name] !== '')
          emptied.set(name, { count: (emptied.get(name)?.count ?? 0) + 1, text: result.old[name] })
      if (isDryRun && settings.output === 'text') before.set(wanted, result.old)
      return result.updated
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
  const stray = args.slice(1).find((text) => text !== '-' && parseInt64(text) === undefined)
  if (stray !== undefined)
    throw malformed(
      `update takes ids, but got ${JSON.stringify(shorten(stray))}`,
      'What changes is an option, and a text with spaces is in quotes: plants update ID --name "TEXT"',
    )
  if (textFields.some(({ name }) => flags[name] !== undefined)) return
  const names = options.slice(0, -1).map((option) => option.flags.replace(/^-., | <.*/g, ''))
  throw malformed('update needs something to change', `Add one of ${names.join(', ')}`)
}

/** By the name of the field: how many texts became empty, and one that did. */
type Emptied = Map<string, { count: number; text: string | undefined }>

/** An unset variable of a shell must not empty a text silently. */
async function warnOfEmptied(emptied: Emptied, { warn }: Settings): Promise<void> {
  for (const { name, isRequired } of textFields) {
    const { count = 0, text } = emptied.get(name) ?? {}
    if (count === 0) continue
    const from = text === undefined ? 'none' : JSON.stringify(text)
    const change = count === 1 ? `the ${name} changes from ${from}` : `the ${name} of ${plantCount(count)} changes`
    const remove = isRequired ? '' : `. To remove it, use --no-${name}`
    await warn(`--${name} is empty: ${change} to ""${remove}`, 'warning')
  }
}

const maxAttempts = 10

/** Retries if another process changed it first. Returns undefined if the plant was deleted. */
async function replace(store: ReadableStore, plant: NewPlant, changes: Changes) {
  let old = plant
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const value = plantFrom(plant.id, ({ name }) =>
      changes[name] === false ? undefined : (changes[name] ?? old[name]),
    )
    const accepted = acceptNewPlant(value)
    if (!accepted) {
      const { problemsOf } = await import('../../plant/plant-schema.js')
      throw new PlantsError('invalid', invalidPlant(problemsOf(value)), { hint: 'Correct the flags' })
    }
    const updated = changes.dryRun ? accepted : await store.replace(accepted, old)
    if (updated) return { old, updated }
    const current = await store.get(plant.id)
    if (!current) return undefined
    old = current
  }
  const message = `Other processes changed plant ${plant.id} during each of ${maxAttempts} attempts`
  throw new PlantsError('conflict', message, { hint: 'This command changed nothing. Try again' })
}
