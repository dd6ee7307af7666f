import { outputFormats } from '../../config/option-values.js'
import { assertDefined, describeReason, PlantsError } from '../../errors.js'
import { createStyle, quoteIfNeeded, type Style } from '../../output/output.js'
import type { StoredPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { createNotFoundProblem } from '../../stores/change.js'
import { findKind } from '../../stores/kinds.js'
import type { Store } from '../../stores/store.js'
import type { PlantsCommand } from '../command.js'
import { type CommandContext, readStoreContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { idsDescription, isSingle, readIds } from '../ids.js'
import { openStore } from '../open-store.js'
import { type PlantResult, printAndReport, splitIntoPages } from '../outcomes.js'
import { createPlantPrinter, createPrinter } from '../print.js'

export function define(command: PlantsCommand): void {
  command
    .description('Show a plant by id, or several plants as a list.')
    .argument('<id...>', idsDescription)
    .addExamples('plants get 1 2 3 --output json')
    .handler(get)
}

async function get(options: GlobalOptions, io: Io, args: string[]): Promise<void> {
  const context = await readStoreContext(options, io, outputFormats)
  const ids = await readIds(args, io)
  const store = await openStore(context)
  try {
    const style = await createStyle(context)
    const text = (plants: StoredPlant[]) =>
      plants.map((plant) => formatFields(plant, style)).join('')
    const printer = isSingle(args)
      ? createPrinter({ text }, context, true)
      : await createPlantPrinter<StoredPlant>(context)
    await printAndReport(getPlants(ids, store, context), printer, context)
  } finally {
    await store?.close()
  }
}

/**
 * Gets plants page by page. A direct store reads a page at once. A service is asked for one plant
 * in each request, and may fail for some of them: then the others are printed nevertheless.
 */
async function* getPlants(
  ids: readonly bigint[],
  store: Store | undefined,
  { address, io }: CommandContext,
): AsyncGenerator<PlantResult[]> {
  for (const page of splitIntoPages(ids)) {
    const pageRead = findKind(address).isDirect ? store?.get(page) : undefined
    const lookups = await Promise.allSettled(page.map((id) => pageRead ?? store?.get([id])))
    // To handle signals takes 2 ms of a start, so they are not handled for the first page.
    if (page[0] !== ids[0]) io.getStopSignal().throwIfAborted()
    const reasons = new Set(
      lookups.map((lookup) => 'reason' in lookup && describeReason(lookup.reason)),
    )
    yield page.map((id, index): PlantResult => {
      const lookup = assertDefined(lookups[index])
      if ('value' in lookup) {
        const plant = lookup.value?.get(id)
        return plant ? { plant } : { problem: createNotFoundProblem(id) }
      }
      const { reason } = lookup
      // If all plants failed for one reason, such as a service that is unreachable, that is the
      // error of the command, and not of a plant.
      if (reasons.size === 1 || !(reason instanceof PlantsError)) throw reason
      const message = `Plant ${id}: ${reason.message}`
      return { problem: new PlantsError(reason.kind, message, { ...reason }) }
    })
  }
}

/** Formats a plant for people, with a line for each field. */
function formatFields({ id, name, tag }: StoredPlant, { faint, strong }: Style): string {
  const line = (field: string, text: string) => `${faint(field.padEnd(6))}${text}\n`
  const lines = [line('id', String(id)), line('name', strong(quoteIfNeeded(name)))]
  if (tag !== undefined) lines.push(line('tag', quoteIfNeeded(tag)))
  return lines.join('')
}
