import { createValueError } from '../../config/option-values.js'
import { createUsageError, PlantsError } from '../../errors.js'
import { describePlant, quoteIfNeeded } from '../../output/output.js'
import { buildPlant, isIdempotencyKey, omitId, type StoredPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { writeOne } from '../../stores/change.js'
import { hasCapability } from '../../stores/kinds.js'
import { createNext, findNextId, type InputPlant } from '../../stores/next-id.js'
import type { Store } from '../../stores/store.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { addRetry, rareOptionsHeading, warnOfEmptyTexts } from '../options.js'
import { type PlantOptions, readPlant } from '../plant-input.js'

interface CreateOptions extends PlantOptions {
  dryRun?: true
  /** The value of --retry in milliseconds. */
  retry?: number
}

export function define(command: PlantsCommand): void {
  command
    .description('Create a plant from options, JSON or prompts.')
    .argument('[-]', 'read the plant as JSON from stdin', (argument) => {
      if (argument !== '-') command.error('', { code: 'commander.excessArguments' })
      return argument
    })
    .option('-i, --id <int64>', 'id of the plant, or "next" for the greatest id plus 1')
    .option('-n, --name <text>', 'name of the plant')
    .option('-t, --tag <text>', 'tag of the plant, such as shade')
    .option('-f, --file <path>', 'read the plant as JSON from a file, or from stdin with "-"')
    .option('--dry-run', 'show what would be created and where, without creating it')
    .optionsGroup(rareOptionsHeading)
    .value(
      '--idempotency-key <key>',
      'key that makes the command safe to repeat: each run returns the same plant',
      parseIdempotencyKey,
    )
  addRetry(command)
    .addExamples(
      'plants create --id 1 --name Fern --tag shade',
      'plants create --id next --name Moss',
      `echo '{"id":3,"name":"Mint"}' | plants create`,
    )
    .handler(create)
}

async function create(options: CreateOptions, io: Io, dash?: '-'): Promise<void> {
  if (dash && options.file !== undefined)
    throw createUsageError(
      'A plant can be read from - or from --file, not from both',
      'Leave one of them out',
    )
  const context = await CommandContext.forPlants(options, io)
  const plant = await readPlant(dash ? { ...options, file: dash } : options, context)
  await warnOfEmptyTexts(options, 'For a plant without a tag, leave it out', context.reporter)
  try {
    if (options.dryRun) await previewCreate(plant, options, context)
    else await createAndPrint(plant, options, context)
  } catch (error) {
    throw addConflictHint(error, plant, context)
  }
}

async function createAndPrint(
  plant: InputPlant,
  { idempotencyKey }: CreateOptions,
  context: CommandContext,
): Promise<void> {
  const store = await context.openOrCreateStore()
  try {
    const createdPlant = await createPlant(store, plant, idempotencyKey)
    // The Plant of the specification has no id. An id that the store chose is printed nevertheless,
    // because the caller cannot know it.
    const fields = plant.id === 'next' ? createdPlant : omitId(createdPlant)
    const style = await context.createStreamStyle()
    await context.printOutcome(fields, `Planted ${describePlant(createdPlant, style)}`)
  } finally {
    await store.close()
  }
}

async function createPlant(
  store: Store,
  { id, name, tag }: InputPlant,
  key: string | undefined,
): Promise<StoredPlant> {
  if (id === 'next') return createNext(store, { name, tag })
  const plant = buildPlant(id, name, tag)
  const { plant: createdPlant } = await writeOne(store, { type: 'create', plant, key })
  return createdPlant
}

/** What a dry run prints: fields for programs, and the parts of a sentence for people. */
interface Preview {
  fields: object
  plant: string
  location: string
}

async function previewCreate(
  plant: InputPlant,
  { idempotencyKey }: CreateOptions,
  context: CommandContext,
): Promise<void> {
  const preview = hasCapability(context.address, 'direct')
    ? await previewInStore(plant, idempotencyKey, context)
    : await previewAtService(plant, context)
  const sentence = `Would plant ${preview.plant} in ${preview.location}`
  await context.printResult({ dryRun: true, ...preview.fields }, sentence)
}

/** Makes no request, so the service may still reject the plant. */
async function previewAtService(
  { id, name, tag }: InputPlant,
  context: CommandContext,
): Promise<Preview> {
  const fields = tag === undefined ? { name } : { name, tag }
  const location = quoteIfNeeded(context.address.name)
  // To find the next id, the service must be asked, and a dry run sends it nothing.
  if (id === 'next') return { fields, plant: quoteIfNeeded(name), location }
  const style = await context.createStreamStyle()
  return { fields, plant: describePlant(buildPlant(id, name, tag), style), location }
}

/** Creates the plant in a transaction that is rolled back, which finds every conflict. */
async function previewInStore(
  { id, name, tag }: InputPlant,
  key: string | undefined,
  context: CommandContext,
): Promise<Preview> {
  const store = await (await context.createDirectOpener()).openExisting()
  try {
    const plant = buildPlant(id === 'next' ? await findNextId(store) : id, name, tag)
    const create = { type: 'create' as const, plant, key }
    await store?.transaction((transaction) => writeOne(transaction, create), {
      shouldCommit: () => false,
    })
    const location = quoteIfNeeded(context.address.name)
    return {
      fields: id === 'next' ? plant : omitId(plant),
      plant: describePlant(plant, await context.createStreamStyle()),
      location: store ? location : `${location}, which would be created`,
    }
  } finally {
    await store?.close()
  }
}

/** The error of a conflict says how to show the plant that has the given id. */
function addConflictHint(
  error: unknown,
  { id }: InputPlant,
  { storeFlag }: CommandContext,
): unknown {
  const isConflict = error instanceof PlantsError && error.kind === 'conflict'
  if (!isConflict || id === 'next') return error
  const hint = `To show it: plants get ${id}${storeFlag}`
  return new PlantsError('conflict', error.message, { ...error, hint })
}

function parseIdempotencyKey(flag: string, key: string): string {
  if (isIdempotencyKey(key)) return key
  throw createValueError(flag, '1 to 255 visible ASCII characters', key, '"$(uuidgen)"')
}
