import { outputFormats } from '../../config/option-values.js'
import { quoteIfNeeded, type Style } from '../../output/output.js'
import type { StoredPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { notFound } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { idsArgument, isSingle, readIds } from '../ids.js'
import { inParts, printResults, type ReadResult } from '../outcomes.js'

export function defineGet(command: PlantsCommand, io: Io): void {
  command
    .description('Show plants by id; several as a list.')
    .argument(...idsArgument)
    .addExamples('plants get 1', 'plants get 1 2 3 --output json')
    .handler((options: GlobalOptions, ids: string[]) => get(ids, options, io))
}

export async function get(args: readonly string[], options: GlobalOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io, outputFormats)
  const ids = await readIds(args, io)
  const store = await context.openStore()
  try {
    const style = await context.style()
    const text = (plants: StoredPlant[]) => plants.map((plant) => layOut(plant, style)).join('')
    const printer = isSingle(args)
      ? context.printer({ text }, true)
      : await context.plantPrinter<StoredPlant>()
    await printResults(resultsOf(ids, store, io), printer, {}, context)
  } finally {
    await store?.close()
  }
}

async function* resultsOf(
  ids: readonly bigint[],
  store: Store | undefined,
  io: Io,
): AsyncGenerator<ReadResult[]> {
  for (const page of inParts(ids)) {
    io.handleSignals().throwIfAborted()
    const plants = (await store?.get(page)) ?? new Map<bigint, StoredPlant>()
    yield page.map((id): ReadResult => {
      const plant = plants.get(id)
      return plant ? { plant } : { error: notFound(id) }
    })
  }
}

function layOut({ id, name, tag }: StoredPlant, { faint, strong }: Style): string {
  const line = (field: string, text: string) =>
    `${faint(field)}${' '.repeat(4 - field.length)}  ${text}\n`
  const lines = [line('id', String(id)), line('name', strong(quoteIfNeeded(name)))]
  if (tag !== undefined) lines.push(line('tag', quoteIfNeeded(tag)))
  return lines.join('')
}
