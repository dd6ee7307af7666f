import type { SavedSettings } from '../../config/file.js'
import { namedStores, shownValue } from '../../config/resolve.js'
import { isFor, type Scope, settingNames, settingOf, settingsIn } from '../../config/table.js'
import { escapeControlChars, shorten } from '../../platform/escape.js'
import type { Values } from '../../platform/values.js'
import { kindOfText } from '../../stores/registry.js'

/** The completions of a word. Each shell filters them in its own way by the text that was typed. */
export interface Completions {
  candidates: readonly Candidate[]
  /** the text before each candidate in the word, such as `--output=` */
  prefix: string
  /** the files that the shell offers in addition: none, all, or those with one of these extensions */
  files: 'none' | 'any' | string[]
}

/** A word that ends with a dot is incomplete: the shell adds no space after it. */
export type Candidate = Record<'word' | 'meaning', string>

export const nothing: Completions = { candidates: [], prefix: '', files: 'none' }

export function candidatesOnly(candidates: readonly Candidate[]): Completions {
  return { ...nothing, candidates }
}

export interface ValueContext {
  /** the part of the value that was typed */
  text: string
  operands: readonly string[]
  /** reads the saved settings, only when they are needed */
  saved(): Promise<SavedSettings>
}

export async function completeValues(values: Values | undefined, context: ValueContext): Promise<Completions> {
  if (values === undefined) return nothing
  if (typeof values !== 'string') return candidatesOnly(values.map((word) => ({ word, meaning: '' })))
  return completers[values](context)
}

const completers: Record<Extract<Values, string>, (context: ValueContext) => Promise<Completions>> = {
  file: async () => ({ ...nothing, files: 'any' }),
  store: completeStores,
  'saved-store': async ({ saved }) => candidatesOnly(storesIn(await saved())),
  setting: async ({ text, saved }) => candidatesOnly(settingsFor(text, await saved())),
  'setting-value': async (context) => completeValues(valuesOf(context.operands[0] ?? ''), context),
}

/** Names and paths of stores. A path without a slash needs the extension of a store. */
async function completeStores({ text, saved }: ValueContext): Promise<Completions> {
  const [prefix = ''] = /^(sqlite|unix):/i.exec(text) ?? []
  if (prefix !== '') return { ...nothing, prefix, files: 'any' }
  if (/^(https?|postgres(ql)?):/i.test(text)) return nothing
  if (/^[.~]|\//.test(text)) return { ...nothing, files: 'any' }
  const local = { word: 'local', meaning: 'your own store, which is built in' }
  return { ...candidatesOnly([...storesIn(await saved()), local]), files: ['db', 'sqlite'] }
}

function storesIn(saved: SavedSettings): Candidate[] {
  return namedStores(saved).map(([word, { address }]) => ({ word, meaning: escapeControlChars(shorten(shownValue(address))) }))
}

/** The settings of the user and the names of stores; after the name of a store, its settings. */
function settingsFor(text: string, saved: SavedSettings): Candidate[] {
  const candidates = (scope: Scope) => settingsIn(scope).map((name) => ({ name, word: name, meaning: settingOf(name).meaning }))
  const [name, store] = namedStores(saved).find(([known]) => text.startsWith(`stores.${known}.`)) ?? []
  if (store) {
    const own = candidates('store').filter((candidate) => isFor(candidate.name, kindOfText(store.address)))
    const address = { word: 'address', meaning: 'address of the store' }
    return [address, ...own].map(({ word, meaning }) => ({ word: `stores.${name}.${word}`, meaning }))
  }
  const stores = storesIn(saved).map(({ word, meaning }) => ({ word: `stores.${word}.`, meaning: `the settings of ${meaning}` }))
  return [...candidates('user'), ...stores]
}

function valuesOf(key: string): Values | undefined {
  const setting = key.replace(/^stores\.[^.]*\./, '')
  if (setting === 'address') return 'file'
  const name = settingNames.find((candidate) => candidate === setting)
  if (name === undefined) return undefined
  return settingOf(name).isSwitch ? ['true', 'false'] : settingOf(name).values
}
