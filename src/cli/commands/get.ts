import { notFound, quoteIfNeeded, styleFor, writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { openExistingStore } from '../../stores/registry.js'
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
      if (settings.output === 'json') return await writeAnswer(io, `${toJson({ ...plant })}\n`)
      const { faint, strong } = await styleFor(settings.colors(io.stdout))
      const { name, tag } = plant
      const lines = [`${faint('id')}    ${id}`, `${faint('name')}  ${strong(quoteIfNeeded(name))}`]
      if (tag !== undefined) lines.push(`${faint('tag')}   ${quoteIfNeeded(tag)}`)
      await writeAnswer(io, `${lines.join('\n')}\n`)
    } finally {
      await store?.close()
    }
  },
})
