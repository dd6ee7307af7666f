import { describePlant, notFound, styleFor, writeResult } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { PlantsError } from '../../platform/errors.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import { defineCommand, parseId, yesOption } from '../define-command.js'

export const deletePlant = defineCommand({
  name: 'delete',
  description: 'Delete the plant that has this id, and print it, so that it can be created again.',
  arguments: [{ name: '<id>', description: 'identification number', parse: parseId }],
  options: [yesOption('do not ask')],
  examples: ['plants delete 1', 'plants delete 1 --yes > deleted.json'],
  async run({ args: [id], flags }, io) {
    const settings = await resolveSettings(flags, io)
    if (!flags.yes && !settings.mayAsk())
      throw new PlantsError('malformed', `Deleting the plant ${id} needs a yes`, { hint: 'To delete it without a question, add --yes' })
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      const shown = await store?.get(id)
      if (!shown) throw notFound(id, settings, store !== undefined)
      if (!flags.yes) {
        const { askToConfirm } = await import('../prompts.js')
        const isColored = settings.colors(io.stderr)
        const question = `Delete ${describePlant(shown, await styleFor(isColored))}?`
        if (!(await askToConfirm(question, isColored, io))) throw new PlantsError('interrupted', `The plant ${id} stays as it was`)
      }
      const deleted = await store?.delete(id, flags.yes ? undefined : shown)
      if (!deleted)
        throw new PlantsError('conflict', `The plant ${id} was changed or deleted meanwhile`, { hint: 'Nothing was deleted. Look again' })
      const plant = describePlant(deleted, await styleFor(settings.colors(io.stdout)))
      await writeResult(io, settings, { ...deleted }, `Deleted ${plant}`, `It is deleted. It was: ${toJson({ ...deleted })}`)
    } finally {
      await store?.close()
    }
  },
})
