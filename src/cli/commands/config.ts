import { namedStores, shownStore } from '../../config/resolve.js'
import { defaultOf, settingNames, settingOf, settingsIn } from '../../config/setting-table.js'
import { savedStore, settingsPath } from '../../config/settings-file.js'
import { quoteIfNeeded, writeAnswer, writeResult, writeTable } from '../../output/output.js'
import { toJson } from '../../plant/exact-json.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { isJson } from '../../platform/values.js'
import { completeAddress } from '../../stores/registry.js'
import { chosenFormat, type Preferences, resolvePreferences } from '../context.js'
import { type ArgumentDefinition, type CommandDefinition, defineCommand, type GlobalFlags } from '../define-command.js'

const setting = {
  name: '<setting>',
  description: `name of the setting: ${settingsIn('user').join(', ')}; for a store, stores.NAME.SETTING. See: plants help environment`,
  values: 'setting',
} as const satisfies ArgumentDefinition

const get = defineCommand({
  name: 'get',
  description: 'Print the effective value of a setting.',
  arguments: [setting],
  async run({ args: [name], flags }, io) {
    const settings = await resolvePreferences(flags, io, { ignoresInvalid: true })
    const entry = (await entriesOf(settings, io)).find((candidate) => candidate.name === name)
    if (entry?.value === undefined) {
      const { parseKey } = await import('../../config/edit.js')
      const known = settingNames.find((candidate) => candidate === name)
      const hint = known
        ? `The default applies: ${defaultOf(known)}`
        : `For the value of all stores: plants config get ${(await parseKey(name, settings.file.saved)).setting}`
      throw new PlantsError('notFound', `${name} is not set`, { hint })
    }
    await writeText(entry.value, settings.errors === 'json' ? entry : undefined, io)
  },
})

const set = defineCommand({
  name: 'set',
  description: 'Save a setting.',
  arguments: [setting, { name: '<value>', description: 'the new value', values: 'setting-value' }],
  run: ({ args: [name, text], flags }, io) => saveSetting(name, text, flags, io),
})

/** Warns about what has precedence over it, and about what was saved for the old value. */
export async function saveSetting(name: string, text: string, flags: GlobalFlags, io: Io): Promise<void> {
  const { checkedValue, parseKey, settingsOfServices, withValue } = await import('../../config/edit.js')
  const { changeSettings } = await import('../../config/change.js')
  const settings = await resolvePreferences(flags, io, { ignoresInvalid: true })
  let checked: Awaited<ReturnType<typeof checkedValue>> = { value: text }
  const { before, after } = await changeSettings(io, settings, async (saved) => {
    const key = await parseKey(name, saved)
    checked = await checkedValue(key, name, text, saved, io)
    return withValue(key, checked.value, saved)
  })
  const { value, address } = checked
  const winner = settings.sources.find((each) => each.name === name && each.source === 'variable')
  if (winner) await settings.warn(`${winner.place} is still set, and takes precedence`)
  const [, store] = /^stores\.(.*)\.address$/s.exec(name) ?? []
  if (store !== undefined && address) {
    const kept = settingsOfServices(savedStore(after, store))
    if (kept.length > 0) await settings.warn(`${store} keeps its ${kept.join(', ')}`)
    const { savedToken } = await import('../../auth/credentials.js')
    const old = savedStore(before, store)?.address ?? ''
    if (old !== address.name && savedToken(before, old) && !savedToken(after, address.name)) {
      const fix = `Save a new one: plants auth login --store ${shellWord(store)}`
      await settings.warn(`The saved token is for the old address. ${fix}`)
    }
  }
  if (address) await (await import('../store-access.js')).warnOfExposure(address, settings)
  const shown = address && value === completeAddress(address) ? address.name : value
  await writeResult(io, settings, { name, value: shown }, `Set ${name} to ${quoteIfNeeded(String(shown))}`)
}

const unset = defineCommand({
  name: 'unset',
  description: 'Remove a saved setting, so that its default applies.',
  arguments: [setting],
  async run({ args: [name], flags }, io) {
    const { parseKey, withValue } = await import('../../config/edit.js')
    const { changeSettings } = await import('../../config/change.js')
    const settings = await resolvePreferences(flags, io, { ignoresInvalid: true })
    const { before, after } = await changeSettings(io, settings, async (saved) => {
      const key = await parseKey(name, saved)
      const hint = `To remove the store: plants stores remove ${shellWord(key.store ?? '')}`
      if (key.setting === 'address') throw malformed('A store needs an address', hint)
      return withValue(key, undefined, saved)
    })
    const removed = before !== after
    const text = removed ? `Removed the setting ${name}` : `The setting ${name} was not saved`
    await writeResult(io, settings, { name, removed }, text)
  },
})

const list = defineCommand({
  name: 'list',
  description: 'List the settings with their values, sources and descriptions.',
  async run({ flags }, io) {
    const settings = await resolvePreferences(flags, io, { ignoresInvalid: true })
    const titles = ['NAME', 'VALUE', 'SOURCE', 'DESCRIPTION']
    await writeTable(io, settings, [await entriesOf(settings, io)], titles, ({ name, value, source, meaning }) => [
      name,
      value === undefined ? '-' : quoteIfNeeded(value),
      source,
      meaning,
    ])
  },
})

/** Works with an invalid file, whose path is needed to correct it. */
const path = defineCommand({
  name: 'path',
  description: 'Print the path of the settings file, even if the file does not exist.',
  async run({ flags }, io) {
    const file = await settingsPath(io)
    await writeText(file, isJson(await chosenFormat(flags.output, io)) ? { path: file } : undefined, io)
  },
})

export const config: CommandDefinition = {
  name: 'config',
  description: 'Read and change settings. A setting of a store is called stores.NAME.SETTING.',
  commands: [get, set, unset, list, path],
  examples: ['plants config set timeout 1m', 'plants config get timeout', 'plants config list'],
}

/** Prints a text unchanged, unless a terminal would obey it. */
async function writeText(text: string, fields: object | undefined, io: Io): Promise<void> {
  const shown = io.stdout.isTerminal ? quoteIfNeeded(text) : text
  await writeAnswer(io, `${fields ? toJson(fields) : shown}\n`)
}

async function entriesOf({ sources, file }: Preferences, io: Io) {
  const own = sources.map(({ name, value, source }) => ({ name, value, source, meaning: settingOf(name).meaning }))
  const saved = namedStores(file.saved).flatMap(([store, fields]) =>
    (['address', ...settingsIn('store')] as const).flatMap((name) => {
      const value = fields[name]
      if (value === undefined) return []
      const meaning = name === 'address' ? `address of ${store}` : `for ${store}: ${settingOf(name).meaning}`
      return [{ name: `stores.${store}.${name}`, value: String(value), source: 'saved' as const, meaning }]
    }),
  )
  const isAddress = (name: string) => name === 'store' || name.endsWith('.address')
  return Promise.all(
    [...own, ...saved].map(async ({ name, value, ...others }) => {
      const shown = value !== undefined && isAddress(name) ? await shownStore(value, io) : value
      return { name, value: shown, ...others }
    }),
  )
}
