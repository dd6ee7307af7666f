import type { SqliteAddress } from '../address.js'
import type { StoreKind } from '../store-kind.js'

export const sqliteKind: StoreKind<SqliteAddress> = {
  noun: 'a file',
  isDirect: true,
  isCreatedOnOpen: true,

  /** Any string can be a path. So this kind is the last one that `kinds.ts` asks. */
  matches: () => true,
  parse: async (text, source, context) =>
    (await import('./address.js')).parseSqlite(text, source, context),
  format: ({ name }) => name,
  isDefault: ({ isDefault }) => isDefault,
  ownsFile: async ({ name }, path) => (await import('./store-file.js')).belongsToStore(name, path),

  open: async (address, purpose, context) =>
    (await import('./store.js')).SqliteStore.open(address, purpose, context),
  async *diagnose(address, context) {
    yield* (await import('./diagnose.js')).diagnoseFile(address, context)
  },
  backUp: async (address, file, context) => (await loadBackup()).backUp(address, file, context),
  restore: {
    check: async (address, file, context) =>
      (await loadBackup()).checkBackup(address, file, context),
    run: async (address, file, context) =>
      (await loadBackup()).restoreStore(address, file, context.copyTime, context),
  },
  copyBeforeImport: async (address, context) =>
    (await import('./import-copy.js')).copyBeforeImport(address, context.copyTime, context),
}

function loadBackup() {
  return import('./backup.js')
}
