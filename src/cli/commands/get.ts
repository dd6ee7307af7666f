import { notFound, quoteIfNeeded, styleFor, writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import type { NewPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { openExistingStore } from '../../stores/registry.js'
import type { Settings } from '../context.js'
import { resolveSettings } from '../context.js'
import { defineCommand, parseId } from '../define-command.js'

export const get = defineCommand({
  name: 'get',
  description: 'Show the plant that has this id.',
  arguments: [{ name: '<id>', description: 'identification number', parse: parseId }],
  examples: ['plants get 1'],
  async run({ args: [id], flags }, io) {
    const settings = await resolveSettings(flags, io)
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      const plant = await store?.get(id)
      if (!plant) throw notFound(id, settings, store !== undefined)
      await writeAnswer(io, settings.output === 'json' ? `${toJson({ ...plant })}\n` : await card(plant, settings, io))
    } finally {
      await store?.close()
    }
  },
})

async function card({ id, name, tag }: NewPlant, settings: Settings, io: Io): Promise<string> {
  const style = await styleFor(settings.colors(io.stdout))
  const lines = [`${style.faint('id')}    ${id}`, `${style.faint('name')}  ${style.strong(quoteIfNeeded(name))}`]
  if (tag !== undefined) lines.push(`${style.faint('tag')}   ${quoteIfNeeded(tag)}`)
  return lines.map((line) => `${line}\n`).join('')
}
