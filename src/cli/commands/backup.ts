import { parseFilePath } from '../../config/option-values.js'
import { createUsageError } from '../../errors.js'
import { formatPlantCount } from '../../plant/plant.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { requireAbility } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { type CommandContext, readStoreContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { createMissingStoreError, createOpenContext } from '../open-store.js'
import { printOutcome } from '../print.js'

interface BackupOptions extends GlobalOptions {
  yes?: true
}

export function define(command: PlantsCommand): void {
  command
    .description(
      'Copy a snapshot of the store to a file and verify the copy. The store can be used during the backup.',
    )
    .argument('<file>', 'file to write; an older backup is overwritten', parseBackupPath)
    .option(
      '-y, --yes',
      'overwrite a backup even if it has more than twice as many plants as the new one',
    )
    .addExamples(
      'plants backup plants.bak',
      'plants backup "plants-$(date +%F).bak" --store ./garden.db',
    )
    .handler(backup)
}

async function backup(options: BackupOptions, io: Io, path: string): Promise<void> {
  const context = await readStoreContext(options, io)
  const { address } = context
  const backUp = requireAbility(address, 'backUp')
  const file = io.resolvePath(path)
  // If the backup has far fewer plants than the older one, the store may be the wrong one.
  const onLarger = async (message: string) => {
    if (!options.yes) await confirmReplacement(message, context)
  }
  const copy = await backUp(address, file, { ...createOpenContext(context), onLarger })
  if (!copy) throw createMissingStoreError(context)
  const { plants, bytes } = copy
  const names = `from ${escapeControlChars(address.name)} to ${escapeControlChars(file)}`
  await printOutcome(
    { file, plants, bytes },
    `Backed up ${formatPlantCount(plants)} ${names}`,
    context,
  )
}

export function parseBackupPath(text: string): string {
  if (text !== '-') return parseFilePath('The path', text)
  throw createUsageError('A backup cannot be written to stdout or read from stdin', 'Name a file')
}

/**
 * Asks whether something may be replaced.
 *
 * @param reason a sentence that says what would be replaced
 * @param addition continues the question, such as `, and keep a copy next to it`
 * @throws {PlantsError} `usage` if nobody can be asked, and `interrupted` if the answer is no
 */
export async function confirmReplacement(
  reason: string,
  context: CommandContext,
  addition = '',
): Promise<void> {
  if (!context.mayAsk) throw createUsageError(reason, `To replace it${addition}, add --yes`)
  const { askToConfirm } = await import('../prompts.js')
  const question = `${escapeControlChars(reason)}. Replace it${addition}?`
  await askToConfirm(question, 'Nothing was replaced', context.io)
}
