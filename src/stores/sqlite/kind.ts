import type { SqliteAddress } from '../address.js'
import {
  type DirectStoreOpener,
  MissingCapability,
  type OpenContext,
  type StoreKind,
} from '../store-kind.js'

export const sqliteKind: StoreKind<SqliteAddress> = {
  noun: 'a file',
  capabilities: {
    direct: { createOpener, countServers: () => 1, isCreatedOnOpen: true },
    backup: {
      backUp: async (address, file, context) => (await loadBackup()).backUp(address, file, context),
    },
    restore: {
      checkBackup: async (address, file, context) =>
        (await loadBackup()).checkBackup(address, file, context),
      restore: async (address, file, context) =>
        (await loadBackup()).restoreStore(address, file, context.copyTime, context),
      copyBeforeImport: async (address, context) => {
        const { copyBeforeImport } = await import('./import-copy.js')
        return copyBeforeImport(address, context.copyTime, context)
      },
    },
    token: new MissingCapability(
      'and uses no token',
      'Select a service: --store https://plants.example.com, or a saved name',
    ),
  },

  /** Any string can be a path. So this kind is the last one that `kinds.ts` asks. */
  matches: () => true,
  parse: async (text, source, context) =>
    (await import('./address.js')).parseSqlite(text, source, context),
  format: ({ name }) => name,
  isDefault: ({ isDefault }) => isDefault,
  ownsFile: async ({ name }, path) => (await import('./store-file.js')).belongsToStore(name, path),
  findNetworkRisk: async () => undefined,
  toWritable: async (address) => address,

  createOpener,
  async *diagnose(address, context) {
    const { diagnoseFile } = await import('./diagnose.js')
    yield* diagnoseFile(address, context)
  },
}

async function createOpener(
  address: SqliteAddress,
  context: OpenContext,
): Promise<DirectStoreOpener> {
  const load = async () => (await import('./store.js')).SqliteStore
  return {
    init: async () => (await load()).init(address, context),
    openOrCreate: async () => (await load()).openOrCreate(address, context),
    openExisting: async () => (await load()).openExisting(address, context),
    openToServe: async () => (await load()).openToServe(address, context),
  }
}

function loadBackup() {
  return import('./backup.js')
}
