import { plantCount } from '../../plant/plant.js'
import { inputError } from '../../platform/errors.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { sqliteOpener } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { fileOf, parseBackupPath } from './backup.js'

export interface RestoreOptions extends GlobalOptions {
  dryRun?: true
  yes?: true
}

export function defineRestore(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Replace the contents of the store with a backup. The previous contents are kept in a file beside the store. Others can use the store in the meantime, and see the change at once.',
    )
    .argument('<file>', 'file that plants backup created', parseBackupPath)
    .option('--dry-run', 'check the backup and count its plants, but restore nothing')
    .option('-y, --yes', 'replace the plants in the store')
    .addExamples('plants restore plants.bak --store ./new.db', 'plants restore plants.bak --yes')
    .handler((options: RestoreOptions, file: string) => restore(file, options, io))
}

export async function restore(path: string, options: RestoreOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  const instead =
    'Use pg_restore, or create the plants of a store in it: plants export --store FILE | plants import'
  const address = fileOf(context, instead)
  const file = io.resolvePath(path)
  const { sqliteOptions } = context
  const { checkBackup, restoreStore } = await import('../../stores/sqlite/backup.js')
  const plants = await checkBackup(address, file, sqliteOptions)
  const what = `${plantCount(plants)} from ${escapeControlChars(file)} to ${escapeControlChars(address.name)}`
  if (options.dryRun) {
    const fields = { dryRun: true, file, store: address.name, plants }
    return context.printResult(fields, `Would restore ${what}`)
  }
  if (!options.yes) {
    const store = await sqliteOpener(address, sqliteOptions).openExisting()
    const present = await store?.count()
    await store?.close()
    if (present)
      await confirmReplacement(`The store ${address.name} has ${plantCount(present)}`, context)
  }
  const kept = await restoreStore(address, file, new Date(io.time()), sqliteOptions)
  const rest =
    kept === undefined ? '' : `; the previous contents are kept in ${escapeControlChars(kept)}`
  await context.print({ file, store: address.name, plants, kept }, `Restored ${what}${rest}`)
}

async function confirmReplacement(message: string, context: CommandContext): Promise<void> {
  if (!context.mayAsk)
    throw inputError(message, 'To replace it, and keep a copy beside it, add --yes')
  const question = `${escapeControlChars(message)}. Replace it, and keep a copy beside it?`
  await context.confirm(question, 'Nothing was restored')
}
