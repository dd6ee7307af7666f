import { parseChoice } from '../../config/option-values.js'
import {
  type EffectiveSettings,
  knownStore,
  resolveAddress,
  shownStore,
} from '../../config/resolve.js'
import {
  defaultOf,
  type SettingName,
  settingNames,
  settingOf,
  settingsIn,
} from '../../config/setting-table.js'
import { isStoreName, settingsPath } from '../../config/settings-file.js'
import { quoteIfNeeded, writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/exact-json.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { completeAddress } from '../../stores/common/address.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { SettingsContext } from '../command-context.js'

const savedNames = settingsIn('user')

export function defineConfig(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Read and change the settings for all stores. Those of one store: plants stores add --replace.',
    )
    .addExamples('plants config set timeout 1m', 'plants config get timeout', 'plants config list')
  command
    .command('get')
    .description('Print the effective value of a setting.')
    .addArgument(settingArgument(command, settingNames))
    .handler((options: GlobalOptions, name: SettingName) => get(name, options, io))
  command
    .command('set')
    .description('Save a setting.')
    .addArgument(settingArgument(command, savedNames))
    .argument('<value>', 'the new value')
    .handler((options: GlobalOptions, name: SettingName, value: string) =>
      saveSetting(name, value, options, io),
    )
  command
    .command('unset')
    .description('Remove a saved setting, so that its default applies.')
    .addArgument(settingArgument(command, savedNames))
    .handler((options: GlobalOptions, name: SettingName) => unset(name, options, io))
  command
    .command('list')
    .alias('ls')
    .description('List the settings with their values, sources and descriptions.')
    .handler((options: GlobalOptions) => list(options, io))
  command
    .command('path')
    .description('Print the path of the settings file, even if the file does not exist.')
    .handler((options: GlobalOptions) => path(options, io))
}

function settingArgument(command: PlantsCommand, names: readonly SettingName[]) {
  const hint = 'For one store: plants stores add --replace'
  return command
    .createArgument('<setting>', `one of ${names.join(', ')}`)
    .choices(names)
    .argParser((text) => parseChoice('setting', text, names, hint))
}

async function get(name: SettingName, options: GlobalOptions, io: Io): Promise<void> {
  const context = await SettingsContext.read(options, io)
  const entry = await entryOf(name, context.settings, io)
  if (entry.value === undefined)
    throw new PlantsError('notFound', `${name} is not set`, {
      hint: `The default applies: ${defaultOf(name)}`,
    })
  // Unchanged, unless a terminal would obey it.
  const shown = io.stdout.isTerminal ? quoteIfNeeded(entry.value) : entry.value
  await context.printWord(shown, entry)
}

/** Warns about what has precedence over it. */
export async function saveSetting(
  name: SettingName,
  text: string,
  options: GlobalOptions,
  io: Io,
): Promise<void> {
  const context = await SettingsContext.read(options, io)
  const { changeSettings, savedValue } = await import('../../config/change-settings.js')
  const { saved, shown } =
    name === 'store'
      ? await savedStoreText(text, context)
      : asShown(await savedValue(name, name, text, io))
  await changeSettings(io, context.timeout, (before) => ({ ...before, [name]: saved }))
  const { source, place } = context.settings.source(name)
  if (source === 'variable') await context.warn(`${place} is still set, and takes precedence`)
  await context.print({ name, value: shown }, `Set ${name} to ${quoteIfNeeded(shown)}`)
}

function asShown(saved: string | boolean) {
  return { saved, shown: String(saved) }
}

/** A name stays a name; an address is saved as it is resolved here. */
async function savedStoreText(
  text: string,
  { settings, reporter, io }: SettingsContext,
): Promise<{ saved: string; shown: string }> {
  const isName = text === 'local' || isStoreName(text)
  const stored = isStoreName(text) ? knownStore(text, settings.file.saved).address : text
  const address = await resolveAddress(stored, 'store', io, { isArgument: !isName })
  const { warnOfExposure } = await import('../store-access.js')
  await warnOfExposure(address, reporter)
  if (isName) return { saved: text, shown: text }
  return { saved: completeAddress(address), shown: address.name }
}

async function unset(name: SettingName, options: GlobalOptions, io: Io): Promise<void> {
  const context = await SettingsContext.read(options, io)
  const { changeSettings, withField } = await import('../../config/change-settings.js')
  const { isChanged: removed } = await changeSettings(io, context.timeout, (all) =>
    withField(all, name, undefined),
  )
  const sentence = removed ? `Removed the setting ${name}` : `The setting ${name} was not saved`
  await context.print({ name, removed }, sentence)
}

async function list(options: GlobalOptions, io: Io): Promise<void> {
  const context = await SettingsContext.read(options, io)
  const entries = await Promise.all(settingNames.map((name) => entryOf(name, context.settings, io)))
  const titles = ['NAME', 'VALUE', 'SOURCE', 'DESCRIPTION']
  const printer = await context.tablePrinter(titles, ({ name, value, source, meaning }: Entry) => [
    name,
    value === undefined ? '-' : quoteIfNeeded(value),
    source,
    meaning,
  ])
  await printer.all([entries])
}

/** Works with an invalid file, whose path is needed to correct it. */
async function path({ output }: GlobalOptions, io: Io): Promise<void> {
  const file = await settingsPath(io)
  const shown = io.stdout.isTerminal ? quoteIfNeeded(file) : file
  const isJson = output === 'json' || output === 'ndjson'
  await writeAnswer(io, `${isJson ? toJson({ path: file }) : shown}\n`)
}

type Entry = Awaited<ReturnType<typeof entryOf>>

async function entryOf(name: SettingName, settings: EffectiveSettings, io: Io) {
  const { value, source } = settings.source(name)
  const { saved } = settings.file
  const shown = name === 'store' && value !== undefined ? await shownStore(value, io, saved) : value
  return { name, value: shown, source, meaning: settingOf(name).meaning }
}
