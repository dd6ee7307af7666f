import type { HttpAddress } from '../address.js'
import { MissingCapability, type StoreKind } from '../store-kind.js'
import { parseHttp } from './address.js'

const needsDirectAccess = new MissingCapability(
  'but this command needs the store itself',
  'Run the command on the host of the service',
)

export const httpKind: StoreKind<HttpAddress> = {
  noun: 'a service',
  capabilities: {
    direct: needsDirectAccess,
    backup: needsDirectAccess,
    restore: needsDirectAccess,
    token: {
      getTarget: (address) => address,
      verify: async (address, context) =>
        (await import('./check-token.js')).verifyToken(address, context),
    },
  },

  matches: (text) => /^https?:/i.test(text),
  parse: async (text, source) => parseHttp(text, source),
  format: ({ name }) => name,
  isDefault: () => false,
  ownsFile: async () => false,
  /** `assertNotExposed` refuses to send a token where others could read it. */
  findNetworkRisk: async () => undefined,
  toWritable: async (address) => address,

  async createOpener(address, context) {
    const { timeoutMs, runtime, retryMs } = context
    const access = await context.findAccess(address)
    const options = { access, timeoutMs, runtime, retryMs }
    const open = async () => new (await import('./http-store.js')).HttpStore(address, options)
    return { openOrCreate: open, openExisting: open }
  },
  async *diagnose(address, context) {
    yield await (await import('./check-token.js')).diagnoseService(address, context)
  },
}
