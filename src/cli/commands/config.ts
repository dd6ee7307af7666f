import { isJson } from '../../config/option-values.js'
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
import { PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { type Address, completeAddress } from '../../stores/common/address.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { chosenFormat, SettingsContext } from '../command-context.js'

const savedNames = settingsIn('user')

export function defineConfig(command: PlantsCommand, io: Io): void {
  command
    .description('Read and change the settings for all stores. For one store: plants stores set.')
    .addExamples('plants config set timeout 1m', 'plants config get timeout', 'plants config list')
  command
    .command('get')
    .description('Print the effective value of a setting.')
    .addArgument(settingArgument(command, settingNames))
    .handler((options: GlobalOptions, name: string) => get(name, options, io))
  command
    .command('set')
    .description('Save a setting.')
    .addArgument(settingArgument(command))
    .argument('<value>', 'the new value')
    .handler((options: GlobalOptions, name: string, value: string) => set(name, value, options, io))
  command
    .command('unset')
    .aliases(['rm', 'delete', 'remove'])
    .description('Remove a saved setting, so that its default applies.')
    .addArgument(settingArgument(command))
    .handler((options: GlobalOptions, name: string) => unset(name, options, io))
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

function settingArgument(command: PlantsCommand, names: readonly SettingName[] = savedNames) {
  return command
    .createArgument('<setting>', `one of ${names.join(', ')}`)
    .choices(names)
    .argParser(String)
}

/** Throws `usage` for an unknown setting. */
function nameOf(text: string, names: readonly SettingName[] = savedNames): SettingName {
  const found = names.find((name) => name === text)
  if (found !== undefined) return found
  const ofStore = settingNames.find((name) => name === text || text.endsWith(`.${name}`))
  const option = ofStore
    ? (settingOf(ofStore).flags ?? `--${ofStore} <command>`)
    : '--address <address>'
  const isOfStore = ofStore !== undefined || text.endsWith('.address')
  const hint = isOfStore
    ? `For one store: plants stores set NAME ${option}`
    : `The settings are: ${names.join(', ')}`
  const message =
    ofStore === text
      ? `The setting ${text} is not for all stores`
      : `There is no setting ${JSON.stringify(text)}`
  throw usageError(message, hint)
}

async function get(text: string, options: GlobalOptions, io: Io): Promise<void> {
  const name = nameOf(text, settingNames)
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
export async function set(
  text: string,
  value: string,
  options: GlobalOptions,
  io: Io,
): Promise<void> {
  const name = nameOf(text)
  const context = await SettingsContext.read(options, io)
  const { changeSettings, savedValue } = await import('../../config/change-settings.js')
  const checked: { shown: string; address?: Address } = { shown: value }
  await changeSettings(io, context.timeout, async (before) => {
    if (name !== 'store') {
      const saved = await savedValue(name, name, value, io)
      checked.shown = String(saved)
      return { ...before, [name]: saved }
    }
    checked.address = isStoreName(value)
      ? await resolveAddress(knownStore(value, before).address, `stores.${value}.address`, io)
      : await resolveAddress(value, name, io, { isArgument: true })
    const isName = value === 'local' || isStoreName(value)
    checked.shown = isName ? value : checked.address.name
    return { ...before, store: isName ? value : completeAddress(checked.address) }
  })
  const { source, place } = context.settings.source(name)
  if (source === 'variable') await context.warn(`${place} is still set, and takes precedence`)
  const { shown, address } = checked
  if (address) await (await import('../store-access.js')).warnOfExposure(address, context.reporter)
  await context.print({ name, value: shown }, `Set ${name} to ${quoteIfNeeded(shown)}`)
}

async function unset(text: string, options: GlobalOptions, io: Io): Promise<void> {
  const name = nameOf(text)
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
async function path(options: GlobalOptions, io: Io): Promise<void> {
  const file = await settingsPath(io)
  const shown = io.stdout.isTerminal ? quoteIfNeeded(file) : file
  await writeAnswer(
    io,
    `${isJson(await chosenFormat(options.output, io)) ? toJson({ path: file }) : shown}\n`,
  )
}

type Entry = Awaited<ReturnType<typeof entryOf>>

async function entryOf(name: SettingName, settings: EffectiveSettings, io: Io) {
  const { value, source } = settings.source(name)
  const { saved } = settings.file
  const shown = name === 'store' && value !== undefined ? await shownStore(value, io, saved) : value
  return { name, value: shown, source, meaning: settingOf(name).meaning }
}
