import { notFound, quoteIfNeeded, styleFor, writeResult } from '../../output/output.js'
import { plantFields } from '../../plant/fields.js'
import { outputFormats } from '../../platform/values.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import { defineCommand, parseId } from '../define-command.js'

export const get = defineCommand({
  name: 'get',
  description: 'Show the plant with this id.',
  arguments: [{ name: '<id>', description: 'id of the plant', parse: parseId }],
  formats: outputFormats,
  examples: ['plants get 1'],
  async run({ args: [id], flags, formats }, io) {
    const settings = await resolveSettings(flags, io, { formats })
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      const plant = await store?.get(id)
      if (!plant) throw notFound(id, settings, store !== undefined)
      const { faint, strong } = await styleFor(settings.colors(io.stdout))
      const width = Math.max(...plantFields.map(({ name }) => name.length))
      const lines = plantFields.flatMap(({ name }) => {
        if (plant[name] === undefined) return []
        const text = quoteIfNeeded(String(plant[name]))
        return `${faint(name)}${' '.repeat(width - name.length)}  ${name === 'name' ? strong(text) : text}`
      })
      await writeResult(io, { output: settings.output }, plant, lines.join('\n'), 'Run it again')
    } finally {
      await store?.close()
    }
  },
})
