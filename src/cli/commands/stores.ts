import {
  assertSettingsFor,
  assertStoreName,
  changeSettings,
  omitKey,
  parseSavedValue,
} from '../../config/change-settings.js'
import {
  formatStore,
  getSavedStore,
  listNamedStores,
  resolveAddress,
} from '../../config/resolve.js'
import { listSettings, toOptionKey, toSettingText } from '../../config/setting-table.js'
import { isStoreName, type SavedStore } from '../../config/settings-schema.js'
import { createUsageError } from '../../errors.js'
import { quoteIfNeeded } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import { quoteWord } from '../../platform/shell.js'
import type { Address } from '../../stores/address.js'
import { findKind } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { readContext } from '../context.js'
import { createSettingOption, type GlobalOptions } from '../global-options.js'
import { openDirect } from '../open-store.js'
import { createTablePrinter, printOutcome } from '../print.js'
import { warnOfExposure } from '../store-access.js'
import { saveSetting } from './config.js'

interface AddOptions extends GlobalOptions {
  replace?: true
}

export function define(command: PlantsCommand): void {
  command.description('Save stores under names, which can be used wherever an address is expected.')
  const add = command
    .command('add')
    .description('Save the address and options of a store under a name.')
    .addExamples(
      'plants stores add garden ./garden.db',
      'plants stores add team https://plants.example.com/v1 --timeout 2m',
    )
    .argument('<name>', 'up to 64 letters, digits, "-" and "_", beginning with a letter or a digit')
    .argument('<address>', 'a path, http(s)://… or postgres://…')
  for (const name of listSettings('store')) add.addOption(createSettingOption(name))
  add
    .option('--replace', 'replace the address and all options saved under this name')
    .handler(addStore)
  command
    .command('init')
    .description(
      'Create the store in a PostgreSQL database, as the owner of the database. An existing store is kept.',
    )
    .addExamples('plants stores init postgres://plants@db.example.com/plants')
    .argument('<address>', 'address of the store: postgres://OWNER@SERVER/DATABASE, or a file')
    .handler(init)
  command
    .command('list')
    .description('List the saved stores. An asterisk marks the default store.')
    .addExamples('plants stores list')
    .handler(list)
  command
    .command('use')
    .description('Set the default store. The store "local" is built in.')
    .addExamples('plants stores use ./garden.db')
    .argument('<store>', 'a saved name, or an address')
    .handler((options, io, store: string) => saveSetting(options, io, 'store', store))
  command
    .command('remove')
    .description('Remove a saved store. Its plants and its token are kept.')
    .addExamples('plants stores remove nursery')
    .argument('<store>', 'name of the saved store')
    .handler(remove)
}

async function addStore(options: AddOptions, io: Io, name: string, text: string): Promise<void> {
  const context = await readContext(options, io)
  assertStoreName(name)
  if (isStoreName(text))
    throw createUsageError(
      'The address is only a name',
      'Give a path (./plants.db) or an address (https://HOST, postgres://HOST/DATABASE)',
    )
  const address = await resolveAddress(text, 'The address', io, { isArgument: true })
  const store = await buildSavedStore(options, address, io)
  const isReplaced = await changeSettings(io, context.settings.timeoutMs, (settings) => {
    const stores = settings.get('stores', {})
    const exists = Object.hasOwn(stores, name)
    if (exists && !options.replace)
      throw createUsageError(
        `The store ${name} already exists`,
        'Choose another name, or add --replace',
      )
    settings.set('stores', { ...stores, [name]: store })
    return exists
  })
  await warnOfExposure(address, context.reporter)
  const verb = isReplaced ? 'Replaced' : 'Saved'
  const nextStep = `Use it with: --store ${name}. To make it the default: plants stores use ${name}`
  const message = `${verb} the store ${name}, ${quoteIfNeeded(address.name)}. ${nextStep}`
  await printOutcome(await describeStore(name, store, io), message, context)
}

/**
 * Builds the entry of a store in the settings file: its address without a password, and its
 * settings.
 *
 * @throws {PlantsError} `usage` for a setting that is wrong, or has no effect at the address
 */
async function buildSavedStore(options: object, address: Address, io: Io): Promise<SavedStore> {
  const kind = findKind(address)
  const text = kind.isDefault?.(address) ? 'local' : kind.format(address)
  const store: SavedStore = { address: text }
  for (const name of listSettings('store')) {
    const value = toSettingText(Reflect.get(options, toOptionKey(name)))
    if (value === undefined) continue
    assertSettingsFor(address, { ...store, [name]: value })
    store[name] = await parseSavedValue(name, `--${name}`, value, io)
  }
  return store
}

async function init(globalOptions: GlobalOptions, io: Io, value: string): Promise<void> {
  if (globalOptions.store !== undefined)
    throw createUsageError('stores init takes the address as an argument', 'Leave out --store')
  // A wrong store of a variable or a setting is not used, and so no error.
  const context = await readContext({ ...globalOptions, store: value }, io)
  const source = { value, origin: 'The address', source: 'flag' } as const
  const address = await context.settings.findAddress(source)
  let isCreated = false
  const onCreated = async () => {
    isCreated = true
  }
  const store = await openDirect({ ...context, address }, 'init', { onCreated })
  await store?.close()
  const name = quoteIfNeeded(address.name)
  const text = isCreated ? `Created a store at ${name}` : `The store ${name} already exists`
  await printOutcome({ address: address.name, created: isCreated }, text, context)
}

async function list(options: GlobalOptions, io: Io): Promise<void> {
  const context = await readContext(options, io)
  const { savedSettings } = context.settings.file
  const { value: selectedName = 'local' } = context.settings.findSource('store')
  const local = { name: 'local', address: (await resolveAddress('local', '', io)).name }
  const sortedStores = listNamedStores(savedSettings).toSorted(([left], [right]) =>
    left < right ? -1 : 1,
  )
  const namedRows = await Promise.all(
    sortedStores.map(([name, store]) => describeStore(name, store, io)),
  )
  const rows = [local, ...namedRows].map((row) => ({ ...row, inUse: row.name === selectedName }))
  const titles = ['', 'NAME', 'ADDRESS', 'SETTINGS']
  const formatCells = ({ name, inUse, address, ...settings }: (typeof rows)[number]) => [
    inUse ? '*' : '',
    quoteIfNeeded(name),
    quoteIfNeeded(address),
    Object.entries(settings)
      .filter(([, value]) => value !== undefined)
      .map(([setting, value]) => `${setting}=${quoteIfNeeded(String(value))}`)
      .join(', '),
  ]
  const printer = await createTablePrinter(titles, formatCells, context)
  await printer.printAll([rows])
}

async function remove(options: GlobalOptions, io: Io, name: string): Promise<void> {
  const context = await readContext(options, io)
  const { address, hasToken } = await changeSettings(io, context.settings.timeoutMs, (settings) => {
    const stores = settings.get('stores', {})
    const { address } = getSavedStore(name, { version: 1, stores })
    if (settings.get('store') === name)
      throw createUsageError(
        `${name} is the default store`,
        'Make another store the default first: plants stores use local',
      )
    settings.set('stores', omitKey(stores, name))
    return { address, hasToken: Object.hasOwn(settings.get('tokens', {}), address) }
  })
  const location = await formatStore(address, io)
  const keptSentence = `Its plants are kept in ${quoteIfNeeded(location)}`
  if (hasToken)
    await context.reporter.warn(
      `Its token is still saved. Remove it with: plants auth logout --store ${quoteWord(location)}`,
    )
  const text = `Removed the store ${quoteIfNeeded(name)}. ${keptSentence}`
  await printOutcome({ name, address: location, removed: true }, text, context)
}

/** Returns the fields of a saved store that are printed: its name, its address and its settings. */
async function describeStore(name: string, store: SavedStore, io: Io) {
  const values = Object.fromEntries(
    listSettings('store').map((setting) => [setting, store[setting]]),
  )
  return { name, address: await formatStore(store.address, io), ...values }
}
