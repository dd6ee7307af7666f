import { outputFormats } from '../../config/option-values.js'
import { quoteIfNeeded, type Style } from '../../output/output.js'
import type { StoredPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { performAll, readIds } from '../many.js'
import { idsArgument, singleId } from '../options.js'

export function defineGet(command: PlantsCommand, io: Io): void {
  command
    .description('Show plants by id; several as a list.')
    .argument(...idsArgument)
    .addExamples('plants get 1', 'plants get 1 2 3 --output json')
    .handler((options: GlobalOptions, ids: string[]) => get(ids, options, io))
}

export async function get(args: readonly string[], options: GlobalOptions, io: Io): Promise<void> {
  const id = singleId(args)
  const context = await CommandContext.from(options, io, outputFormats)
  const ids = id === undefined ? await readIds(args, io) : []
  const store = await context.openStore()
  const perform = async (wanted: bigint) => {
    const plant = (await store?.get([wanted]))?.get(wanted)
    if (plant) return plant
    throw context.notFound(wanted, store)
  }
  try {
    if (id === undefined) {
      await performAll([ids], { perform, printer: await context.plantPrinter() }, context)
    } else {
      const plant = await perform(id)
      await context.printResult(plant, layOut(plant, await context.style()))
    }
  } finally {
    await store?.close()
  }
}

function layOut({ id, name, tag }: StoredPlant, { faint, strong }: Style): string {
  const line = (field: string, text: string) =>
    `${faint(field)}${' '.repeat(4 - field.length)}  ${text}`
  const lines = [line('id', String(id)), line('name', strong(quoteIfNeeded(name)))]
  if (tag !== undefined) lines.push(line('tag', quoteIfNeeded(tag)))
  return lines.join('\n')
}
