import { isOpenToAll, savedToken } from '../../auth/credentials.js'
import {
  assertSettingsFor,
  assertStoreName,
  changeSettings,
  savedValue,
  withField,
} from '../../config/change-settings.js'
import { knownStore, namedStores, resolveAddress, shownStore } from '../../config/resolve.js'
import { optionValue, settingOf, settingsIn, textOf } from '../../config/setting-table.js'
import { isStoreName, type SavedStore, savedStore } from '../../config/settings-file.js'
import { quoteIfNeeded } from '../../output/output.js'
import type { Reporter } from '../../output/reporter.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { shellWord } from '../../platform/shell.js'
import { type Address, completeAddress, isDefaultStore } from '../../stores/common/address.js'
import { sqliteOpener } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext, SettingsContext } from '../command-context.js'
import { warnOfExposure } from '../store-access.js'
import { set as setSetting } from './config.js'

/** What is saved with a store, in place of the global options; false removes it. */
interface StoreOptions extends Omit<GlobalOptions, 'timeout' | 'caCert'> {
  address?: string
  timeout?: string | false
  caCert?: string | false
  tokenCommand?: string | false
}

export function defineStores(command: PlantsCommand, io: Io): void {
  const word = 'letters, digits, "-" and "_"'
  command
    .description(
      'Save the addresses and settings of stores under names. A name can be used wherever an address can.',
    )
    .addExamples(
      'plants stores add garden ./garden.db',
      'plants stores add team https://plants.example.com/v1 --timeout 2m',
      'plants stores list',
    )
  const add = command
    .command('add')
    .description('Save a store under a name, with the values of these options.')
  addSettings(
    add.argument('<name>', word).argument('<address>', 'a path, http(s)://… or postgres://…'),
  ).handler((options: StoreOptions, name: string, address: string) =>
    addStore(name, address, options, io),
  )
  const set = command
    .command('set')
    .description('Change what is saved with a store: its address and these settings.')
  addSettings(set.argument('<store>', 'its name').option('--address <address>', 'another address'))
  for (const name of settingsIn('store'))
    set.option(`--no-${name}`, `remove the ${name}, so that its default applies`)
  set.handler((options: StoreOptions, name: string) => setStore(name, options, io))
  command
    .command('init')
    .description(
      'Create the store in a PostgreSQL database, as its owner. What other roles need is granted with SQL: see the page about databases. An existing store is kept.',
    )
    .argument(
      '<address>',
      "postgres://…, with one server, and the database's owner as the user; or a file",
    )
    .handler((options: GlobalOptions, address: string) => init(address, options, io))
  command
    .command('list')
    .alias('ls')
    .description('List the named stores. An asterisk marks the default store.')
    .handler((options: GlobalOptions) => list(options, io))
  command
    .command('use')
    .description(
      'Set the default store, which commands use without --store. "local" is your own store, which is built in.',
    )
    .argument('<store>', 'a saved name, or an address')
    .handler((options: GlobalOptions, store: string) => setSetting('store', store, options, io))
  command
    .command('remove')
    .aliases(['rm', 'delete'])
    .description('Remove a saved store and its token. Its plants are not deleted.')
    .argument('<store>', 'its name')
    .handler((options: GlobalOptions, name: string) => remove(name, options, io))
}

function addSettings(command: PlantsCommand): PlantsCommand {
  for (const name of settingsIn('store')) {
    const { flags = `--${name} <command>`, meaning } = settingOf(name)
    command.option(flags, meaning)
  }
  return command
}

async function addStore(name: string, place: string, options: StoreOptions, io: Io): Promise<void> {
  const context = await contextOf(options, io)
  assertStoreName(name)
  const address = await resolveAddress(place, 'The address', io, { isArgument: true })
  const store = await withSettings({ address: savedAddress(address) }, address, options, io)
  await changeSettings(io, context.timeout, async (saved) => {
    const other = savedStore(saved, name)
    if (!other) return { ...saved, stores: { ...saved.stores, [name]: store } }
    const hint = `Change it: plants stores set ${name} --address ADDRESS. Or remove it: plants stores remove ${name}`
    throw usageError(
      `The store ${name} already exists: ${await shownStore(other.address, io)}`,
      hint,
    )
  })
  await warnOfRisks(name, address, store, context.reporter)
  const how = `Use it with: plants list --store ${name}. To make it the default: plants stores use ${name}`
  const text = `Saved the store ${name}, ${quoteIfNeeded(address.name)}. ${how}`
  await context.print(await fieldsOf(name, store, io), text)
}

async function setStore(name: string, options: StoreOptions, io: Io): Promise<void> {
  const context = await contextOf(options, io)
  const given = settingsIn('store').some((setting) => optionValue(setting, options) !== undefined)
  if (!given && options.address === undefined)
    throw usageError('stores set needs something to change', 'See: plants stores set --help')
  const { before, after } = await changeSettings(io, context.timeout, async (saved) => {
    const old = knownStore(name, saved)
    const address =
      options.address === undefined
        ? await resolveAddress(old.address, `stores.${name}.address`, io)
        : await resolveAddress(options.address, '--address', io, { isArgument: true })
    const place = options.address === undefined ? old.address : savedAddress(address)
    const store = await withSettings({ ...old, address: place }, address, options, io)
    return { ...saved, stores: { ...saved.stores, [name]: store } }
  })
  const [old, store] = [knownStore(name, before).address, knownStore(name, after)]
  const address = await resolveAddress(store.address, `stores.${name}.address`, io)
  if (savedToken(before, old) && !savedToken(after, address.name))
    await context.warn(
      `The saved token is for the old address. Save a new one: plants auth login --store ${shellWord(name)}`,
    )
  const kept = settingsIn('store').filter(
    (each) => settingOf(each).onlyFor && store[each] !== undefined,
  )
  if (old !== address.name && kept.length > 0)
    await context.warn(`${name} keeps its ${kept.join(', ')}`)
  await warnOfRisks(name, address, store, context.reporter)
  await context.print(await fieldsOf(name, store, io), `Changed the store ${name}`)
}

/** `--timeout` is saved with the store, and does not limit the wait for the lock. */
function contextOf(
  { timeout, caCert, allowHttp, ...options }: StoreOptions,
  io: Io,
): Promise<SettingsContext> {
  return SettingsContext.read(options, io)
}

/** Throws `usage` for a setting that has no effect at the address. */
async function withSettings(
  store: SavedStore,
  address: Address,
  options: StoreOptions,
  io: Io,
): Promise<SavedStore> {
  const given = settingsIn('store').filter((name) => optionValue(name, options) !== undefined)
  let changed = store
  for (const name of given) {
    const value = optionValue(name, options)
    changed = withField(changed, name, value === false ? undefined : textOf(value))
  }
  assertSettingsFor(address, changed)
  for (const name of given) {
    const text = textOf(changed[name])
    if (text !== undefined)
      changed = withField(changed, name, await savedValue(name, `--${name}`, text, io))
  }
  return changed
}

function savedAddress(address: Address): string {
  return isDefaultStore(address) ? 'local' : completeAddress(address)
}

async function warnOfRisks(
  name: string,
  address: Address,
  store: SavedStore,
  reporter: Reporter,
): Promise<void> {
  if (address.scheme === 'http' && isOpenToAll(address) && !store['allow-http']) {
    const hint = `To allow it: plants stores set ${shellWord(name)} --allow-http`
    await reporter.warn(
      `No token will be sent to ${address.name}, because others could read it. ${hint}`,
    )
  }
  await warnOfExposure(address, reporter)
}

const ofService = 'On its host, give the address of that store'

async function init(address: string, options: GlobalOptions, io: Io): Promise<void> {
  // Errors call it an address.
  if (!isStoreName(address)) await resolveAddress(address, 'The address', io, { isArgument: true })
  const context = await CommandContext.from({ ...options, store: address }, io)
  const { address: store, sqliteOptions } = context
  if (store.scheme === 'http')
    throw usageError(`${store.name} is a service, which has its own store`, ofService)
  if (store.scheme === 'postgres' && store.hosts.length > 1) {
    const why = 'while the first one is away, a second store would be created on another'
    const message = `stores init takes an address with one server, but ${store.name} has ${store.hosts.length}: ${why}`
    throw usageError(message, 'Name the server that accepts writes')
  }
  const opener =
    store.scheme === 'sqlite'
      ? sqliteOpener(store, { ...sqliteOptions, onCreated: undefined }) // it is reported below
      : await context.ownOpener()
  const created = await opener.init()
  const name = quoteIfNeeded(store.name)
  const text = created ? `Created a store at ${name}` : `There is a store at ${name} already`
  await context.print({ address: store.name, created }, text)
}

async function list(options: GlobalOptions, io: Io): Promise<void> {
  const context = await SettingsContext.read(options, io)
  const { settings } = context
  const { value } = settings.source('store')
  const used = value === undefined ? undefined : await shownStore(value, io, settings.file.saved)
  const saved = namedStores(settings.file.saved).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const local = { name: 'local', address: (await resolveAddress('local', '', io)).name }
  const isNamed = used === undefined || used === 'local' || isStoreName(used)
  const named = await Promise.all(saved.map(([name, store]) => fieldsOf(name, store, io)))
  const all = [local, ...named, ...(isNamed ? [] : [{ name: undefined, address: used }])]
  const rows = all.map((row) => ({ ...row, inUse: (row.name ?? row.address) === used }))
  const titles = ['', 'NAME', 'ADDRESS', 'SETTINGS']
  const cellsOf = ({ name, inUse, address, ...others }: (typeof rows)[number]) => [
    inUse ? '*' : '',
    name === undefined ? '-' : quoteIfNeeded(name),
    quoteIfNeeded(address),
    Object.entries(others)
      .flatMap(([setting, value]) =>
        value === undefined ? [] : `${setting}=${quoteIfNeeded(String(value))}`,
      )
      .join(', '),
  ]
  const printer = await context.tablePrinter(titles, cellsOf)
  await printer.all([rows])
}

async function remove(name: string, options: GlobalOptions, io: Io): Promise<void> {
  const context = await SettingsContext.read(options, io)
  if (name === 'local')
    throw usageError(
      'The store local is built in, and cannot be removed',
      'To use another: plants stores use NAME',
    )
  const { before, after } = await changeSettings(io, context.timeout, async (saved) => {
    const address = await resolvedName(knownStore(name, saved), io)
    const stores = withField(saved.stores ?? {}, name, undefined)
    const others = await Promise.all(Object.values(stores).map((store) => resolvedName(store, io)))
    const tokens =
      saved.tokens && !others.includes(address)
        ? withField(saved.tokens, address, undefined)
        : saved.tokens
    const kept = { ...saved, stores, ...(tokens && { tokens }) }
    return saved.store === name ? withField(kept, 'store', undefined) : kept
  })
  const removed = knownStore(name, before)
  const address = await resolvedName(removed, io)
  const shown = await shownStore(removed.address, io)
  const tokenRemoved =
    savedToken(before, address) !== undefined && savedToken(after, address) === undefined
  const secret = tokenRemoved ? ' and its token' : ''
  const rest = before.store === name ? '. The default store is now local' : ''
  const text = `Removed the store ${quoteIfNeeded(name)}${secret}. Its plants are still in ${quoteIfNeeded(shown)}${rest}`
  await context.print({ name, address: shown, removed: true, tokenRemoved }, text)
}

async function fieldsOf(name: string, store: SavedStore, io: Io) {
  const values = Object.fromEntries(settingsIn('store').map((setting) => [setting, store[setting]]))
  return { name, address: await shownStore(store.address, io), ...values }
}

/** Returns an invalid address unchanged. */
async function resolvedName({ address }: SavedStore, io: Io): Promise<string> {
  try {
    return (await resolveAddress(address, '', io)).name
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return address
  }
}
