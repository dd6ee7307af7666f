import { outputFormats } from '../../config/option-values.js'
import { createUsageError, PlantsError } from '../../errors.js'
import { describeInvalidPlant, type PlantPatch, parsePlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import type { PlantsCommand } from '../command.js'
import { readStoreContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { idsDescription, isSingle, quotesHint, readIds } from '../ids.js'
import { openStore } from '../open-store.js'
import { warnOfEmptyTexts } from '../options.js'
import { changePlants } from '../outcomes.js'

interface UpdateOptions extends GlobalOptions {
  name?: string
  /** The new tag; false removes the tag. */
  tag?: string | false
  dryRun?: true
}

export function define(command: PlantsCommand): void {
  command
    .description('Change the name or tag of plants.')
    .argument('<id...>', idsDescription)
    .option('-n, --name <text>', 'the new name')
    .option('-t, --tag <text>', 'the new tag')
    .option('--no-tag', 'remove the tag')
    .option('--dry-run', 'print what would change, without changing it')
    .addExamples(
      'plants update 1 --name "Sword fern"',
      'plants list --search moss | plants update - --no-tag',
    )
    .handler(update)
}

async function update(options: UpdateOptions, io: Io, args: string[]): Promise<void> {
  const patch = await buildPatch(options)
  const context = await readStoreContext(options, io, outputFormats)
  const ids = await readIds(args, io, quotesHint)
  await warnOfEmptyTexts(options, 'To remove the tag: --no-tag', context.reporter)
  const store = await openStore(context)
  try {
    const changes = ids.map((id) => ({ type: 'update' as const, patch: { id, ...patch } }))
    const changeOptions = { isDryRun: options.dryRun === true, isSingle: isSingle(args) }
    await changePlants('update', changes, store, changeOptions, context)
  } finally {
    await store?.close()
  }
}

/** Builds the change of one plant. In a patch, the tag null removes the tag. */
async function buildPatch({ name, tag }: UpdateOptions): Promise<Omit<PlantPatch, 'id'>> {
  if (name === undefined && tag === undefined)
    throw createUsageError(
      'update needs a new name or tag',
      'Add --name TEXT, --tag TEXT or --no-tag',
    )
  const patch = {
    ...(name !== undefined && { name }),
    ...(tag !== undefined && { tag: tag === false ? null : tag }),
  }
  // A patch is only valid with an id. The real ids are checked by `readIds`.
  const patchWithId = { id: 0n, ...patch }
  if (parsePlant(patchWithId, 'patch')) return patch
  const { findProblems } = await import('../../plant/schema.js')
  const message = describeInvalidPlant(findProblems(patchWithId, 'patch'))
  throw new PlantsError('invalid', message, { hint: 'Correct the options' })
}
