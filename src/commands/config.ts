import type { Command } from 'commander'
import { PlantsError } from '../errors.js'
import type { GlobalFlags } from '../flags.js'
import type { Io } from '../io.js'
import { toJson } from '../json.js'
import { nearest } from '../nearest.js'
import { readable, styleFor, warn, writeAnswer, writeResult } from '../output.js'
import { changeSettings } from '../settings/change.js'
import { type SavedSettings, type SavedStore, settingsPath } from '../settings/file.js'
import { type Origin, shownValue } from '../settings/origin.js'
import type { Preferences } from '../settings/preferences.js'
import { savedValue } from '../settings/saved-value.js'
import { isStoreName, namedStores, placesOf, unknownStore } from '../settings/store-name.js'
import { presetOf, type SettingName, settingNames, settingOf, settingsIn } from '../settings/table.js'
import { errorFormat, resolvePreferences } from '../settings.js'
import { parseAddress } from '../stores/open.js'

export function defineConfig(program: Command, io: Io): void {
  const config = program
    .command('config')
    .summary('read and change the settings')
    .description('Read and change the settings. Those of a store are called stores.NAME.SETTING.')
    .addHelpText('after', examples)
  config
    .command('get')
    .description('Print what a setting is, from wherever it has its value.')
    .argument('<setting>', 'its name')
    .action((name: string, _, command: Command) => get(name, command.optsWithGlobals<GlobalFlags>(), io))
  config
    .command('set')
    .description('Save a setting.')
    .argument('<setting>', 'its name')
    .argument('<value>', 'what it is to be')
    .action((name: string, value: string, _, command: Command) => set(name, value, command.optsWithGlobals<GlobalFlags>(), io))
  config
    .command('unset')
    .description('Forget a saved setting, so that its default holds.')
    .argument('<setting>', 'its name')
    .action((name: string, _, command: Command) => unset(name, command.optsWithGlobals<GlobalFlags>(), io))
  config
    .command('list')
    .description('List the settings: what they are, where that came from, and what they mean.')
    .action((_, command: Command) => list(command.optsWithGlobals<GlobalFlags>(), io))
  config
    .command('path')
    .description('Print where the settings file is, or would be.')
    .action((_, command: Command) => path(command.optsWithGlobals<GlobalFlags>(), io))
}

const examples = `
Examples:
  plants config set timeout 1m
  plants config get timeout
  plants config list
`

/** A setting as people name it: of the user, or of a store. */
interface Key {
  /** the name of the store, for a setting of one */
  store: string | undefined
  setting: SettingName | 'address'
}

async function get(name: string, flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolvePreferences(flags, io, { isMending: true })
  const entry = entriesOf(settings).find((candidate) => candidate.name === name)
  if (entry?.value === undefined) throw await noValue(name, settings)
  const isSeen = io.stdout.isTerminal && settings.errors === 'text'
  const text = settings.errors === 'json' ? toJson(entry) : isSeen ? readable(entry.value) : entry.value
  await writeAnswer(io, `${text}\n`, 'Run it again')
}

async function noValue(name: string, settings: Preferences): Promise<PlantsError> {
  const known = settingNames.find((candidate) => candidate === name)
  if (known !== undefined) return new PlantsError('notFound', `${name} has no value`, { hint: `What holds then: ${presetOf(known)}` })
  const { setting } = await parseKey(name, settings)
  return new PlantsError('notFound', `${name} has no value`, { hint: `What holds for all stores tells: plants config get ${setting}` })
}

async function set(name: string, text: string, flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolvePreferences(flags, io, { isMending: true })
  const key = await parseKey(name, settings)
  const value = await check(key, name, text, settings, io)
  await changeSettings(io, settings, async (saved) => {
    const isGone = name === 'store' && typeof value === 'string' && isStoreName(value) && !Object.hasOwn(saved.stores ?? {}, value)
    if (isGone) throw await unknownStore(value, saved)
    return withValue(key, value, saved)
  })
  const winner = settings.origins.find((origin) => origin.name === name && origin.source === 'variable')
  if (winner) await warn(io, `${winner.place} is still set, and wins over it`, settings)
  if (key.setting === 'address') await warnOfMove(key.store ?? '', settings, io)
  await writeResult(io, settings, { name, value }, `${name} is ${readable(String(value))} now`)
}

/** What was for the old address may not be meant for the new one. */
async function warnOfMove(name: string, settings: Preferences, io: Io): Promise<void> {
  const { stores = {}, tokens = {} } = settings.file.saved
  const store = stores[name]
  const kept = settingsIn('store').filter((setting) => settingOf(setting).isForServices && store?.[setting] !== undefined)
  if (kept.length > 0) await warn(io, `${name} keeps its ${kept.join(', ')}`, settings)
  const hadToken = store !== undefined && Object.hasOwn(tokens, store.address)
  if (hadToken) await warn(io, `The saved token is for the old address. Save one for the new: plants auth login --store ${name}`, settings)
}

async function unset(name: string, flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolvePreferences(flags, io, { isMending: true })
  const key = await parseKey(name, settings)
  if (key.setting === 'address') {
    throw new PlantsError('malformed', 'A store is nothing without its address', {
      hint: `Forget the store: plants stores remove ${key.store}`,
    })
  }
  const { before, after } = await changeSettings(io, settings, (saved) => withValue(key, undefined, saved))
  const removed = before !== after
  await writeResult(io, settings, { name, removed }, removed ? `${name} is forgotten` : `${name} was not saved`)
}

async function list(flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolvePreferences(flags, io, { isMending: true })
  const entries = entriesOf(settings)
  const text = settings.output === 'json' ? entries.map((entry) => `${toJson(entry)}\n`).join('') : await tableOf(entries, settings, io)
  await writeAnswer(io, text, 'Run it again')
}

/** Says it also where the file is broken: then it is needed most. */
async function path({ output }: GlobalFlags, io: Io): Promise<void> {
  const place = await settingsPath(io)
  const isJson = (await errorFormat(output, io)) === 'json'
  const text = isJson ? toJson({ path: place }) : io.stdout.isTerminal ? readable(place) : place
  await writeAnswer(io, `${text}\n`, 'Run it again')
}

interface Entry {
  name: string
  value: string | undefined
  source: Origin['source']
  meaning: string
}

/** All settings as they are for the store of this run, and those that are saved with any store. */
function entriesOf({ origins, file }: Preferences): Entry[] {
  const own = origins.map(({ name, value, source }) => ({
    name,
    value: shownValue(value),
    source,
    meaning: settingOf(name).meaning,
  }))
  const saved = namedStores(file.saved).flatMap(([store, fields]) => storeEntries(store, fields))
  return [...own, ...saved]
}

function storeEntries(store: string, fields: SavedStore): Entry[] {
  const names = ['address' as const, ...settingsIn('store')]
  return names.flatMap((name) => {
    const value = fields[name]
    const meaning = name === 'address' ? `where ${store} is` : `for ${store}: ${settingOf(name).meaning}`
    return value === undefined
      ? []
      : [{ name: `stores.${store}.${name}`, value: shownValue(String(value)), source: 'saved' as const, meaning }]
  })
}

async function tableOf(entries: Entry[], settings: Preferences, io: Io): Promise<string> {
  const { textTable } = await import('../output/table.js')
  const rows = entries.map(({ name, value, source, meaning }) => [name, value === undefined ? '-' : readable(value), source, meaning])
  return textTable(['NAME', 'VALUE', 'FROM', 'MEANING'], rows, await styleFor(settings.colors(io.stdout)))
}

/** @throws {PlantsError} `malformed` for what is no setting, or not where it was looked for */
async function parseKey(name: string, { file }: Preferences): Promise<Key> {
  const [, store, ofStore] = /^stores\.([^.]*)\.?(.*)$/s.exec(name) ?? []
  const setting = ofStore ?? name
  const scope = store === undefined ? 'user' : 'store'
  const allowed = settingsIn(scope)
  const names = store === undefined ? allowed : ['address' as const, ...allowed]
  const found = names.find((candidate) => candidate === setting)
  if (store === 'local')
    throw new PlantsError('malformed', 'The store local has no settings of its own', {
      hint: 'See what holds for it: plants config list',
    })
  if (found === undefined) throw unknownSetting(name, setting, store, names)
  if (store !== undefined && !Object.hasOwn(file.saved.stores ?? {}, store)) throw await unknownStore(store, file.saved)
  return { store, setting: found }
}

function unknownSetting(name: string, setting: string, store: string | undefined, names: string[]): PlantsError {
  const isOfStores = store === undefined && settingNames.some((candidate) => candidate === setting)
  if (isOfStores) {
    const hint = `For example: plants config set stores.NAME.${setting} VALUE`
    return new PlantsError('malformed', `${setting} is saved with a store, not for all`, { hint })
  }
  const guess = nearest(setting, names)
  const place = store === undefined ? '' : `stores.${store}.`
  const hint = guess ? `Did you mean ${place}${guess}?` : `There are: ${names.map((known) => place + known).join(', ')}`
  return new PlantsError('malformed', `There is no setting ${JSON.stringify(name)}`, { hint })
}

/** The value as it is saved. Throws `malformed` for one that the setting cannot have. */
async function check({ store, setting }: Key, name: string, text: string, { file }: Preferences, io: Io): Promise<string | boolean> {
  if (setting === 'address') return checkNewAddress(store ?? '', name, text, file.saved, io)
  if (store !== undefined && settingOf(setting).isForServices) await checkRemote(store, setting, file.saved, io)
  const value = savedValue(setting, name, text, io)
  return setting === 'store' && !isStoreName(text) ? checkAddress(name, text, io) : value
}

/** A store that becomes a file must not keep what only a service can use. */
async function checkNewAddress(store: string, name: string, text: string, { stores = {} }: SavedSettings, io: Io): Promise<string> {
  const { kind } = await parseAddress(text, name, placesOf(io))
  const left =
    kind === 'file'
      ? settingsIn('store').find((setting) => settingOf(setting).isForServices && stores[store]?.[setting] !== undefined)
      : undefined
  if (left === undefined) return checkAddress(name, text, io)
  const hint = `Forget it first: plants config unset stores.${store}.${left}`
  throw new PlantsError('malformed', `${store} has a ${left}, which is for stores behind HTTP, and ${text} is a file`, { hint })
}

async function checkAddress(name: string, text: string, io: Io): Promise<string> {
  return text === 'local' ? text : (await parseAddress(text, name, placesOf(io))).name
}

async function checkRemote(store: string, setting: string, { stores = {} }: SavedSettings, io: Io): Promise<void> {
  const address = await parseAddress(stores[store]?.address ?? '', `stores.${store}.address`, placesOf(io))
  if (address.kind === 'remote') return
  throw new PlantsError('malformed', `${setting} is for stores behind HTTP, and ${store} is a file`, { hint: 'Set it for another store' })
}

/** The settings with a value, or without it. Nothing else of them changes. */
function withValue({ store, setting }: Key, value: string | boolean | undefined, saved: SavedSettings): SavedSettings {
  if (store === undefined) return withField(saved, setting, value)
  const old = Object.hasOwn(saved.stores ?? {}, store) ? saved.stores?.[store] : undefined
  if (!old) throw new PlantsError('malformed', `There is no store ${store} any more`, { hint: 'See: plants stores list' })
  return { ...saved, stores: { ...saved.stores, [store]: withField(old, setting, value) } }
}

function withField<Fields extends object>(fields: Fields, name: string, value: string | boolean | undefined): Fields {
  const changed = { ...fields, [name]: value }
  if (value === undefined) Reflect.deleteProperty(changed, name)
  return changed
}
