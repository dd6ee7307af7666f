import { quoteIfNeeded, recordPrinter, styleFor } from '../../output/output.js'
import { parseJson } from '../../plant/json.js'
import { type FieldName, type NewPlant, plantCount } from '../../plant/plant.js'
import { fieldNames } from '../../plant/records.js'
import { malformed, shellOption } from '../../platform/errors.js'
import type { Io, Output } from '../../platform/io.js'
import { outputFormats, parseChoice } from '../../platform/values.js'
import type { ReadableStore, SnapshotQuery } from '../../stores/common/store.js'
import { isOwn, noStoreYet, openExistingStore } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { defineCommand, type GlobalFlags, type OptionDefinition, type OptionValues, parseWords, queryOptions } from '../define-command.js'

const options = [
  {
    flags: '--sort <field>',
    description: `sort by a field (${fieldNames.join(', ')}), ignoring the case of A to Z; a service sorts only by id`,
    choices: fieldNames,
    default: 'id',
    parse: parseSort,
  },
  {
    flags: '--fields <fields>',
    description: 'print only these fields, in this order, such as name,id',
    values: fieldNames,
    parse: parseWords(fieldNames, 'name,id'),
  },
  ...queryOptions,
] as const satisfies readonly OptionDefinition[]

type ListFlags = OptionValues<typeof options>

export const list = defineCommand({
  name: 'list',
  description: 'List plants in ascending order of id: as a table on a terminal, otherwise as NDJSON.',
  options,
  formats: outputFormats,
  examples: ['plants list --tag shade', 'plants list --limit 100 --after 1000', 'plants list --search fern --sort name --output csv'],
  async run({ flags, formats }, io) {
    const settings = await resolveSettings(flags, io, { formats })
    const { limit, after, tag, search, sort } = flags
    if (sort !== 'id' && !isOwn(settings.store)) {
      throw malformed(`--sort ${sort} is not supported at ${settings.store.name}: a service sorts only by id`, 'Leave it out')
    }
    const { fields = fieldNames } = flags
    const isTable = settings.output === 'text'
    const store = await openExistingStore(settings.store, settings.storeOptions)
    let shown = 0
    let last: NewPlant | undefined
    let isTruncated = false
    /** A table reads one plant more than its limit, to find out whether there are more. */
    async function* pages(): AsyncGenerator<NewPlant[]> {
      if (!store) return
      const query = { limit: limit && limit + Number(isTable), after, tag, search, sort }
      for await (const page of sort === 'id' ? store.list(query) : sortedPages(store, { ...query, record: 'json' })) {
        const kept = page.slice(0, limit && limit - shown)
        isTruncated = kept.length < page.length
        if (kept.length === 0) return
        yield kept
        shown += kept.length
        last = kept.at(-1)
      }
    }
    try {
      const { print, end } = await recordPrinter(io, settings, { fields, text: async () => plantTable(fields, settings, io.stdout) })
      for await (const page of await shownPages(pages(), settings, io)) await print(page)
      await end()
      if (!store) await settings.warn(noStoreYet(settings.store))
      else if (shown === 0 && isTable) await settings.warn(noPlants(flags))
      else if (isTruncated) await settings.warn(`Only ${plantCount(shown)} shown. ${commandForMore(flags, last, settings.storeFlag)}`)
    } finally {
      await store?.close()
    }
  },
})

function parseSort(flag: string, text: string): FieldName {
  return parseChoice(flag, text, fieldNames, text.startsWith('-') ? 'There is no descending order' : undefined)
}

async function* sortedPages(store: ReadableStore, query: SnapshotQuery): AsyncGenerator<NewPlant[]> {
  for await (const { text } of store.snapshot(query)) yield text.split('\n').map((line) => (parseJson(line) as { value: NewPlant }).value) // as the store wrote it
}

async function plantTable(fields: readonly FieldName[], { colors }: Settings, stdout: Output) {
  const { tableOf } = await import('../../output/table.js')
  const titles = fields.map((name) => name.toUpperCase())
  const cellsOf = (plant: NewPlant) => fields.map((name) => (plant[name] === undefined ? '' : quoteIfNeeded(String(plant[name]))))
  return tableOf({ titles, cellsOf, isWrapped: false, style: await styleFor(colors(stdout)) }, stdout)
}

/** Joins the first pages of a table. Shows the number of plants read, unless they are printed on the terminal. */
async function shownPages(pages: AsyncGenerator<NewPlant[]>, { output, showsProgress }: Settings, io: Io) {
  const shown = output === 'text' ? (await import('../../output/table.js')).withFirstRows(pages) : pages
  if (!showsProgress || io.stdout.isTerminal) return shown
  const { progressLine, withProgress } = await import('../../output/progress.js')
  return withProgress(shown, ({ length }) => length, progressLine(io, true))
}

function noPlants({ tag, search }: ListFlags): string {
  if (search === undefined) return tag === undefined ? 'No plants' : 'No plants with this tag'
  const hasOtherCase = /(?=\P{ASCII})\p{Cased}/u.test(search)
  return hasOtherCase ? 'No plants match. Only A to Z are matched without regard to case' : 'No plants match'
}

/** The command that lists what a limit left out: the plants after the last id, or with another order all plants. */
function commandForMore(flags: ListFlags & Pick<GlobalFlags, 'output'>, last: NewPlant | undefined, storeFlag: string): string {
  const { limit, after, sort, output, fields, tag, search } = flags
  const [label, position] = sort === 'id' ? ['For more', { limit, after: last?.id }] : ['For all', { sort, after }]
  const given = Object.entries({ ...position, output, fields, tag, search })
  return `${label}: plants list${given.map(([name, value]) => shellOption(name, value?.toString())).join('')}${storeFlag}`
}
