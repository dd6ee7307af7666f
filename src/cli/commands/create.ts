import { createValueError } from '../../config/option-values.js'
import { PlantsError, usageError } from '../../errors.js'
import { describePlant, quoteIfNeeded } from '../../output/output.js'
import { buildPlant, isIdempotencyKey, omitId } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { writeOne } from '../../stores/change.js'
import { hasCapability } from '../../stores/kinds.js'
import { createNext, findNextId, type InputPlant } from '../../stores/next-id.js'
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
    .description(
      'Create a plant from options, JSON or prompts. If options name it, stdin is not read.',
    )
    .argument('[-]', 'read the plant as JSON from stdin', (word) => {
      if (word !== '-') command.error('', { code: 'commander.excessArguments' })
      return word
    })
    .option('-i, --id <int64>', 'id of the plant, or next: the greatest id plus 1')
    .option('-n, --name <text>', 'name of the plant')
    .option('-t, --tag <text>', 'tag of the plant, such as shade')
    .option('-f, --file <path>', 'read the plant as JSON from a file, or from stdin with "-"')
    .option('--dry-run', 'show what would be created and where, without creating it')
    .optionsGroup(rareOptionsHeading)
    .value(
      '--idempotency-key <key>',
      'make the command safe to repeat: a repeat with this key returns the same plant',
      parseIdempotencyKey,
    )
  addRetry(command)
    .addExamples(
      'plants create --id 1 --name Fern --tag shade',
      'plants create --id next --name Moss',
      `echo '{"id":2,"name":"Moss"}' | plants create`,
    )
    .handler(create)
}

async function create(options: CreateOptions, io: Io, dash?: '-'): Promise<void> {
  if (dash && options.file !== undefined)
    throw usageError(
      'A plant can be read from - or from --file, not from both',
      'Leave one of them out',
    )
  const context = await CommandContext.forPlants(options, io)
  const plant = await readPlant(dash ? { ...options, file: dash } : options, context)
  await warnOfEmptyTexts(options, context.reporter)
  try {
    await (options.dryRun ? preview : createOne)(plant, options, context)
  } catch (error) {
    const isConflict = error instanceof PlantsError && error.kind === 'conflict'
    // The error of a service has a hint already, and with `next`, the user has given no id.
    if (!isConflict || error.hint || plant.id === 'next') throw error
    const hint = `Look at it with: plants get ${plant.id}${context.storeFlag}`
    throw new PlantsError('conflict', error.message, { ...error, hint })
  }
}

async function createOne(
  { id, name, tag }: InputPlant,
  { idempotencyKey: key }: CreateOptions,
  context: CommandContext,
): Promise<void> {
  const store = await context.openOrCreateStore()
  try {
    const created =
      id === 'next'
        ? await createNext(store, { name, tag })
        : (await writeOne(store, { type: 'create', plant: buildPlant(id, name, tag), key })).plant
    const sentence = `Planted ${describePlant(created, await context.createStreamStyle())}`
    // The specification's Plant has no id, but one that the store chose is the result.
    await context.print(id === 'next' ? created : omitId(created), sentence)
  } finally {
    await store.close()
  }
}

/** Prints what would be created, and where. At a service, no request is made. */
async function preview(
  { id, name, tag }: InputPlant,
  { idempotencyKey: key }: CreateOptions,
  context: CommandContext,
): Promise<void> {
  const { address } = context
  const isDirect = hasCapability(address, 'direct')
  const store = isDirect ? await (await context.createDirectOpener()).openExisting() : undefined
  try {
    const plant = buildPlant(id === 'next' ? await findNextId(store) : id, name, tag)
    const change = { type: 'create' as const, plant, key }
    await store?.transaction((tried) => writeOne(tried, change), { shouldCommit: () => false })
    const place =
      quoteIfNeeded(address.name) + (isDirect && !store ? ', which would be created' : '')
    const isNumbered = isDirect || id !== 'next'
    const shown = isNumbered
      ? describePlant(plant, await context.createStreamStyle())
      : quoteIfNeeded(name)
    const fields = id === 'next' && isDirect ? plant : omitId(plant)
    await context.printResult({ dryRun: true, ...fields }, `Would plant ${shown} in ${place}`)
  } finally {
    await store?.close()
  }
}

function parseIdempotencyKey(flag: string, key: string): string {
  if (isIdempotencyKey(key)) return key
  throw createValueError(flag, '1 to 255 visible ASCII characters', key, '"$(uuidgen)"')
}
