import { notFound, quoteIfNeeded, styleFor, writeResult } from '../../output/output.js'
import { fieldNames, type NewPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { outputFormats } from '../../platform/values.js'
import { openExistingStore } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { resolveSettings } from '../context.js'
import { idsArgument, singleId } from '../options.js'
import { plantTable } from '../plant-table.js'
import type { Settings } from '../settings.js'

export function defineGet(command: PlantsCommand, io: Io): void {
  command
    .description('Show plants by id; several as a list.')
    .argument(...idsArgument)
    .addExamples('plants get 1', 'plants get 1 2 3 --output json')
    .handler((options: GlobalOptions, ids: string[]) => get(ids, options, io))
}

export async function get(args: readonly string[], options: GlobalOptions, io: Io): Promise<void> {
  const id = singleId(args)
  const many = id === undefined ? await import('../many.js') : undefined
  const settings = await resolveSettings(options, io, { formats: outputFormats })
  const ids = await many?.readIds(args, settings, io)
  const store = await openExistingStore(settings.store, settings.storeOptions)
  const perform = async (wanted: bigint) => {
    const plant = (await store?.get([wanted]))?.get(wanted)
    if (plant) return plant
    throw notFound(wanted, settings, store)
  }
  try {
    if (id !== undefined) await showPlant(await perform(id), settings, io)
    if (many && ids)
      await many.performAll([ids], { perform, text: () => plantTable(fieldNames, settings, io) }, settings, io)
  } finally {
    await store?.close()
  }
}

async function showPlant(plant: NewPlant, { output, colors }: Settings, io: Io) {
  const { faint, strong } = await styleFor(colors(io.stdout))
  const { id, name, tag } = plant
  const line = (field: string, text: string) => `${faint(field)}${' '.repeat(4 - field.length)}  ${text}`
  const lines = [line('id', String(id)), line('name', strong(quoteIfNeeded(name)))]
  if (tag !== undefined) lines.push(line('tag', quoteIfNeeded(tag)))
  await writeResult(io, { output }, plant, lines.join('\n'), 'Run it again')
}
