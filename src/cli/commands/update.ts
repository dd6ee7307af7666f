import { describeChange, describePlant, notFound, type Style, styleFor, writeResult } from '../../output/output.js'
import {
  acceptNewPlant,
  idFromText,
  invalidPlant,
  type NewPlant,
  type PlantPatch,
  patchedPlant,
} from '../../plant/plant.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { must, outputFormats } from '../../platform/values.js'
import { changedBy } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'
import { openExistingStore } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { resolveSettings } from '../context.js'
import { performAll, readIds } from '../many.js'
import { idsArgument, singleId, warnOfEmptyTexts } from '../options.js'

export interface UpdateOptions extends GlobalOptions {
  name?: string
  /** false removes it */
  tag?: string | false
  dryRun?: true
}

export function defineUpdate(command: PlantsCommand, io: Io): void {
  command
    .description('Change the name or tag of plants, and print them. Their idempotency keys are removed.')
    .argument(...idsArgument)
    .option('-n, --name <text>', 'the new name')
    .option('-t, --tag <text>', 'the new tag')
    .option('--no-tag', 'remove the tag')
    .option('--dry-run', 'print what would change, but change nothing')
    .addExamples('plants update 1 --name "Sword fern"', 'plants list --search moss | plants update - --no-tag')
    .handler((options: UpdateOptions, ids: string[]) => update(ids, options, io))
}

export async function update(args: readonly string[], options: UpdateOptions, io: Io): Promise<void> {
  const stray = args.slice(1).find((text) => text !== '-' && idFromText(text) === undefined)
  if (stray !== undefined)
    throw malformed(
      `update takes ids, but got ${JSON.stringify(shorten(stray))}`,
      'What changes is an option, and a text with spaces is in quotes: plants update ID --name "TEXT"',
    )
  const patch = await patchIn(options)
  const id = singleId(args)
  const settings = await resolveSettings(options, io, { formats: outputFormats })
  const ids = await readIds(args, settings, io)
  await warnOfEmptyTexts(options, settings)
  const store = await openExistingStore(settings.store, { ...settings.storeOptions, needs: ['update'] })
  const { dryRun: isDryRun = false } = options
  /** the plants before the change; a service may not say */
  const before = new Map<bigint, NewPlant>()
  const perform = async (wanted: bigint) => {
    const changed = store && (await (isDryRun ? foresee : change)(store, { id: wanted, ...patch }))
    if (!changed) throw notFound(wanted, settings, store)
    if (settings.output === 'text' && changed.before) before.set(wanted, changed.before)
    return changed.plant
  }
  const describe = (plant: NewPlant, style: Style) => {
    const old = before.get(plant.id)
    before.delete(plant.id)
    return old ? describeChange(old, plant, style) : describePlant(plant, style)
  }
  try {
    if (id === undefined)
      return await performAll([ids], { perform, verb: 'update', isDryRun, isCounted: isDryRun, describe }, settings, io)
    const plant = await perform(id)
    const what = describe(plant, await styleFor(settings.colors(io.stdout)))
    if (!isDryRun) return await writeResult(io, settings, plant, `Updated ${what}`, 'The plant was updated')
    const fields = { dryRun: true, ...plant }
    await writeResult(io, { output: settings.output }, fields, `Would update ${what}`, 'Nothing was updated')
  } finally {
    await store?.close()
  }
}

/** Throws `malformed` if nothing is to be changed, and `invalid` for a text that no plant can have. */
async function patchIn({ name, tag }: UpdateOptions): Promise<Omit<PlantPatch, 'id'>> {
  if (name === undefined && tag === undefined)
    throw malformed('update needs something to change', 'See: plants update --help')
  const patch = { ...(name !== undefined && { name }), ...(tag !== undefined && { tag: tag === false ? null : tag }) }
  const value = { id: 0n, ...patch }
  if (acceptNewPlant(value, 'patch')) return patch
  const { problemsOf } = await import('../../plant/plant-schema.js')
  throw new PlantsError('invalid', invalidPlant(problemsOf(value, 'patch')), { hint: 'Correct the options' })
}

interface Changed {
  plant: NewPlant
  before?: NewPlant
}

/** Returns undefined if there is no such plant. */
async function change(store: Store, patch: PlantPatch): Promise<Changed | undefined> {
  const [outcome] = await store.write([{ type: 'update', patch }])
  if (outcome?.type === 'rejected' && outcome.error.type === 'notFound') return undefined
  const done = changedBy(must(outcome))
  return done.type === 'updated' ? done : undefined
}

async function foresee(store: Store, patch: PlantPatch): Promise<Changed | undefined> {
  const before = (await store.get([patch.id])).get(patch.id)
  const plant = before && patchedPlant(patch, before)
  return before && plant && { plant, before }
}
