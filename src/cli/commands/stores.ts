import { savedToken } from '../../auth/credentials.js'
import { isOpenToAll } from '../../auth/exposure.js'
import { changeSettings } from '../../config/change.js'
import { checkStoreName, savedValue, withField } from '../../config/edit.js'
import { type SavedSettings, type SavedStore, savedStore } from '../../config/file.js'
import { isStoreName, namedStores, resolveAddress, shownValue, unknownStore } from '../../config/resolve.js'
import { flagValue, isFor, settingsIn, unsupportedReason } from '../../config/table.js'
import { quoteIfNeeded, writeAnswer, writeResult } from '../../output/output.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { parseText } from '../../platform/values.js'
import type { Address } from '../../stores/address.js'
import { credentialOf, isDefaultStore, kindNoun, kindOfText, loginAddress, takesPassword, takesToken } from '../../stores/registry.js'
import { defaultRights } from '../../stores/store.js'
import { defaultLockTimeout, resolvePreferences, resolveSettings } from '../context.js'
import { allowOption, type CommandDefinition, defineCommand, type GlobalFlags } from '../define-command.js'
import { warnOfExposure } from '../store-access.js'

const add = defineCommand({
  name: 'add',
  description: 'Save a store under a name. --timeout, --ca-cert, --allow-http and --allow-async-commit are saved with it.',
  arguments: [
    { name: '<name>', description: 'letters, digits, "-" and "_"' },
    { name: '<address>', description: 'a path, http(s)://…, unix:PATH or postgres://…', values: 'file' },
  ],
  options: [{ flags: '--token-command <command>', description: 'take its token from what this command prints; no shell reads it' }],
  async run({ args: [name, text], flags }, io) {
    const settings = await resolvePreferences(flags, io)
    checkStoreName(name)
    const address = await resolveAddress(text, 'The address', io, { isArgument: true })
    const store = storeFrom(address, flags, io)
    // --timeout belongs to the store here, and says nothing about others who change the settings.
    await changeSettings(io, { lockTimeout: defaultLockTimeout }, (saved) => {
      checkFree(name, store, saved)
      return { ...saved, stores: { ...saved.stores, [name]: store } }
    })
    if (takesToken(address) && isOpenToAll(address) && !store['allow-http']) {
      const hint = `plants config set stores.${name}.allow-http true`
      await settings.warn(`No token will be sent to ${address.name}, where others could read it, unless you allow it: ${hint}`)
    }
    await warnOfExposure(address, settings)
    const how = `Use it with --store ${name}, or always: plants stores use ${name}`
    await writeResult(io, settings, { name, ...store }, `Saved ${name}, ${quoteIfNeeded(address.name)}. ${how}`)
  },
})

const init = defineCommand({
  name: 'init',
  description:
    'Make the store in a database, as somebody who may. With --role, let a role, which must be there, run a service on it: it may do with plants what --allow says, and change nothing else. What is there already stays.',
  arguments: [{ name: '<address>', description: "postgres://…, of an administrator or of the database's owner" }],
  options: [
    { flags: '--role <name>', description: 'the role that plants serve is to log in as', parse: parseText },
    allowOption('what the role may do', defaultRights.join()),
  ],
  async run({ args: [text], flags }, io) {
    if (!isStoreName(text)) await resolveAddress(text, 'The address', io, { isArgument: true }) // whose errors name it as what it is here
    const settings = await resolveSettings({ ...flags, store: text }, io)
    const { store } = settings
    if (!takesPassword(store)) {
      const hint = 'For example: plants stores init postgres://postgres@db.example.com/plants --role plants'
      throw new PlantsError('malformed', `${store.name} is ${kindNoun(store.kind)}: only a database needs to be made a store`, { hint })
    }
    const { role, allow } = flags
    // As SQL has it, quoted or not; a store that everybody may read is not what anybody has to do by a slip.
    if (role !== undefined && /^(public|none)$/i.test(role)) {
      const why = role.toLowerCase() === 'none' ? 'is no role' : 'would be everybody'
      throw new PlantsError('malformed', `--role ${role} ${why}`, { hint: 'Name the role that plants serve logs in as' })
    }
    const { initialise } = await import('../../stores/postgres/schema.js')
    await initialise(store, settings.storeOptions, role === undefined ? undefined : { role, rights: allow })
    const granted =
      role === undefined ? '' : `, and ${quoteIfNeeded(role)} may ${allow.join(', ').replace(/, (\w+)$/, ' and $1')} plants there`
    await writeResult(io, settings, { address: store.name, role }, `${quoteIfNeeded(store.name)} holds a store${granted}`)
  },
})

const list = defineCommand({
  name: 'list',
  description: 'List the stores that have a name.',
  async run({ flags }, io) {
    const settings = await resolvePreferences(flags, io)
    const used = shownValue(settings.sources.find(({ name }) => name === 'store')?.value)
    const saved = namedStores(settings.file.saved).toSorted(([a], [b]) => (a < b ? -1 : 1))
    const local = { name: 'local', address: (await resolveAddress('local', '', io)).name }
    const nameless = used === undefined || used === 'local' || isStoreName(used) ? [] : [{ name: undefined, address: used }]
    const rows = [local, ...saved.map(([name, store]) => fieldsOf(name, store)), ...nameless].map((row) => ({
      ...row,
      inUse: (row.name ?? row.address) === used,
    }))
    const { rowFormatter } = await import('../../output/table.js')
    const cellsOf = ({ name, inUse, address, ...others }: SavedStore & { name: string | undefined; inUse: boolean }) => [
      inUse ? '*' : '',
      name === undefined ? '-' : quoteIfNeeded(name),
      quoteIfNeeded(address),
      Object.entries(others)
        .flatMap(([setting, value]) => (value === undefined ? [] : `${setting}=${quoteIfNeeded(String(value))}`))
        .join(', '),
    ]
    await writeAnswer(io, (await rowFormatter(['', 'NAME', 'ADDRESS', 'SETTINGS'], cellsOf, settings, io))(rows))
  },
})

const use = defineCommand({
  name: 'use',
  description: 'Choose the store of all commands that name none; "local" for your own, which is there without being saved.',
  arguments: [{ name: '<store>', description: 'a saved name, or an address', values: 'store' }],
  async run({ args: [store], flags }, io) {
    const settings = await resolvePreferences(flags, io)
    const chosen = await resolveSettings(flags, io, { other: store })
    await changeSettings(io, settings, ({ store: _, ...saved }) => {
      if (store === 'local') return saved
      if (!isStoreName(store)) return { ...saved, store: chosen.store.name }
      if (savedStore(saved, store)) return { ...saved, store }
      throw new PlantsError('malformed', `There is no store ${store} any more`, { hint: 'See: plants stores list' })
    })
    const winner = settings.sources.find(({ name, source }) => name === 'store' && (source === 'variable' || source === 'flag'))
    if (winner) await settings.warn(`${winner.place} is still set, and takes precedence`)
    await warnOfExposure(chosen.store, settings)
    const saved = chosen.storeName === undefined ? undefined : savedStore(chosen.file.saved, chosen.storeName)
    const fields = saved ? fieldsOf(store, saved) : { name: store, address: chosen.store.name }
    const text = `From now on commands use ${quoteIfNeeded(store)}${chosen.store.name === store ? '' : `, ${quoteIfNeeded(chosen.store.name)}`}`
    await writeResult(io, settings, { ...fields, inUse: !winner }, text)
  },
})

const rename = defineCommand({
  name: 'rename',
  description: 'Give a store another name. Its settings and its token or password stay.',
  arguments: [
    { name: '<name>', description: 'its name', values: 'saved-store' },
    { name: '<new-name>', description: 'letters, digits, "-" and "_"' },
  ],
  async run({ args: [name, newName], flags }, io) {
    const settings = await resolvePreferences(flags, io)
    checkStoreName(newName)
    const { after } = await changeSettings(io, settings, async (saved) => {
      const store = savedStore(saved, name)
      if (!store) throw await unknownStore(name, saved)
      checkFree(newName, store, saved)
      const stores = { ...withField(saved.stores ?? {}, name, undefined), [newName]: store }
      return saved.store === name ? { ...saved, stores, store: newName } : { ...saved, stores }
    })
    const renamed = savedStore(after, newName)
    await writeResult(io, settings, renamed ? fieldsOf(newName, renamed) : {}, `${name} is called ${newName} now`)
  },
})

const remove = defineCommand({
  name: 'remove',
  description: 'Forget a store and its saved token or password. Its plants stay where they are.',
  arguments: [{ name: '<name>', description: 'its name', values: 'saved-store' }],
  async run({ args: [name], flags }, io) {
    const settings = await resolvePreferences(flags, io)
    if (name === 'local')
      throw new PlantsError('malformed', 'The store local is always there', { hint: 'To use another: plants stores use NAME' })
    let address = ''
    const { before, after } = await changeSettings(io, settings, async (saved) => {
      const removed = savedStore(saved, name)
      if (!removed) throw await unknownStore(name, saved)
      address = await loginAddressOf(removed, io)
      const stores = withField(saved.stores ?? {}, name, undefined)
      const others = await Promise.all(Object.values(stores).map((store) => loginAddressOf(store, io)))
      const tokens = saved.tokens && !others.includes(address) ? withField(saved.tokens, address, undefined) : saved.tokens
      const kept = { ...saved, stores, ...(tokens && { tokens }) }
      return saved.store === name ? withField(kept, 'store', undefined) : kept
    })
    const tokenRemoved = savedToken(before, address) !== undefined && savedToken(after, address) === undefined
    const rest = before.store === name ? '. Commands use the store local again' : ''
    const shown = shownValue(address)
    const text = `Forgot ${quoteIfNeeded(name)}${tokenRemoved ? ` and its ${credentialOf(kindOfText(address)) ?? 'token'}` : ''}. Its plants are still where they were, ${quoteIfNeeded(shown)}${rest}`
    await writeResult(io, settings, { name, address: shown, removed: true, tokenRemoved }, text)
  },
})

export const stores: CommandDefinition = {
  name: 'stores',
  description: 'Save stores under a name, with what belongs to them. A name works wherever an address does.',
  commands: [add, init, list, use, rename, remove],
  examples: [
    'plants stores add garden ./garden.db',
    "plants stores add team https://plants.example.com/v1 --timeout 2m --token-command 'pass show plants'",
    'plants stores list',
  ],
}

function checkFree(name: string, { address }: SavedStore, saved: SavedSettings): void {
  const other = savedStore(saved, name)
  if (!other) return
  const hint = `Change it: plants config set stores.${name}.address ${shellWord(address)}. Or forget it: plants stores remove ${name}`
  throw malformed(`There is a store ${name} already, ${shownValue(other.address)}`, hint)
}

/** What is kept of a store: its address, and every setting that was given and belongs to one. */
function storeFrom(address: Address, flags: GlobalFlags, io: Io): SavedStore {
  const values = settingsIn('store').flatMap((name): [string, string | boolean][] => {
    const text = flagValue(name, flags)
    if (text === undefined) return []
    if (isFor(name, address.kind)) return [[name, savedValue(name, `--${name}`, text, io)]]
    const isCa = name === 'ca-cert' && takesPassword(address)
    const hint = isCa ? `Leave it out, and write into the address: sslrootcert=${text}` : 'Leave it out'
    throw new PlantsError('malformed', `--${name} ${unsupportedReason(name, address.kind, address.name)}`, { hint })
  })
  return { address: isDefaultStore(address) ? 'local' : address.name, ...Object.fromEntries(values) }
}

function fieldsOf(name: string, store: SavedStore) {
  const values = settingsIn('store').map((setting) => [setting, store[setting]])
  return { name, address: shownValue(store.address), ...Object.fromEntries(values) }
}

/** The address that a token or a password is bound to; one that is broken as it is. */
async function loginAddressOf({ address }: SavedStore, io: Io): Promise<string> {
  try {
    return loginAddress(await resolveAddress(address, '', io))
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return address
  }
}
