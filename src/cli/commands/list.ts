import { styleFor, writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import type { NewPlant } from '../../plant/plant.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import { defineCommand, queryOptions } from '../define-command.js'

export const list = defineCommand({
  name: 'list',
  description: 'List the plants in the order of their ids: a table on a terminal, else one JSON object a line.',
  options: queryOptions,
  examples: ['plants list --tag shade', 'plants list --limit 100 --after 1000', 'plants list --search fern'],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { limit, after, tag, search } = flags
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      let isEmpty = true
      let format = (page: NewPlant[]) => page.map((plant) => `${toJson({ ...plant })}\n`).join('')
      if (settings.output === 'text') {
        const { plantTable } = await import('../../output/table.js')
        format = plantTable(io.stdout.isTerminal ? io.stdout.columns : undefined, await styleFor(settings.colors(io.stdout)))
      }
      for await (const page of store?.list({ limit, after, tag, search }) ?? []) {
        isEmpty = false
        await writeAnswer(io, format(page))
      }
      if (!store) await settings.warn(`There is no store at ${settings.store.name} yet. plants create makes it`)
      else if (isEmpty && settings.output === 'text')
        await settings.warn(search !== undefined ? 'No plants match' : tag === undefined ? 'No plants' : 'No plants with this tag')
    } finally {
      await store?.close()
    }
  },
})
