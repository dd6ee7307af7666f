import { outputFormats } from '../../config/option-values.js'
import { describeChange, describePlant, type Style } from '../../output/output.js'
import { invalidPlant, type PlantPatch, parsePlant, type StoredPlant } from '../../plant/plant.js'
import { must, PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { changedBy, type Outcome } from '../../stores/common/change.js'
import { planOf } from '../../stores/common/plan.js'
import type { Store } from '../../stores/common/store.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { mayBeSummed, performAll, readIds, sentencePrinter } from '../many.js'
import { assertNoStrays, idsArgument, singleId, warnOfEmptyTexts } from '../options.js'

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
    .handler(async (options: UpdateOptions, ids: string[]) => {
      await assertNoStrays(ids, command)
      return update(ids, options, io)
    })
}

export async function update(
  args: readonly string[],
  options: UpdateOptions,
  io: Io,
): Promise<void> {
  const patch = await patchIn(options)
  const id = singleId(args)
  const context = await CommandContext.from(options, io, outputFormats)
  const ids = await readIds(args, io)
  await warnOfEmptyTexts(options, context.reporter)
  const store = await context.openStore()
  const { dryRun: isDryRun = false } = options
  const isSummed = args.includes('-') && !isDryRun && mayBeSummed(context)
  /** The plants before the change. A service may not say. */
  const before = new Map<bigint, StoredPlant>()
  const perform = async (wanted: bigint) => {
    const changed = store && (await (isDryRun ? foresee : change)(store, { id: wanted, ...patch }))
    if (!changed) throw context.notFound(wanted, store)
    if (context.output === 'text' && !isSummed && changed.before) before.set(wanted, changed.before)
    return changed.plant
  }
  const sentence = (verb: string, plant: StoredPlant, style: Style) => {
    const old = before.get(plant.id)
    before.delete(plant.id)
    return old ? describeChange(verb, old, plant, style) : `${verb} ${describePlant(plant, style)}`
  }
  try {
    if (id === undefined) {
      const printer = await sentencePrinter('update', { isDryRun, isSummed }, context, sentence)
      const work = {
        perform,
        printer,
        action: 'update',
        isDryRun,
        isSummed,
        isCounted: isDryRun,
      } as const
      return await performAll([ids], work, context)
    }
    const plant = await perform(id)
    const text = sentence(isDryRun ? 'Would update' : 'Updated', plant, await context.style())
    if (!isDryRun) return await context.print(plant, text, 'The plant was updated')
    await context.printResult({ dryRun: true, ...plant }, text, 'Nothing was updated')
  } finally {
    await store?.close()
  }
}

/** Throws `usage` if nothing is to be changed, and `invalid` for a text that no plant can have. */
async function patchIn({ name, tag }: UpdateOptions): Promise<Omit<PlantPatch, 'id'>> {
  if (name === undefined && tag === undefined)
    throw usageError('update needs something to change', 'See: plants update --help')
  const patch = {
    ...(name !== undefined && { name }),
    ...(tag !== undefined && { tag: tag === false ? null : tag }),
  }
  const value = { id: 0n, ...patch }
  if (parsePlant(value, 'patch')) return patch
  const { problemsOf } = await import('../../plant/plant-schema.js')
  throw new PlantsError('invalid', invalidPlant(problemsOf(value, 'patch')), {
    hint: 'Correct the options',
  })
}

async function change(store: Store, patch: PlantPatch): Promise<Updated | undefined> {
  return updatedBy(await store.write([{ type: 'update', patch }]))
}

async function foresee(store: Store, patch: PlantPatch): Promise<Updated | undefined> {
  const stored = [...(await store.get([patch.id])).values()].map((plant) => ({ plant }))
  return updatedBy(planOf(stored, [{ type: 'update', patch }]).outcomes)
}

type Updated = Extract<Outcome, { type: 'updated' }>

/** Undefined if there is no such plant. */
function updatedBy([outcome]: Outcome[]): Updated | undefined {
  if (outcome?.type === 'rejected' && outcome.error.kind === 'notFound') return undefined
  const done = changedBy(must(outcome))
  return done.type === 'updated' ? done : undefined
}
