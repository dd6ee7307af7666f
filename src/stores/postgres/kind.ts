import type { PostgresAddress } from '../address.js'
import type { OpenContext, Purpose, StoreKind } from '../store-kind.js'

export const postgresKind: StoreKind<PostgresAddress> = {
  noun: 'a database',
  isDirect: true,

  matches: (text) => /^postgres(ql)?:/i.test(text),
  parse: async (text, source, context) =>
    (await loadAddress()).parsePostgres(text, source, context),
  format: ({ href }) => href,
  findNetworkRisk: async (address) => (await loadAddress()).findNetworkRisk(address),

  open,
  async *diagnose(address, context) {
    const { checkRights, runCheck } = await import('../diagnose.js')
    yield await runCheck(context.storeCheck, async () => {
      const { name, hosts } = address
      const store = await open(address, 'read', context)
      return checkRights(store, name, hosts.length)
    })
  },
}

async function open(address: PostgresAddress, purpose: Purpose, context: OpenContext) {
  const { assertCanServe, assertOneServer, toReadWrite } = await loadAddress()
  if (purpose === 'serve') assertCanServe(address)
  if (purpose === 'init') assertOneServer(address)
  const usedAddress = context.needsPrimary ? toReadWrite(address) : address
  const options = { ...context, login: await context.findLogin(address) }
  const { PostgresStore } = await import('./store.js')
  return PostgresStore.open(usedAddress, purpose, options)
}

function loadAddress() {
  return import('./address.js')
}
