import { styleFor, writeAnswer } from '../../output/output.js'
import { parseJson } from '../../plant/json.js'
import { type FieldName, type NewPlant, plantCount } from '../../plant/plant.js'
import { fieldNames, recordWriter, separators } from '../../plant/records.js'
import { malformed, shellOption } from '../../platform/errors.js'
import { escapeControlCharsInLines } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { parseChoice } from '../../platform/values.js'
import type { ReadableStore, SnapshotQuery } from '../../stores/common/store.js'
import { isOwn, noStoreYet, openExistingStore } from '../../stores/registry.js'
import { type FormatName, formatNames } from '../../transfer/formats/format.js'
import { resolveSettings, type Settings } from '../context.js'
import { defineCommand, type OptionDefinition, type OptionValues, parseWords, queryOptions } from '../define-command.js'

const options = [
  {
    flags: '--sort <field>',
    description: `sort by a field (${fieldNames.join(', ')}), ignoring the case of A to Z; a service sorts only by id`,
    choices: fieldNames,
    default: 'id',
    parse: parseSort,
  },
  {
    flags: '--format <format>',
    description: 'table, ndjson, json, csv or tsv; by default a table on a terminal, else ndjson',
    choices: ['table', ...formatNames],
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
type ListFormat = NonNullable<ListFlags['format']>

export const list = defineCommand({
  name: 'list',
  description: 'List plants in ascending order of id: as a table on a terminal, otherwise as one JSON object per line.',
  options,
  examples: ['plants list --tag shade', 'plants list --limit 100 --after 1000', 'plants list --search fern --sort name --format csv'],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { limit, after, tag, search, sort } = flags
    if (sort !== 'id' && !isOwn(settings.store)) {
      throw malformed(`--sort ${sort} is not supported at ${settings.store.name}: a service sorts only by id`, 'Leave it out')
    }
    const format: ListFormat = flags.format ?? (settings.output === 'text' ? 'table' : 'ndjson')
    const { fields = fieldNames } = flags
    const store = await openExistingStore(settings.store, settings.storeOptions)
    let shown = 0
    let last: NewPlant | undefined
    let isTruncated = false
    /** A table reads one plant more than its limit, to find out whether there are more. */
    async function* pages(): AsyncGenerator<NewPlant[]> {
      if (!store) return
      const query = { limit: limit && limit + Number(format === 'table'), after, tag, search, sort }
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
      for await (const text of rendered(await showingProgress(pages(), settings, io), format, fields, settings, io))
        await writeAnswer(io, text)
      if (!store) await settings.warn(noStoreYet(settings.store))
      else if (shown === 0 && format === 'table')
        await settings.warn(search !== undefined ? noMatch(search) : tag === undefined ? 'No plants' : 'No plants with this tag')
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

/** Shows the number of plants read, unless the plants themselves are printed on the terminal. */
async function showingProgress(pages: AsyncGenerator<NewPlant[]>, { showsProgress }: Settings, io: Io) {
  if (!showsProgress || io.stdout.isTerminal) return pages
  const { progressLine, withProgress } = await import('../../output/progress.js')
  return withProgress(pages, ({ length }) => length, progressLine(io, true))
}

async function* rendered(pages: AsyncGenerator<NewPlant[]>, format: ListFormat, fields: readonly FieldName[], settings: Settings, io: Io) {
  const { stdout } = io
  if (format === 'table') {
    const { plantTable, withFirstRows } = await import('../../output/table.js')
    const write = plantTable(stdout.isTerminal ? stdout.columns : undefined, await styleFor(settings.colors(stdout)), fields)
    for await (const page of withFirstRows(pages)) yield write(page)
  } else if (format === 'ndjson') {
    const write = recordWriter('json', fields)
    for await (const page of pages) yield page.map((plant) => `${write(plant)}\n`).join('')
  } else {
    for await (const text of documentOf(pages, format, fields)) yield stdout.isTerminal ? escapeControlCharsInLines(text) : text
  }
}

async function* documentOf(pages: AsyncGenerator<NewPlant[]>, format: FormatName, fields: readonly FieldName[]): AsyncGenerator<string> {
  const { toDocument } = await import('../../transfer/export/document.js')
  const { formats } = await import('../../transfer/formats/formats.js')
  const { write: writer } = formats[format]
  const head = writer.record === 'json' ? writer.head : `${fields.join(separators[writer.record])}\n`
  const write = recordWriter(writer.record, fields)
  const blocks = async function* () {
    for await (const page of pages) yield { text: page.map(write).join('\n'), plants: page.length }
  }
  for await (const { text } of toDocument(blocks(), { ...writer, head })) yield text
}

function noMatch(search: string): string {
  const hasOtherCase = /(?=\P{ASCII})\p{Cased}/u.test(search)
  return hasOtherCase ? 'No plants match. Only A to Z are matched without regard to case' : 'No plants match'
}

/** The command that lists what a limit left out: the plants after the last id, or with another order all plants. */
function commandForMore(flags: ListFlags, last: NewPlant | undefined, storeFlag: string): string {
  const { limit, after, sort, format, fields, tag, search } = flags
  const [label, position] = sort === 'id' ? ['For more', { limit, after: last?.id }] : ['For all', { sort, after }]
  const given = Object.entries({ ...position, format, fields, tag, search })
  return `${label}: plants list${given.map(([name, value]) => shellOption(name, value?.toString())).join('')}${storeFlag}`
}
