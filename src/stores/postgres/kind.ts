import type { PostgresAddress } from '../address.js'
import {
  type DirectStoreOpener,
  MissingCapability,
  type OpenContext,
  type StoreKind,
} from '../store-kind.js'

const hasOwnBackups = 'which has backups of its own'

export const postgresKind: StoreKind<PostgresAddress> = {
  noun: 'a database',
  capabilities: {
    direct: { createOpener, countServers: ({ hosts }) => hosts.length },
    backup: new MissingCapability(hasOwnBackups, 'Use pg_dump'),
    restore: new MissingCapability(hasOwnBackups, 'Use pg_restore'),
    token: new MissingCapability('and uses no token', 'If it requires a password: set PGPASSWORD'),
  },

  matches: (text) => /^postgres(ql)?:/i.test(text),
  parse: async (text, source, context) =>
    (await loadAddress()).parsePostgres(text, source, context),
  format: ({ href }) => href,
  isDefault: () => false,
  ownsFile: async () => false,
  findNetworkRisk: async (address) => (await loadAddress()).findNetworkRisk(address),

  toWritable: async (address) => (await loadAddress()).toReadWrite(address),

  createOpener,
  async *diagnose(address, context) {
    const { checkRights, runCheck } = await import('../diagnose.js')
    yield await runCheck(context.storeCheck, async () => {
      const opener = await createOpener(address, context)
      const { name, hosts } = address
      return checkRights({ name, serverCount: hosts.length }, await opener.openOrCreate())
    })
  },
}

async function createOpener(
  address: PostgresAddress,
  context: OpenContext,
): Promise<DirectStoreOpener> {
  const { timeoutMs, runtime, retryMs, onUnreachable } = context
  const { assertCanServe } = await loadAddress()
  const login = await context.findLogin(address)
  const options = { login, timeoutMs, runtime, retryMs, onUnreachable }
  const load = async () => (await import('./store.js')).PostgresStore
  const open = async () => (await load()).open(address, options)
  return {
    init: async () => (await load()).init(address, options),
    openOrCreate: open,
    openExisting: open,
    openToServe: async () => {
      assertCanServe(address)
      return open()
    },
  }
}

function loadAddress() {
  return import('./address.js')
}
