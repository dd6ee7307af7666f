import { savedStore, settingsPath } from '../../config/file.js'
import { isStoreName, namedStores, shownValue, unknownStore } from '../../config/resolve.js'
import { defaultOf, settingNames, settingOf, settingsIn } from '../../config/table.js'
import { quoteIfNeeded, rowPrinter, writeAnswer, writeResult } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import { isJson } from '../../platform/values.js'
import { schemeOfText, schemes } from '../../stores/registry.js'
import { chosenFormat, type Preferences, resolvePreferences } from '../context.js'
import { type ArgumentDefinition, type CommandDefinition, defineCommand } from '../define-command.js'

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
    const settings = await resolvePreferences(flags, io, { ignoresSaved: true })
    const entry = entriesOf(settings).find((candidate) => candidate.name === name)
    if (entry?.value === undefined) {
      const { parseKey } = await import('../../config/edit.js')
      const known = settingNames.find((candidate) => candidate === name)
      const hint = known
        ? `The default applies: ${defaultOf(known)}`
        : `For the value of all stores: plants config get ${(await parseKey(name, settings.file.saved)).setting}`
      throw new PlantsError('notFound', `${name} is not set`, { hint })
    }
    const isSeen = io.stdout.isTerminal && settings.errors === 'text'
    const text = settings.errors === 'json' ? toJson(entry) : isSeen ? quoteIfNeeded(entry.value) : entry.value
    await writeAnswer(io, `${text}\n`)
  },
})

const set = defineCommand({
  name: 'set',
  description: 'Save a setting.',
  arguments: [setting, { name: '<value>', description: 'the new value', values: 'setting-value' }],
  async run({ args: [name, text], flags }, io) {
    const { checkedValue, parseKey, withValue } = await import('../../config/edit.js')
    const { changeSettings } = await import('../../config/change.js')
    const settings = await resolvePreferences(flags, io, { ignoresSaved: true })
    const key = await parseKey(name, settings.file.saved)
    const { value, address } = await checkedValue(key, name, text, settings.file.saved, io)
    await changeSettings(io, settings, async (saved) => {
      if (name === 'store' && isStoreName(text) && !savedStore(saved, text)) throw await unknownStore(text, saved)
      return withValue(key, value, saved)
    })
    const winner = settings.sources.find((setting) => setting.name === name && setting.source === 'variable')
    if (winner) await settings.warn(`${winner.place} is still set, and takes precedence`)
    if (key.setting === 'address') await warnOfMove(key.store ?? '', String(value), settings)
    if (address) await (await import('../store-access.js')).warnOfExposure(address, settings)
    await writeResult(io, settings, { name, value }, `Set ${name} to ${quoteIfNeeded(String(value))}`)
  },
})

const unset = defineCommand({
  name: 'unset',
  description: 'Remove a saved setting, so that its default applies.',
  arguments: [setting],
  async run({ args: [name], flags }, io) {
    const { parseKey, withValue } = await import('../../config/edit.js')
    const { changeSettings } = await import('../../config/change.js')
    const settings = await resolvePreferences(flags, io, { ignoresSaved: true })
    const key = await parseKey(name, settings.file.saved)
    if (key.setting === 'address')
      throw malformed('A store needs an address', `To remove the store: plants stores remove ${shellWord(key.store ?? '')}`)
    const { before, after } = await changeSettings(io, settings, (saved) => withValue(key, undefined, saved))
    const removed = before !== after
    await writeResult(io, settings, { name, removed }, removed ? `Removed the setting ${name}` : `The setting ${name} was not saved`)
  },
})

const list = defineCommand({
  name: 'list',
  description: 'List the settings with their values, sources and descriptions.',
  async run({ flags }, io) {
    const settings = await resolvePreferences(flags, io, { ignoresSaved: true })
    const rows = await rowPrinter<ReturnType<typeof entriesOf>[number]>(
      ['NAME', 'VALUE', 'SOURCE', 'DESCRIPTION'],
      ({ name, value, source, meaning }) => [name, value === undefined ? '-' : quoteIfNeeded(value), source, meaning],
      settings,
      io,
    )
    await rows.print(entriesOf(settings))
    await rows.end()
  },
})

/** Works even if the file is invalid, because the path is needed to correct it. */
const path = defineCommand({
  name: 'path',
  description: 'Print the path of the settings file, even if the file does not exist.',
  async run({ flags }, io) {
    const file = await settingsPath(io)
    const text = isJson(await chosenFormat(flags.output, io)) ? toJson({ path: file }) : io.stdout.isTerminal ? quoteIfNeeded(file) : file
    await writeAnswer(io, `${text}\n`)
  },
})

export const config: CommandDefinition = {
  name: 'config',
  description: 'Read and change settings. A setting of a store is called stores.NAME.SETTING.',
  commands: [get, set, unset, list, path],
  examples: ['plants config set timeout 1m', 'plants config get timeout', 'plants config list'],
}

async function warnOfMove(name: string, address: string, { file: { saved }, warn }: Pick<Preferences, 'file' | 'warn'>): Promise<void> {
  const { settingsForOthers } = await import('../../config/edit.js')
  const { savedToken } = await import('../../auth/credentials.js')
  const store = savedStore(saved, name)
  const kept = settingsForOthers(store)
  if (kept.length > 0) await warn(`${name} keeps its ${kept.join(', ')}`)
  const login = (text: string) => text.replace(/^(postgres:.*?)\?.*/s, '$1') // without the parameters of a database
  if (!store || login(store.address) === login(address) || !savedToken(saved, login(store.address))) return
  const noun = schemes[schemeOfText(store.address)].credential ?? 'token'
  await warn(`The saved ${noun} is for the old address. Save a new one: plants auth login --store ${shellWord(name)}`)
}

function entriesOf({ sources, file }: Pick<Preferences, 'sources' | 'file'>) {
  const own = sources.map(({ name, value, source }) => ({ name, value: shownValue(value), source, meaning: settingOf(name).meaning }))
  const saved = namedStores(file.saved).flatMap(([store, fields]) =>
    (['address', ...settingsIn('store')] as const).flatMap((name) => {
      const value = fields[name]
      if (value === undefined) return []
      const meaning = name === 'address' ? `address of ${store}` : `for ${store}: ${settingOf(name).meaning}`
      return [{ name: `stores.${store}.${name}`, value: shownValue(String(value)), source: 'saved' as const, meaning }]
    }),
  )
  return [...own, ...saved]
}
