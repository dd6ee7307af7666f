import { invalidValue } from '../../config/option-values.js'
import { describePlant, quoteIfNeeded } from '../../output/output.js'
import { equalPlants, isIdempotencyKey, plantOf } from '../../plant/plant.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { idExists, writeOne } from '../../stores/common/change.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { createNext, nextId } from '../next-id.js'
import { addRetry, rareOptions, warnOfEmptyTexts } from '../options.js'
import { type InputPlant, type PlantOptions, readPlant } from '../plant-input.js'

interface CreateOptions extends PlantOptions {
  dryRun?: true
  /** In milliseconds. */
  retry?: number
}

export function define(command: PlantsCommand): void {
  command
    .description(
      'Create a plant from options, JSON or prompts. With options, stdin is left untouched.',
    )
    .argument('[-]', 'read the plant as JSON from stdin', (word) => {
      if (word !== '-') command.error('', { code: 'commander.excessArguments' })
      return word
    })
    .option('-i, --id <int64>', 'identification number, or next: the greatest id plus 1')
    .option('-n, --name <text>', 'name of the plant')
    .option('-t, --tag <text>', 'tag of the plant, such as shade')
    .option('-f, --file <path>', 'read the plant as JSON from a file, or from stdin with "-"')
    .option('--dry-run', 'show what would be created and where, but create nothing')
    .optionsGroup(rareOptions)
    .value(
      '--idempotency-key <key>',
      'make the command safe to repeat: same key, same plant, same answer',
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
    throw usageError('The plant is in - and in --file', 'Leave one of them out')
  const context = await CommandContext.forPlants(options, io)
  const { plant, isNext } = await readPlant(dash ? { ...options, file: dash } : options, context)
  await warnOfEmptyTexts(options, context.reporter)
  if (options.dryRun) return preview({ plant, isNext }, options, context)

  const store = await context.openOrCreateStore()
  try {
    const change = { type: 'create' as const, plant, key: options.idempotencyKey }
    const created = isNext ? await createNext(store, plant) : (await writeOne(store, change)).plant
    const sentence = `Planted ${describePlant(created, await context.style())}`
    // The specification's Plant has no id, but one that the store chose is the result.
    await context.print(isNext ? created : plantOf(created), sentence)
  } catch (error) {
    throw explainConflict(error, plant.id, context)
  } finally {
    await store.close()
  }
}

/** Prints what would be created, and where. A service is sent and asked nothing. */
async function preview(
  { plant: given, isNext }: InputPlant,
  { idempotencyKey: key }: CreateOptions,
  context: CommandContext,
): Promise<void> {
  const { address } = context
  const isOwn = address.scheme !== 'http'
  const store = isOwn ? await (await context.ownOpener()).openExisting() : undefined
  try {
    const id = isNext && isOwn ? await nextId(store) : given.id
    const plant = { ...given, id }
    const stored = isNext ? undefined : (await store?.get([id]))?.get(id)
    // With a key, a create may be the repetition of one that succeeded.
    if (stored && !(key !== undefined && equalPlants(stored, plant)))
      throw explainConflict(idExists(id), id, context)
    const place = quoteIfNeeded(address.name) + (isOwn && !store ? ', which would be created' : '')
    const isNumbered = isOwn || !isNext
    const shown = isNumbered
      ? describePlant(plant, await context.style())
      : quoteIfNeeded(plant.name)
    const fields = isNext && isOwn ? plant : plantOf(plant)
    await context.printResult({ dryRun: true, ...fields }, `Would plant ${shown} in ${place}`)
  } finally {
    await store?.close()
  }
}

/** Only for an id that exists: the conflict of an idempotency key has a hint of its own. */
function explainConflict(error: unknown, id: bigint, { storeFlag }: CommandContext): unknown {
  const isOfId = error instanceof PlantsError && error.kind === 'conflict' && !error.hint
  const hint = `Look at it with: plants get ${id}${storeFlag}`
  return isOfId ? new PlantsError('conflict', error.message, { ...error, hint }) : error
}

function parseIdempotencyKey(flag: string, key: string): string {
  if (isIdempotencyKey(key)) return key
  throw invalidValue(flag, '1 to 255 visible ASCII characters', key, '"$(uuidgen)"')
}
