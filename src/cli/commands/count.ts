import { writeAnswer } from '../../output/output.js'
import { plantCount } from '../../plant/plant.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import { defineCommand, filterOptions } from '../define-command.js'

export const count = defineCommand({
  name: 'count',
  description: 'Print the number of plants; with --output json or ndjson as a JSON number.',
  options: filterOptions,
  examples: ['plants count', 'plants count --tag shade'],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { tag, search } = flags
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      const plants = (await store?.count({ tag, search })) ?? 0n
      await writeAnswer(io, settings.output === 'text' ? `${plantCount(plants)}\n` : `${plants}\n`)
    } finally {
      await store?.close()
    }
  },
})
