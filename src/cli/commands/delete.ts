import { Option } from 'commander'
import { outputFormats } from '../../config/option-values.js'
import { describePlant, quoteIfNeeded, type Style } from '../../output/output.js'
import { plantCount, type StoredPlant } from '../../plant/plant.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { isDefaultStore } from '../../stores/common/address.js'
import { changedBy } from '../../stores/common/change.js'
import type { CountQuery } from '../../stores/common/query.js'
import type { Store } from '../../stores/common/store.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { mayBeSummed, performAll, readIds, sentencePrinter } from '../many.js'
import {
  addFilters,
  assertNoStrays,
  type FilterOptions,
  idsArgument,
  singleId,
} from '../options.js'

export interface DeleteOptions extends FilterOptions {
  ignoreMissing?: true
  dryRun?: true
  yes?: true
}

export function defineDelete(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Delete plants by id, or all that match, and print them, so that they can be created again.',
    )
    .argument('[id...]', idsArgument[1])
  addFilters(command)
    .addOption(
      new Option('--ignore-missing', 'ignore ids that no plant has').conflicts(['tag', 'search']),
    )
    .option('--dry-run', 'print what would be deleted, but delete nothing')
    .option('-y, --yes', 'do not ask for confirmation')
    .alsoAs('-f, --force', '--yes')
    .addExamples(
      'plants delete 1 2 3 --yes > deleted.ndjson',
      'plants delete --tag shade --search fern --dry-run',
    )
    .handler(async (options: DeleteOptions, ids: string[]) => {
      await assertNoStrays(ids, command)
      return deletePlants(ids, options, io)
    })
}

export async function deletePlants(
  args: readonly string[],
  options: DeleteOptions,
  io: Io,
): Promise<void> {
  const { tag, search, ignoreMissing = false, dryRun = false, yes = false } = options
  const filter = tag === undefined && search === undefined ? undefined : { tag, search }
  if (args.length > 0 === (filter !== undefined)) {
    const hint = 'Name plants by their ids, or by --tag, --no-tag or --search: plants help delete'
    throw usageError('delete takes either ids or filters', hint)
  }
  if (search === '')
    throw usageError(
      '--search is empty, and would match every plant',
      'Give it a text, or leave it out',
    )
  singleId(args) // what is no id is not worth a question
  const context = await CommandContext.from(options, io, outputFormats)
  const asks = !dryRun && !yes
  if (asks && (args.includes('-') || !context.mayAsk))
    throw usageError('Deleting requires confirmation', 'To delete without confirmation, add --yes')
  const ids = await readIds(args, io)
  const store = await context.openStore()
  try {
    // With --yes, plants are not read first: the token needs no right to read.
    let selection: Selection = { pages: [ids], question: '' }
    if (filter) selection = await plantsThatMatch(filter, store, asks)
    else if (asks) selection = await readPlants(ids, store, await context.style(io.stderr))
    if (selection.question !== '')
      await context.confirm(
        `Delete ${selection.question}${placeOf(context)}?`,
        'Nothing was deleted',
      )
    const perform = async (target: Target) => {
      const [id, only] = typeof target === 'bigint' ? [target] : [target.id, target]
      let plant: StoredPlant | undefined
      if (dryRun) plant = only ?? (await store?.get([id]))?.get(id)
      else if (only || !asks) plant = await remove(store, id, only) // what nobody was asked about stays
      if (plant || (ignoreMissing && !only)) return plant
      throw only ? changed(id) : context.notFound(id, store)
    }
    const isSummed = (filter !== undefined || args.includes('-')) && !dryRun && mayBeSummed(context)
    const printer = await sentencePrinter('delete', { isDryRun: dryRun, isSummed }, context)
    const counted = { isSummed, isCounted: filter !== undefined }
    const work = { perform, printer, action: 'delete', isDryRun: dryRun, ...counted } as const
    await performAll(selection.pages, work, context)
  } finally {
    await store?.close()
  }
}

/** An id, or a plant that is deleted only if it is still as it was read. */
type Target = StoredPlant | bigint

interface Selection {
  pages: AsyncIterable<Target[]> | Target[][]
  /** Empty if nothing is deleted or asked. */
  question: string
}

/** Returns undefined if there is no such plant. */
async function remove(
  store: Store | undefined,
  id: bigint,
  only: StoredPlant | undefined,
): Promise<StoredPlant | undefined> {
  const [outcome] = (await store?.write([{ type: 'delete', id, only }])) ?? []
  const isMissing = !outcome || (outcome.type === 'rejected' && outcome.error.kind === 'notFound')
  return isMissing ? undefined : changedBy(outcome).plant
}

async function plantsThatMatch(
  filter: CountQuery,
  store: Store | undefined,
  asks: boolean,
): Promise<Selection> {
  const pages = store?.read({ ...filter, inPages: true }) ?? []
  if (!asks) return { pages, question: '' }
  const plants: StoredPlant[] = [] // others may come while it is asked
  for await (const page of pages) plants.push(...page)
  if (plants.length === 0) return { pages: [], question: '' }
  const { tag, search } = filter
  const withTag =
    tag === false ? ' without a tag' : tag === undefined ? '' : ` with the tag ${quoted(tag)}`
  const withText = search === undefined ? '' : ` whose name or tag contains ${quoted(search)}`
  return { pages: [plants], question: plantCount(plants.length) + withTag + withText }
}

/** Ids that no plant has stay in the pages, to be reported. */
async function readPlants(
  ids: bigint[],
  store: Store | undefined,
  style: Style,
): Promise<Selection> {
  const plants = (await store?.get(ids)) ?? new Map<bigint, StoredPlant>()
  const question = [...plants.values()].map((plant) => describePlant(plant, style)).join(', ')
  return { pages: [ids.map((id) => plants.get(id) ?? id)], question }
}

function quoted(text: string): string {
  return escapeControlChars(JSON.stringify(text))
}

/** Such as ` from garden (/srv/garden.db)`; empty for the default store. */
function placeOf({ address, settings: { storeName } }: CommandContext): string {
  if (isDefaultStore(address)) return ''
  const name = quoteIfNeeded(address.name)
  return ` from ${storeName === undefined ? name : `${storeName} (${name})`}`
}

function changed(id: bigint): PlantsError {
  const hint = 'This command did not delete it. Run it again'
  return new PlantsError('conflict', `The plant ${id} was changed or deleted by another process`, {
    hint,
  })
}
