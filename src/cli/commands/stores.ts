import { savedToken } from '../../auth/credentials.js'
import { isOpenToAll } from '../../auth/exposure.js'
import { changeSettings } from '../../config/change.js'
import { assertStoreName, savedValue, withField } from '../../config/edit.js'
import { isStoreName, knownStore, namedStores, resolveAddress, shownStore } from '../../config/resolve.js'
import { flagValue, isFor, settingsIn, unsupportedReason } from '../../config/setting-table.js'
import { type SavedStore, savedStore } from '../../config/settings-file.js'
import { quoteIfNeeded, writeResult, writeTable } from '../../output/output.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import {
  completeAddress,
  isDefaultStore,
  loginAddress,
  schemeOf,
  schemeOfText,
  schemes,
  takesPassword,
  takesToken,
} from '../../stores/registry.js'
import { resolvePreferences, resolveSettings } from '../context.js'
import { type CommandDefinition, defineCommand } from '../define-command.js'
import { warnOfExposure } from '../store-access.js'
import { saveSetting } from './config.js'

const add = defineCommand({
  name: 'add',
  description: 'Save a store under a name, with the values of these options.',
  arguments: [
    { name: '<name>', description: 'letters, digits, "-" and "_"' },
    { name: '<address>', description: 'a path, http(s)://…, unix:PATH or postgres://…', values: 'file' },
  ],
  options: [
    {
      flags: '--token-command <command>',
      description: 'get the token from the output of this command; no shell is used',
    },
  ],
  settings: settingsIn('store'),
  async run({ args: [name, place], flags }, io) {
    const settings = await resolvePreferences(flags, io)
    assertStoreName(name)
    const address = await resolveAddress(place, 'The address', io, { isArgument: true })
    const store: SavedStore = { address: isDefaultStore(address) ? 'local' : completeAddress(address) }
    for (const setting of settingsIn('store')) {
      const value = flagValue(setting, flags)
      if (value === undefined) continue
      if (!isFor(setting, address.scheme)) {
        const isCa = setting === 'ca-cert' && takesPassword(address)
        const hint = isCa ? `Leave it out, and add to the address: sslrootcert=${value}` : 'Leave it out'
        throw malformed(`--${setting} ${unsupportedReason(setting, address.scheme, address.name)}`, hint)
      }
      store[setting] = await savedValue(setting, `--${setting}`, value, io)
    }
    // --timeout is saved with the store, and does not limit the wait for the lock.
    await changeSettings(io, { timeout: 30_000 }, async (saved) => {
      const other = savedStore(saved, name)
      if (!other) return { ...saved, stores: { ...saved.stores, [name]: store } }
      const change = `plants config set stores.${name}.address ADDRESS`
      const hint = `Change it: ${change}. Or remove it: plants stores remove ${name}`
      throw malformed(`The store ${name} already exists: ${await shownStore(other.address, io)}`, hint)
    })
    if (takesToken(address) && isOpenToAll(address) && !store['allow-http']) {
      const hint = `To allow it: plants config set stores.${name}.allow-http true`
      await settings.warn(`No token will be sent to ${address.name}, because others could read it. ${hint}`)
    }
    await warnOfExposure(address, settings)
    const how = `Use it with --store ${name}, or make it the default: plants stores use ${name}`
    const text = `Saved the store ${name}, ${quoteIfNeeded(address.name)}. ${how}`
    await writeResult(io, settings, await fieldsOf(name, store, io), text)
  },
})

const init = defineCommand({
  name: 'init',
  description:
    'Create the store in a PostgreSQL database, or migrate it, as its owner. What other roles need is granted with SQL: see the page about databases. An existing store is kept.',
  arguments: [{ name: '<address>', description: "postgres://…, with the database's owner as the user" }],
  async run({ args: [text], flags }, io) {
    // so that errors call it an address
    if (!isStoreName(text)) await resolveAddress(text, 'The address', io, { isArgument: true })
    const settings = await resolveSettings({ ...flags, store: text }, io)
    const { store, storeOptions } = settings
    if (!takesPassword(store)) {
      const hint = 'For example: plants stores init postgres://plants@db.example.com/plants'
      throw malformed(`${store.name} is ${schemes[store.scheme].noun}: only a database needs to be initialized`, hint)
    }
    await (await schemeOf(store).open(store, storeOptions)).close()
    await writeResult(io, settings, { address: store.name }, `The store in ${quoteIfNeeded(store.name)} is ready`)
  },
})

const list = defineCommand({
  name: 'list',
  description: 'List the named stores. An asterisk marks the default store.',
  async run({ flags }, io) {
    const settings = await resolvePreferences(flags, io)
    const source = settings.sources.find(({ name }) => name === 'store')
    const used = source?.value === undefined ? undefined : await shownStore(source.value, io)
    const saved = namedStores(settings.file.saved).toSorted(([a], [b]) => (a < b ? -1 : 1))
    const local = { name: 'local', address: (await resolveAddress('local', '', io)).name }
    const nameless =
      used === undefined || used === 'local' || isStoreName(used) ? [] : [{ name: undefined, address: used }]
    const named = await Promise.all(saved.map(([name, store]) => fieldsOf(name, store, io)))
    const rows = [local, ...named, ...nameless].map((row) => ({
      ...row,
      inUse: (row.name ?? row.address) === used,
    }))
    const titles = ['', 'NAME', 'ADDRESS', 'SETTINGS']
    await writeTable(io, settings, [rows], titles, ({ name, inUse, address, ...others }) => [
      inUse ? '*' : '',
      name === undefined ? '-' : quoteIfNeeded(name),
      quoteIfNeeded(address),
      Object.entries(others)
        .flatMap(([setting, value]) => (value === undefined ? [] : `${setting}=${quoteIfNeeded(String(value))}`))
        .join(', '),
    ])
  },
})

const use = defineCommand({
  name: 'use',
  description:
    'Set the default store, which commands use without --store, like plants config set store. "local" is your own store, which is built in.',
  arguments: [{ name: '<store>', description: 'a saved name, or an address', values: 'store' }],
  run: ({ args: [store], flags }, io) => saveSetting('store', store, flags, io),
})

const rename = defineCommand({
  name: 'rename',
  description: 'Rename a saved store. Its settings and its token or password are kept.',
  arguments: [
    { name: '<name>', description: 'its current name', values: 'saved-store' },
    { name: '<new-name>', description: 'letters, digits, "-" and "_"' },
  ],
  async run({ args: [name, newName], flags }, io) {
    const settings = await resolvePreferences(flags, io)
    assertStoreName(newName)
    const { after } = await changeSettings(io, settings, async (saved) => {
      const store = await knownStore(name, saved)
      if (savedStore(saved, newName)) throw malformed(`The store ${newName} already exists`, 'Choose another name')
      const stores = { ...withField(saved.stores ?? {}, name, undefined), [newName]: store }
      return saved.store === name ? { ...saved, stores, store: newName } : { ...saved, stores }
    })
    const renamed = savedStore(after, newName)
    const fields = renamed ? await fieldsOf(newName, renamed, io) : {}
    await writeResult(io, settings, fields, `Renamed the store ${name} to ${newName}`)
  },
})

const remove = defineCommand({
  name: 'remove',
  description: 'Remove a saved store and its token. Its plants are not deleted.',
  arguments: [{ name: '<name>', description: 'name of the store', values: 'saved-store' }],
  async run({ args: [name], flags }, io) {
    const settings = await resolvePreferences(flags, io)
    if (name === 'local')
      throw malformed('The store local is built in, and cannot be removed', 'To use another: plants stores use NAME')
    let [address, shown] = ['', ''] // of its login, and of its plants
    const { before, after } = await changeSettings(io, settings, async (saved) => {
      const removed = await knownStore(name, saved)
      address = await loginAddressOf(removed, io)
      shown = await shownStore(removed.address, io, { isResolved: true })
      const stores = withField(saved.stores ?? {}, name, undefined)
      const others = await Promise.all(Object.values(stores).map((store) => loginAddressOf(store, io)))
      const tokens =
        saved.tokens && !others.includes(address) ? withField(saved.tokens, address, undefined) : saved.tokens
      const kept = { ...saved, stores, ...(tokens && { tokens }) }
      return saved.store === name ? withField(kept, 'store', undefined) : kept
    })
    const tokenRemoved = savedToken(before, address) !== undefined && savedToken(after, address) === undefined
    const noun = schemeOfText(address) === 'postgres' ? 'password' : 'token'
    const secret = tokenRemoved ? ` and its ${noun}` : ''
    const rest = before.store === name ? '. The default store is now local' : ''
    const text = `Removed the store ${quoteIfNeeded(name)}${secret}. Its plants are still in ${quoteIfNeeded(shown)}${rest}`
    await writeResult(io, settings, { name, address: shown, removed: true, tokenRemoved }, text)
  },
})

export const stores: CommandDefinition = {
  name: 'stores',
  description: 'Save the addresses and settings of stores under names. A name can be used wherever an address can.',
  commands: [add, init, list, use, rename, remove],
  examples: [
    'plants stores add garden ./garden.db',
    'plants stores add team https://plants.example.com/v1 --timeout 2m',
    'plants stores list',
  ],
}

async function fieldsOf(name: string, store: SavedStore, io: Io) {
  const values = Object.fromEntries(settingsIn('store').map((setting) => [setting, store[setting]]))
  return { name, address: await shownStore(store.address, io), ...values }
}

/** Returns an invalid address unchanged. */
async function loginAddressOf({ address }: SavedStore, io: Io): Promise<string> {
  try {
    return loginAddress(await resolveAddress(address, '', io))
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return address
  }
}
