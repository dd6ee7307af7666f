import { describePlant, notFound, styleFor, writeResult } from '../../output/output.js'
import { textFields, textsInWords } from '../../plant/fields.js'
import { acceptNewPlant, invalidPlant, type NewPlant, plantFrom } from '../../plant/plant.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { outputFormats } from '../../platform/values.js'
import type { ReadableStore } from '../../stores/common/store.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import { defineCommand, dryRunOption, fieldFlags, type OptionValues, parseId } from '../define-command.js'

const options = [
  ...textFields.map((field) => ({
    flags: fieldFlags(field),
    description: `the new ${field.name}, which can be empty`,
  })),
  ...textFields
    .filter(({ isRequired }) => !isRequired)
    .map(({ name }) => ({ flags: `--no-${name}` as const, description: `remove the ${name}` })),
  dryRunOption('print what the plant would be, but change nothing'),
]

type Changes = OptionValues<typeof options>

export const update = defineCommand({
  name: 'update',
  description: `Change the ${textsInWords} of a plant, and print the plant. Its idempotency key is removed.`,
  arguments: [{ name: '<id>', description: 'id of the plant', parse: parseId }],
  options,
  formats: outputFormats,
  examples: ['plants update 1 --name "Sword fern"', 'plants update 1 --no-tag'],
  async run({ args: [id], flags, formats }, io) {
    if (textFields.every(({ name }) => flags[name] === undefined)) {
      const names = options.slice(0, -1).map((option) => option.flags.replace(/^-., | <.*/g, ''))
      throw malformed('update needs something to change', `Add one of ${names.join(', ')}`)
    }
    const settings = await resolveSettings(flags, io, { formats })
    const store = await openExistingStore(settings.store, { ...settings.storeOptions, needs: ['update'] })
    try {
      const plant = await store?.get(id)
      if (!store || !plant) throw notFound(id, settings, store !== undefined)
      const { old, updated } = (await replace(store, plant, flags)) ?? {}
      if (!updated) throw notFound(id, settings, true)
      for (const { name, isRequired } of textFields) {
        // an unset variable of a shell must not empty it silently
        if (flags[name] !== '' || old?.[name] === '') continue
        const change = `the ${name} changes from ${old?.[name] === undefined ? 'none' : JSON.stringify(old[name])} to ""`
        const remove = isRequired ? '' : `. To remove it, use --no-${name}`
        await settings.warn(`--${name} is empty: ${change}${remove}`, 'warning')
      }
      const what = describePlant(updated, await styleFor(settings.colors(io.stdout)))
      if (!flags.dryRun) return await writeResult(io, settings, updated, `Updated ${what}`, 'The plant was updated')
      const style = { output: settings.output }
      await writeResult(io, style, { dryRun: true, ...updated }, `Would update ${what}`, 'Nothing was updated')
    } finally {
      await store?.close()
    }
  },
})

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
  throw new PlantsError(
    'conflict',
    `Other processes changed plant ${plant.id} during each of ${maxAttempts} attempts`,
    {
      hint: 'This command changed nothing. Try again',
    },
  )
}
