import { createValueError, outputFormats } from '../../config/option-values.js'
import { createUsageError, PlantsError } from '../../errors.js'
import { createStyle, describePlant, quoteIfNeeded } from '../../output/output.js'
import { buildPlant, isIdempotencyKey, omitId, type StoredPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { writeOne } from '../../stores/change.js'
import { findKind } from '../../stores/kinds.js'
import { createNext, findNextId, type InputPlant } from '../../stores/next-id.js'
import type { Store } from '../../stores/store.js'
import type { PlantsCommand } from '../command.js'
import { type CommandContext, readStoreContext } from '../context.js'
import { openDirect, openToWrite } from '../open-store.js'
import { addRetry, rareOptionsHeading, warnOfEmptyTexts } from '../options.js'
import { type PlantOptions, readPlant } from '../plant-input.js'
import { printOutcome, printResult } from '../print.js'

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
    .option('-i, --id <id>', 'id of the plant, or "next" for the greatest id plus 1')
    .option('-n, --name <text>', 'name of the plant')
    .option('-t, --tag <text>', 'tag of the plant, such as shade')
    .option('-f, --file <path>', 'read the plant as JSON from a file, or from stdin with "-"')
    .option('--dry-run', 'show what would be created and where, without creating it')
    .optionsGroup(rareOptionsHeading)
    .value(
      '--idempotency-key <key>',
      'key that makes a create with a number as --id safe to repeat: each run returns the same plant',
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
  const context = await readStoreContext(options, io, outputFormats)
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
  const store = await openToWrite(context)
  try {
    const createdPlant = await createPlant(store, plant, idempotencyKey)
    // The Plant of the specification has no id. An id that was chosen for it is printed nevertheless,
    // because the caller cannot know it.
    const fields = plant.id === 'next' ? createdPlant : omitId(createdPlant)
    const style = await createStyle(context)
    await printOutcome(fields, `Planted ${describePlant(createdPlant, style)}`, context)
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

/**
 * Creates the plant in a transaction that is rolled back, which finds every conflict. A service
 * gets no request, so it may still reject the plant, and its next id is not known.
 */
async function previewCreate(
  { id, name, tag }: InputPlant,
  { idempotencyKey: key }: CreateOptions,
  context: CommandContext,
): Promise<void> {
  const { isDirect } = findKind(context.address)
  const store = isDirect ? await openDirect(context, 'read') : undefined
  try {
    const knownId = id === 'next' && isDirect ? await findNextId(store) : id
    const plant = knownId === 'next' ? undefined : buildPlant(knownId, name, tag)
    if (plant)
      await store?.transaction(
        (transaction) => writeOne(transaction, { type: 'create', plant, key }),
        { shouldCommit: () => false },
      )
    const fields = id === 'next' && plant ? plant : omitId({ name, tag })
    const style = await createStyle(context)
    const description = plant ? describePlant(plant, style) : quoteIfNeeded(name)
    const location = quoteIfNeeded(context.address.name)
    const addition = isDirect && !store ? ', which would be created' : ''
    const sentence = `Would plant ${description} in ${location}${addition}`
    await printResult({ dryRun: true, ...fields }, sentence, context)
  } finally {
    await store?.close()
  }
}

/** The error of a conflict says how to show the plant that has the given id. */
function addConflictHint(error: unknown, { id }: InputPlant, context: CommandContext): unknown {
  const isConflict = error instanceof PlantsError && error.kind === 'conflict'
  if (!isConflict || id === 'next') return error
  const hint = `To show it: plants get ${id}${context.storeFlag}`
  return new PlantsError('conflict', error.message, { ...error, hint })
}

function parseIdempotencyKey(flag: string, key: string): string {
  if (isIdempotencyKey(key)) return key
  throw createValueError(flag, '1 to 255 visible ASCII characters', key, '"$(uuidgen)"')
}
