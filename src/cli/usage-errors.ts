/*
 * Explains command lines that commander rejects.
 *
 * A hint is a fixed sentence. There is one for each command that is often given a wrong argument,
 * and one for each word that comes from another program, such as `search`. For a typing error, it
 * names the one command or option that was probably meant. No hint is ever executed.
 *
 * A part of the line may be a token or a password in the wrong place, so an error repeats nothing
 * but a word of letters and dashes. An earlier version rebuilt the line that was meant, with all of
 * its arguments. That took 33 functions, and each word had to be checked for secrets.
 */
import type { Command } from 'commander'
import { type PlantsError, usageError } from '../errors.js'
import { parseDecimalId } from '../plant/plant.js'
import { isPlainWord } from '../platform/escape.js'
import { passwordFile } from '../stores/address.js'
import { leaveOutHint } from './command.js'
import { getCommandPath } from './command-names.js'
import { beginsWithLongDash, hyphensHint } from './options.js'
import type { RejectedLine } from './rejected-line.js'

const searchFilterHint = 'To search: --search TEXT, in quotes if it has spaces'

/**
 * What to do instead of an argument that a command, or a subcommand of it, does not take. The key
 * `list ID` is for arguments that are all ids, as in `plants list 7`.
 */
const argumentHints: Readonly<Record<string, string>> = {
  create: 'Use --id and --name "Bleeding Heart", in quotes if it has spaces, or --file for JSON',
  list: searchFilterHint,
  'list ID': 'To show plants by id: plants get ID',
  count: `${searchFilterHint}. To count by a field: --by FIELD`,
  serve: 'To choose the store: --store PATH. To choose the port: --port NUMBER',
  doctor: 'To choose the store: --store ADDRESS',
  tokens: 'To give a note: --note TEXT, in quotes if it has spaces',
  auth: 'To choose the service: --store ADDRESS. The token is read from a prompt, or with --from-stdin',
}

const searchHint = 'To search: plants list --search TEXT'
const changePlants = 'For plants that exist: --if-exists update'
const changePlantsByImport = 'For plants that exist: plants import --if-exists update'

/**
 * What to do instead of a command or an option that other programs have. The list stays short,
 * because a wrong hint is worse than none. Of several hints, the first one applies whose options
 * the command has.
 */
const hintsForOtherTools: ReadonlyMap<string, string | readonly string[]> = new Map<
  string,
  string | readonly string[]
>([
  ['search', searchHint],
  ['find', searchHint],
  ['edit', 'To change a plant: plants update ID'],
  ['view', 'To show a plant: plants get ID'],
  ['remove', 'To delete plants: plants delete ID'],
  ['login', 'To save a token: plants auth login --store ADDRESS'],
  ['status', 'To check the store: plants doctor. For the token: plants auth status'],
  ['start', 'To serve a store: plants serve'],
  ['--json', 'For JSON: --output json, or ndjson for one value per line'],
  ['--csv', 'For CSV: --output csv'],
  ['--format', 'To choose the format: --output FORMAT'],
  ['--filter', 'To filter plants: --tag TEXT, --no-tag or --search TEXT'],
  ['--force', ['To skip the confirmation: --yes', changePlants]],
  ['--debug', 'To log requests and responses: --verbose'],
  ['-n', 'To limit the number of plants: --limit NUMBER'],
  ['--offset', 'To list the plants after an id: --after ID'],
  ['--overwrite', [changePlants, 'To skip the confirmation: --yes', changePlantsByImport]],
  ['--upsert', [changePlants, changePlantsByImport]],
  ['--update', [changePlants, changePlantsByImport]],
  ['--out', 'To write a file: plants export FILE'],
])

/**
 * What to do instead of the option `--id` of `create`, which many people expect of these commands,
 * too.
 */
const idHints: Readonly<Record<string, string>> = {
  get: 'To choose the plants: plants get ID',
  update:
    'To choose the plants: plants update ID. The id of a plant cannot be changed: ' +
    'create a plant with the new id, and delete the old one',
  delete: 'To choose the plants: plants delete ID',
}

/**
 * What to do instead of an option with a secret, which other users would see in a list of
 * processes.
 */
const hintsForSecrets: ReadonlyMap<string, string> = new Map([
  [
    '--token',
    'Set PLANTS_TOKEN, or save one with: plants auth login. For serve: PLANTS_SERVE_TOKEN',
  ],
  ['--password', `Set PGPASSWORD, or write it to ${passwordFile}`],
])

/**
 * Makes an error for people of what commander throws. Its codes are part of commander's interface.
 */
export function explainRejectedLine({ command, code, message }: RejectedLine): PlantsError {
  const [word = ''] = command.args
  if (command.args.some(beginsWithLongDash))
    return usageError('An argument starts with a long dash', hyphensHint)
  if (code === 'commander.unknownCommand') return createUnknownCommandError(command, word)
  if (code === 'commander.excessArguments') return createExcessError(command)
  if (code === 'commander.unknownOption') {
    // Only the sentence of commander has the option, in quotes: "unknown option '--tokn=s3cret'".
    // The value that is joined to it is left out, because it may be a secret.
    const quotedOption = message.slice(message.indexOf("'") + 1, -1)
    return createUnknownOptionError(command, quotedOption.replace(/^(--[^=]*|-.).*/s, '$1'))
  }
  if (code === 'commander.optionMissingArgument') {
    const [flag = ''] = /--[\w-]+/.exec(message) ?? []
    return usageError(`${flag} needs a value`, formatUsageHint(command))
  }
  const sentence = message.replace('error: ', '')
  const hint = code === 'commander.conflictingOption' ? leaveOutHint : formatUsageHint(command)
  return usageError(sentence.charAt(0).toUpperCase() + sentence.slice(1), hint)
}

export function createUnknownCommandError(parent: Command, word: string): PlantsError {
  const names = parent.commands.map((command) => command.name())
  const isSubcommand = parent.parent !== null
  const hint = isSubcommand ? undefined : findHintForOtherTool(word, [])
  return createUnknownWordError('command', word, hint ?? suggestName(word, names), parent)
}

function createUnknownOptionError(command: Command, option: string): PlantsError {
  const secretHint = hintsForSecrets.get(option)
  if (secretHint !== undefined)
    return usageError(
      `A ${option.slice(2)} is not accepted on the command line, where other users can see it`,
      secretHint,
    )
  const names = ['--help', ...command.options.map(({ long }) => long ?? '')]
  if (names.includes(option)) return usageError(`${option} takes no value`, 'Leave it out')
  const idHint = option === '--id' ? idHints[getCommandPath(command)] : undefined
  const hint = idHint ?? suggestName(option, names) ?? findHintForOtherTool(option, names)
  return createUnknownWordError('option', option, hint, command)
}

/** @param options the long options of the command: a hint must not name any other one */
function findHintForOtherTool(word: string, options: readonly string[]): string | undefined {
  return [hintsForOtherTools.get(word) ?? []].flat().find((hint) => {
    const isAboutOtherCommand = hint.includes('plants ')
    const namedOptions = hint.match(/--[a-z-]+/g) ?? []
    return isAboutOtherCommand || namedOptions.every((option) => options.includes(option))
  })
}

function createUnknownWordError(
  noun: 'command' | 'option',
  word: string,
  hint: string | undefined,
  command: Command,
) {
  return usageError(
    `Unknown ${noun}${isPlainWord(word) ? ` ${word}` : ''}`,
    hint ?? formatHelpHint(command),
  )
}

function createExcessError(command: Command): PlantsError {
  const name = getCommandPath(command)
  const [group = ''] = name.split(' ')
  const areIds = command.args.every((word) => parseDecimalId(word) !== undefined)
  const hint =
    (areIds ? argumentHints[`${name} ID`] : undefined) ??
    argumentHints[group] ??
    formatUsageHint(command)
  return usageError(`${name} was given an argument that it does not take`, hint)
}

function formatUsageHint(command: Command): string {
  const usage = `${getCommandPath(command)} ${command.usage()}`.trim()
  return `Usage: plants ${usage}. ${formatHelpHint(command)}`
}

function formatHelpHint(command: Command): string {
  return `See: plants ${`${getCommandPath(command)} --help`.trim()}`
}

/**
 * Suggests the name that differs least, if it is the only one: by one letter, or by two if the word
 * has six letters or more. A word of three letters resembles many names, so it must begin like the
 * name: `lst` is probably `list`, but `set` is not `get`.
 */
function suggestName(word: string, names: readonly string[]): string | undefined {
  const typed = word.toLowerCase()
  const { length } = typed.replace(/^--/, '')
  if (length < 3) return undefined
  const start = length === 3 ? typed.slice(0, -2) : ''
  for (const maxEdits of length < 6 ? [0, 1] : [0, 1, 2]) {
    const similar = names.filter(
      (name) => name.startsWith(start) && isWithinEdits(typed, name, maxEdits),
    )
    if (similar.length > 0) return similar.length === 1 ? `Did you mean ${similar[0]}?` : undefined
  }
  return undefined
}

/**
 * Whether a name becomes what was typed by at most `maxEdits` typing errors: a letter that is too
 * many, missing, wrong, or exchanged with the next one. This is the optimal string alignment
 * distance. Both words are compared from their first letters on, and each call removes some.
 */
function isWithinEdits(typed: string, name: string, maxEdits: number): boolean {
  if (typed === name) return true
  if (maxEdits === 0 || Math.abs(typed.length - name.length) > maxEdits) return false
  if (typed[0] === name[0]) return isWithinEdits(typed.slice(1), name.slice(1), maxEdits)
  const isExchanged = typed[0] === name[1] && typed[1] === name[0]
  return (
    isWithinEdits(typed.slice(1), name, maxEdits - 1) ||
    isWithinEdits(typed, name.slice(1), maxEdits - 1) ||
    isWithinEdits(typed.slice(1), name.slice(1), maxEdits - 1) ||
    (isExchanged && isWithinEdits(typed.slice(2), name.slice(2), maxEdits - 1))
  )
}
