import { outputFormats } from '../../config/option-values.js'
import { describeChange, type Style } from '../../output/output.js'
import { invalidPlant, type PlantPatch, parsePlant } from '../../plant/plant.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import type { Change } from '../../stores/common/change.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { idsArgument, isSingle, readIds } from '../ids.js'
import { warnOfEmptyTexts } from '../options.js'
import {
  changeInParts,
  changePrinter,
  inParts,
  type PrintedPlant,
  printResults,
  sentenceOf,
} from '../outcomes.js'

export interface UpdateOptions extends GlobalOptions {
  name?: string
  /** False removes it. */
  tag?: string | false
  dryRun?: true
}

export function defineUpdate(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Change the name or tag of plants, and print them. Their idempotency keys are removed.',
    )
    .argument(...idsArgument)
    .option('-n, --name <text>', 'the new name')
    .option('-t, --tag <text>', 'the new tag')
    .option('--no-tag', 'remove the tag')
    .option('--dry-run', 'print what would change, but change nothing')
    .addExamples(
      'plants update 1 --name "Sword fern"',
      'plants list --search moss | plants update - --no-tag',
    )
    .handler((options: UpdateOptions, ids: string[]) => update(ids, options, io))
}

export async function update(
  args: readonly string[],
  options: UpdateOptions,
  io: Io,
): Promise<void> {
  const patch = await patchIn(options)
  const isDryRun = options.dryRun === true
  const context = await CommandContext.from(options, io, outputFormats)
  const ids = await readIds(args, io)
  await warnOfEmptyTexts(options, context.reporter)
  const store = await context.openStore()
  try {
    const changes = ids.map((id): Change => ({ type: 'update', patch: { id, ...patch } }))
    const outcomes = changeInParts(store, inParts(changes), isDryRun, context)
    const printer = await changePrinter(sentence, isSingle(args), context)
    await printResults(outcomes, printer, { isDryRun }, context)
  } finally {
    await store?.close()
  }
}

/** A service does not say what the plant was. */
function sentence(plant: PrintedPlant, style: Style): string {
  const { before, dryRun } = plant
  if (!before) return sentenceOf('Updated', 'update')(plant, style)
  return describeChange(dryRun ? 'Would update' : 'Updated', before, plant, style)
}

/** Throws `usage` if nothing is to be changed, and `invalid` for a text that no plant can have. */
async function patchIn({ name, tag }: UpdateOptions): Promise<Omit<PlantPatch, 'id'>> {
  if (name === undefined && tag === undefined)
    throw usageError('update needs something to change', 'Add --name TEXT, --tag TEXT or --no-tag')
  const patch = {
    ...(name !== undefined && { name }),
    ...(tag !== undefined && { tag: tag === false ? null : tag }),
  }
  const value = { id: 0n, ...patch }
  if (parsePlant(value, 'patch')) return patch
  const { problemsOf } = await import('../../plant/plant-schema.js')
  const message = invalidPlant(problemsOf(value, 'patch'))
  throw new PlantsError('invalid', message, { hint: 'Correct the options' })
}
