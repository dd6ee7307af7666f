/*
 * Explains command lines that commander rejects.
 *
 * A hint is a fixed sentence. A command that often gets a wrong argument has a hint, and so has a
 * word that people know from other programs, such as `search`. The hint for a typing error names
 * the one command or option that was probably meant.
 *
 * An argument may be a token or a password in the wrong place, so an error repeats only words of
 * letters and dashes. An earlier version rebuilt the whole line that was probably meant. That took
 * 33 functions, and each argument had to be checked for secrets.
 */
import type { Command } from 'commander'
import { assertDefined, createUsageError, type PlantsError } from '../errors.js'
import { parseDecimalId } from '../plant/plant.js'
import { isPlainWord } from '../platform/escape.js'
import { setPasswordHint } from '../stores/address.js'
import { leaveOutHint } from './command.js'
import type { CommandLineError } from './command-line-error.js'
import { getCommandPath } from './command-names.js'
import { beginsWithLongDash, formatMissingIdHint, hyphensHint, storeNote } from './id-hints.js'

const searchFilterHint = 'To search: --search TEXT, in quotes if it has spaces'
const revokeHint = 'Give the id or the note of one token. To list them: plants tokens list'
const chooseStoreHint = 'To choose the store: --store ADDRESS'

/**
 * The hints for arguments that a command or its subcommands do not take. The key `list ID` is for
 * arguments that are all ids, as in `plants list 7`.
 */
const argumentHints: Readonly<Record<string, string>> = {
  create: 'Use --id and --name "Bleeding Heart", in quotes if it has spaces, or --file for JSON',
  list: `${searchFilterHint}. ${chooseStoreHint}`,
  'list ID': 'To show plants by id: plants get ID',
  count: `${searchFilterHint}. To count by a field: --by FIELD. ${chooseStoreHint}`,
  serve: 'To choose the store: --store PATH. To choose the port: --port NUMBER',
  doctor: chooseStoreHint,
  backup: chooseStoreHint,
  restore: chooseStoreHint,
  openapi: 'To write a file: plants openapi > openapi.json',
  'tokens create':
    'To give a note: --note TEXT, in quotes if it has spaces. To give rights: --allow create,read',
  'tokens revoke': revokeHint,
  auth: 'To choose the service: --store ADDRESS. The token is read from a prompt, or with --from-stdin',
}

const searchHint = 'To search: plants list --search TEXT'
const updateByImportHint = 'For plants that exist: --if-exists update'
const updateByIdHint = 'To change a plant that exists: plants update ID --name TEXT'
/** The hints for options with which other programs replace something that exists. */
const replaceHints: Readonly<Record<string, string>> = {
  create: updateByIdHint,
  'stores add': 'To replace a saved store: --replace',
}

/**
 * The hints for commands and options that other programs have. The list stays short, because a
 * wrong hint is worse than none. If a word has several hints, the first hint is used of which the
 * command has all options.
 */
const hintsForOtherTools: ReadonlyMap<string, string | readonly string[]> = new Map<
  string,
  string | readonly string[]
>([
  ['search', searchHint],
  ['find', searchHint],
  ['edit', 'To change a plant: plants update ID --name TEXT'],
  ['view', 'To show a plant: plants get ID'],
  ['remove', 'To delete plants: plants delete ID'],
  ['init', 'The first plants create makes the store. In PostgreSQL: plants stores init ADDRESS'],
  ['login', 'To save a token: plants auth login --store ADDRESS'],
  ['status', 'To check the store: plants doctor. For the token: plants auth status'],
  [
    '--json',
    [
      'For input in JSON: --format json. For output in JSON: --output json',
      'For JSON: --output json, or ndjson for one value per line',
    ],
  ],
  ['--csv', ['For input in CSV: --format csv', 'To choose the format: --output json']],
  ['--format', 'To choose the format: --output FORMAT, such as json'],
  ['--filter', 'To filter plants: --tag TEXT, --no-tag or --search TEXT'],
  ['--force', ['To skip the confirmation: --yes', updateByImportHint]],
  ['--debug', 'To log requests and responses: --verbose'],
  ['-n', 'To limit the number of plants: --limit NUMBER'],
  ['--offset', 'To list the plants after an id: --after ID'],
  ['--overwrite', [updateByImportHint, 'To skip the confirmation: --yes']],
  ['--upsert', updateByImportHint],
  ['--update', updateByImportHint],
  ['--out', 'To write a file: plants export FILE'],
])

const csvHint = 'For CSV: --output csv'
/** The other commands print no table in CSV. */
const csvHints: Readonly<Record<string, string>> = {
  create: csvHint,
  get: csvHint,
  list: csvHint,
  count: 'For CSV: --by FIELD --output csv',
  update: csvHint,
  delete: csvHint,
  export: csvHint,
}

const allByDefaultHint = 'Leave it out: without a filter, the command takes all plants'

/**
 * The hints for options that many people expect of these commands: `--id`, which only `create` has,
 * `--all`, and options of other commands. A hint that changes plants names the store twice.
 * Otherwise, the change could be made in the default store.
 */
const hintsForCommands: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map([
  [
    '--id',
    {
      get: 'To choose the plants: plants get ID',
      update:
        'To choose the plants: plants update ID. The id of a plant cannot be changed: ' +
        'create a plant with the new id, and delete the old one',
      delete: 'To choose the plants: plants delete ID',
      import:
        'For plants without ids: --by-name or --id-from N. ' +
        'To choose the column of the ids: --map id=COLUMN',
    },
  ],
  [
    '--name',
    {
      get: searchHint,
      list: searchFilterHint,
      count: searchFilterHint,
      delete: searchFilterHint,
      export: searchFilterHint,
      import: 'To choose the column of the names: --map name=COLUMN',
    },
  ],
  ['--search', { get: searchHint }],
  [
    '--json',
    { create: 'To read JSON: --file FILE, or from stdin. For output in JSON: --output json' },
  ],
  ['--force', replaceHints],
  ['--overwrite', replaceHints],
  ['--upsert', replaceHints],
  ['--update', replaceHints],
  [
    '--format',
    {
      openapi: 'Leave it out: openapi prints JSON only',
      count: 'For JSON: --output json. For CSV: --by FIELD --output csv',
    },
  ],
  ['--csv', csvHints],
  [
    '--out',
    { backup: 'Give the file without an option: plants backup FILE', restore: chooseStoreHint },
  ],
  ['--tag', { import: 'To choose the column of the tags: --map tag=COLUMN' }],
  ['--yes', { import: 'Leave it out: nothing is confirmed. To be asked nothing: --no-input' }],
  [
    '--all',
    {
      get: 'To show all plants: plants list',
      update:
        `To change all plants ${storeNote}: plants list --store STORE | ` +
        'plants update - --store STORE --tag TEXT',
      delete:
        `To delete all plants ${storeNote}: plants list --store STORE | ` +
        'plants delete - --store STORE --yes',
      list: allByDefaultHint,
      count: allByDefaultHint,
      export: allByDefaultHint,
    },
  ],
  [
    '--file',
    {
      import: 'To import a file: plants import FILE',
      export: 'To write a file: plants export FILE',
    },
  ],
  [
    '--columns',
    {
      export: 'An export always has the columns id, name and tag: remove a column from the file',
    },
  ],
  [
    '--delimiter',
    {
      export: 'For tabs instead of commas: --output tsv. For a workbook: plants export FILE.xlsx',
    },
  ],
])

/**
 * The hints for options with a secret. They are not accepted, because other users can see the
 * arguments of a process.
 */
const hintsForSecrets: ReadonlyMap<string, string> = new Map([
  [
    '--token',
    'Set PLANTS_TOKEN, or save one: plants auth login --store ADDRESS. For serve: PLANTS_SERVE_TOKEN',
  ],
  ['--password', setPasswordHint],
])

/**
 * Explains `plants --timeout list`, in which commander takes the command for the value of the
 * option, and then finds no command or a wrong one.
 *
 * @throws {PlantsError} `usage` if the value of an option is the name of a command
 */
export function assertNoSwallowedCommand(parent: Command, argv: readonly string[]): void {
  const names = parent.commands.flatMap((command) => [command.name(), ...command.aliases()])
  for (const option of parent.options) {
    const value = String(parent.getOptionValue(option.attributeName()))
    // In `--store=list`, nobody meant the command.
    if (names.includes(value) && argv.includes(value))
      throw createUsageError(
        `${option.long} needs a value, but the command ${value} follows`,
        'Write the value in front of the command',
      )
  }
}

/**
 * Converts the error of commander to an error for people. The codes of the errors are documented by
 * commander.
 */
export function explainCommandLineError({ command, code, message }: CommandLineError): PlantsError {
  const [word = ''] = command.args
  if (command.args.some(beginsWithLongDash))
    return createUsageError('An argument starts with a long dash', hyphensHint)
  if (code === 'commander.unknownCommand') return createUnknownCommandError(command, word)
  if (code === 'commander.excessArguments') return createExcessArgumentError(command)
  if (code === 'commander.unknownOption') {
    // Only the message of commander has the option, in quotes: "unknown option '--tokn=s3cret'".
    return createUnknownOptionError(command, message.slice(message.indexOf("'") + 1, -1))
  }
  if (code === 'commander.optionMissingArgument') {
    const [flag = ''] = /--[\w-]+/.exec(message) ?? []
    const choices = command.options.find(({ long }) => long === flag)?.argChoices
    const hint = choices ? `Give one of ${choices.join(', ')}` : formatUsageHint(command)
    return createUsageError(`${flag} needs a value`, hint)
  }
  if (code === 'commander.missingArgument') return createMissingArgumentError(command)
  const sentence = message.replace('error: ', '')
  return createUsageError(
    sentence.charAt(0).toUpperCase() + sentence.slice(1),
    code === 'commander.conflictingOption' ? leaveOutHint : formatUsageHint(command),
  )
}

export function createUnknownCommandError(parent: Command, word: string): PlantsError {
  const names = parent.commands.map((command) => command.name())
  const isSubcommand = parent.parent !== null
  const hint = isSubcommand ? undefined : findHintForOtherTool(word, [])
  return createUnknownWordError('command', word, hint ?? suggestName(word, names), parent)
}

function createUnknownOptionError(command: Command, text: string): PlantsError {
  // The value after `=` or a letter is left out, because it may be a secret.
  const option = text.replace(/^(--[^=]*|-.).*/s, '$1')
  const secretHint = hintsForSecrets.get(option)
  if (secretHint !== undefined)
    return createUsageError(
      `A ${option.slice(2)} is not accepted on the command line, where other users can see it`,
      secretHint,
    )
  const names = ['--help', ...command.options.map(({ long }) => long ?? '')]
  if (names.includes(option)) return createUsageError(`${option} takes no value`, 'Leave it out')
  if (/^-[a-z]{2}/i.test(text)) {
    const hint = `An option of several letters has two hyphens. ${formatHelpHint(command)}`
    return createUnknownWordError('option', option, hint, command)
  }
  const commandHint = hintsForCommands.get(option)?.[getCommandPath(command)]
  const hint = commandHint ?? suggestName(option, names) ?? findHintForOtherTool(option, names)
  return createUnknownWordError('option', option, hint, command)
}

/** @param options the long options of the command: a hint must not name any other one */
function findHintForOtherTool(word: string, options: readonly string[]): string | undefined {
  return [hintsForOtherTools.get(word) ?? []].flat().find((hint) => {
    const isAboutOtherCommand = hint.includes(': plants ')
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
  return createUsageError(
    `Unknown ${noun}${isPlainWord(word) ? ` ${word}` : ''}`,
    hint ?? formatHelpHint(command),
  )
}

function createExcessArgumentError(command: Command): PlantsError {
  const name = getCommandPath(command)
  const [group = ''] = name.split(' ')
  const areIds = command.args.every((word) => parseDecimalId(word) !== undefined)
  const hint =
    (areIds ? argumentHints[`${name} ID`] : undefined) ??
    argumentHints[name] ??
    argumentHints[group] ??
    formatUsageHint(command)
  return createUsageError(`${name} was given an argument that it does not take`, hint)
}

function formatUsageHint(command: Command): string {
  const usage = `${getCommandPath(command)} ${command.usage()}`.trim()
  return `Usage: plants ${usage}. ${formatHelpHint(command)}`
}

/**
 * Explains a line that lacks an argument. A wrong argument is explained first: in
 * `config set password`, the setting is wrong, and its value is missing.
 *
 * @throws {PlantsError} `usage` for an argument that is wrong
 */
function createMissingArgumentError(command: Command): PlantsError {
  const { args, registeredArguments } = command
  for (const [index, word] of args.entries())
    registeredArguments[index]?.parseArg?.(word, undefined)
  const missing = assertDefined(registeredArguments[args.length])
  const name = missing.name()
  if (name === 'token')
    return createUsageError('The id or note of the token is missing', revokeHint)
  const choiceHint = missing.argChoices ? `Give one of ${missing.argChoices.join(', ')}. ` : ''
  const hint =
    name === 'id'
      ? formatMissingIdHint(getCommandPath(command))
      : `${choiceHint}${formatUsageHint(command)}`
  return createUsageError(`The ${name} is missing`, hint)
}

function formatHelpHint(command: Command): string {
  return `See: plants ${`${getCommandPath(command)} --help`.trim()}`
}

/**
 * Suggests the name that was probably meant. The word may have one typing error, or two errors if
 * it has six letters or more. If several names are equally similar, none is suggested. A word of
 * three letters resembles many names, so its first letter must be right: `lst` is probably `list`,
 * but `set` is not `get`.
 */
function suggestName(word: string, names: readonly string[]): string | undefined {
  const typedWord = word.toLowerCase()
  const { length } = typedWord.replace(/^--/, '')
  if (length < 3) return undefined
  const start = length === 3 ? typedWord.slice(0, -2) : ''
  for (const maxEdits of length < 6 ? [0, 1] : [0, 1, 2]) {
    const similar = names.filter(
      (name) => name.startsWith(start) && isWithinEdits(typedWord, name, maxEdits),
    )
    if (similar.length > 0) return similar.length === 1 ? `Did you mean ${similar[0]}?` : undefined
  }
  return undefined
}

/**
 * Whether a name and a typed word differ by at most `maxEdits` typing errors, which is the optimal
 * string alignment distance. A typing error is an additional, missing or wrong letter, or two
 * letters that are exchanged. The function compares the first letters, and calls itself with the
 * rest of both words.
 */
function isWithinEdits(typedWord: string, name: string, maxEdits: number): boolean {
  if (typedWord === name) return true
  if (maxEdits === 0 || Math.abs(typedWord.length - name.length) > maxEdits) return false
  if (typedWord[0] === name[0]) return isWithinEdits(typedWord.slice(1), name.slice(1), maxEdits)
  const isExchanged = typedWord[0] === name[1] && typedWord[1] === name[0]
  return (
    isWithinEdits(typedWord.slice(1), name, maxEdits - 1) ||
    isWithinEdits(typedWord, name.slice(1), maxEdits - 1) ||
    isWithinEdits(typedWord.slice(1), name.slice(1), maxEdits - 1) ||
    (isExchanged && isWithinEdits(typedWord.slice(2), name.slice(2), maxEdits - 1))
  )
}
