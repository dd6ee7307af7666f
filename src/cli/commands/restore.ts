import { formatPlantCount } from '../../plant/plant.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { requireAbility } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { readStoreContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { createOpenContext, openDirect } from '../open-store.js'
import { printOutcome, printResult } from '../print.js'
import { confirmReplacement, parseBackupPath } from './backup.js'

interface RestoreOptions extends GlobalOptions {
  dryRun?: true
  yes?: true
}

export function define(command: PlantsCommand): void {
  command
    .description(
      'Replace the plants of the store with those of a backup. A store without tokens also gets the tokens of the backup. The previous contents are kept in a file next to the store.',
    )
    .argument('<file>', 'file that plants backup created', parseBackupPath)
    .option('--dry-run', 'check the backup and count its plants, without restoring it')
    .option('-y, --yes', 'replace the plants in the store without confirmation')
    .addExamples('plants restore plants.bak --store ./new.db')
    .handler(restore)
}

async function restore(options: RestoreOptions, io: Io, path: string): Promise<void> {
  const context = await readStoreContext(options, io)
  const { address } = context
  const openContext = createOpenContext(context)
  const access = requireAbility(address, 'restore')
  const file = io.resolvePath(path)
  const plants = await access.check(address, file, openContext)
  const names = `from ${escapeControlChars(file)} to ${escapeControlChars(address.name)}`
  const summary = `${formatPlantCount(plants)} ${names}`
  if (options.dryRun) {
    const fields = { dryRun: true, file, store: address.name, plants }
    return printResult(fields, `Would restore ${summary}`, context)
  }
  if (!options.yes) {
    const store = await openDirect(context, 'read')
    const storedCount = await store?.count().finally(() => store.close())
    if (storedCount)
      await confirmReplacement(
        `The store ${address.name} already has ${formatPlantCount(storedCount)}`,
        context,
        ', and keep a copy next to it',
      )
  }
  const copyTime = new Date(io.getTimeMs())
  const keptPath = await access.run(address, file, { ...openContext, copyTime })
  const keptClause =
    keptPath && `; the previous contents are kept in ${escapeControlChars(keptPath)}`
  const fields = { file, store: address.name, plants, kept: keptPath }
  await printOutcome(fields, `Restored ${summary}${keptClause ?? ''}`, context)
}
