import { type EffectiveSettings, formatStore } from '../../config/resolve.js'
import {
  getDefault,
  getSetting,
  listSettings,
  type SettingName,
  settingNames,
} from '../../config/setting-table.js'
import { isStoreName } from '../../config/settings-schema.js'
import { PlantsError } from '../../errors.js'
import { quoteIfNeeded } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import { findKind } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { readContext, type SettingsContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { createTablePrinter, printOutcome, printValue } from '../print.js'

export function define(command: PlantsCommand): void {
  const savedNames = listSettings('user')
  command.description(
    'Read and change the settings for all stores. For one store: plants stores add --replace.',
  )
  command
    .command('get')
    .description('Print the effective value of a setting.')
    .addExamples('plants config get timeout')
    .choiceArgument('setting', 'name of the setting', settingNames)
    .handler(get)
  command
    .command('set')
    .description('Save a setting.')
    .addExamples('plants config set timeout 1m')
    .choiceArgument('setting', 'name of the setting', savedNames)
    .argument('<value>', 'the new value')
    .handler(saveSetting)
  command
    .command('unset')
    .description('Remove a saved setting, so that its default applies.')
    .addExamples('plants config unset timeout')
    .choiceArgument('setting', 'name of the setting', savedNames)
    .handler(removeSetting)
  command
    .command('list')
    .description('List the settings with their values, sources and descriptions.')
    .addExamples('plants config list')
    .handler(list)
}

async function get(options: GlobalOptions, io: Io, name: SettingName): Promise<void> {
  const context = await readContext(options, io)
  const entry = await findEntry(name, context.settings, io)
  const hint = `The default applies: ${getDefault(name)}`
  if (entry.value === undefined) throw new PlantsError('notFound', `${name} is not set`, { hint })
  await printValue(entry.value, entry, context)
}

/** Saves a setting for all stores. `stores use` calls this for the setting `store`. */
export async function saveSetting(
  options: GlobalOptions,
  io: Io,
  name: SettingName,
  text: string,
): Promise<void> {
  const context = await readContext(options, io, { ignoresUserSettings: true })
  const { settings } = context
  const { changeSettings, parseSavedValue } = await import('../../config/change-settings.js')
  const isStore = name === 'store'
  const savedValue = isStore
    ? await formatSavedStore(text, context)
    : await parseSavedValue(name, name, text, io)
  await changeSettings(io, context.settings.timeoutMs, (savedSettings) =>
    savedSettings.set(name, savedValue),
  )
  const { source, origin } = settings.findSource(name)
  if (source === 'variable')
    await context.reporter.warn(`${origin} is still set and takes precedence`)
  const value = isStore
    ? await formatStore(String(savedValue), io, settings.file.savedSettings)
    : String(savedValue)
  await printOutcome({ name, value }, `Set ${name} to ${quoteIfNeeded(value)}`, context)
}

/** Formats the default store as it is saved: a name, or an address with an absolute path. */
async function formatSavedStore(
  text: string,
  { settings, reporter }: SettingsContext,
): Promise<string> {
  const address = await settings.findAddress({
    value: text,
    origin: 'The argument',
    source: 'flag',
  })
  const { warnOfExposure } = await import('../store-access.js')
  await warnOfExposure(address, reporter)
  if (text === 'local' || isStoreName(text)) return text
  return findKind(address).format(address)
}

async function removeSetting(options: GlobalOptions, io: Io, name: SettingName): Promise<void> {
  const context = await readContext(options, io, { ignoresUserSettings: true })
  const { changeSettings } = await import('../../config/change-settings.js')
  const isRemoved = await changeSettings(io, context.settings.timeoutMs, (savedSettings) => {
    const isSaved = savedSettings.has(name)
    if (isSaved) savedSettings.delete(name)
    return isSaved
  })
  const sentence = isRemoved ? `Removed the setting ${name}` : `The setting ${name} was not saved`
  await printOutcome({ name, removed: isRemoved }, sentence, context)
}

async function list(options: GlobalOptions, io: Io): Promise<void> {
  const context = await readContext(options, io)
  const entries = await Promise.all(
    settingNames.map((name) => findEntry(name, context.settings, io)),
  )
  const titles = ['NAME', 'VALUE', 'SOURCE', 'DESCRIPTION']
  const formatCells = ({
    name,
    value,
    source,
    description,
  }: Awaited<ReturnType<typeof findEntry>>) => {
    const valueCell = value === undefined ? '-' : quoteIfNeeded(value)
    return [name, valueCell, source, description]
  }
  const printer = await createTablePrinter(titles, formatCells, context)
  await printer.printAll([entries])
}

/** Finds the fields of a setting that are printed. An address is printed without its password. */
async function findEntry(name: SettingName, settings: EffectiveSettings, io: Io) {
  const { value, source } = settings.findSource(name)
  const { savedSettings } = settings.file
  const printedValue =
    name === 'store' && value !== undefined ? await formatStore(value, io, savedSettings) : value
  return { name, value: printedValue, source, description: getSetting(name).description }
}
