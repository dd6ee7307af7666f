/*
 * Explains command lines that commander rejects, with one hint for each kind of error. An argument
 * may be a token or a password in the wrong place, so an error repeats only a word of letters and
 * dashes.
 */
import type { Command, Option } from 'commander'
import { createUsageError, type PlantsError } from '../errors.js'
import { isPlainWord } from '../platform/escape.js'
import { setPasswordHint } from '../stores/address.js'
import { type CommandLineError, leaveOutHint, type PlantsCommand } from './command.js'
import { formatHelpHint, getCommandPath } from './command-names.js'
import { findFamiliarHint } from './familiar-words.js'
import { quotesHint } from './ids.js'

/** Options with a secret, of all commands or of one. Other users can see the arguments of a process. */
const secretOptions: ReadonlyMap<string, string> = new Map([
  ['--token', 'Set PLANTS_TOKEN, or save one: plants auth login --store ADDRESS'],
  ['serve --token', 'To create a token for clients: plants tokens create --store FILE'],
  ['--password', setPasswordHint],
])

/**
 * What to do about a surplus word that was meant to continue the value of the option before it, by
 * the name of this value in help.
 */
const continuationHints: ReadonlyMap<string, string> = new Map([
  ['text', quotesHint],
  ['rights', 'Separate the rights by commas, as in: --allow create,read'],
])

/**
 * Converts the error of commander to an error for people. The codes of the errors are documented by
 * commander.
 */
export function explainCommandLineError({ command, code, message }: CommandLineError): PlantsError {
  const path = getCommandPath(command)
  const usageHint = formatUsageHint(command, path)
  switch (code) {
    case 'commander.unknownCommand':
      return createUnknownCommandError(command.args[0] ?? '', command)
    case 'commander.unknownOption': {
      // The message is "error: unknown option '--tga=shade'". The value may be a secret.
      const [, option = ''] = /'(--[^=]*(?==|'$)|-.)/s.exec(message) ?? []
      return createUnknownOptionError(option, command)
    }
    case 'commander.excessArguments':
      return createExcessArgumentError(command, usageHint)
    case 'commander.missingArgument':
      return createUsageError(`${path} needs ${listArguments(command)}`, usageHint)
    case 'commander.optionMissingArgument':
      return createUsageError(`${/--[\w-]+/.exec(message)?.[0]} needs a value`, usageHint)
    default:
      // The message is "error: option '--socket <path>' cannot be used with option '--host <host>'".
      return createUsageError(
        message.replace(/^error: |option '(?:-\w, )?(--[\w-]+)(?: [^']*)?'/g, '$1'),
        leaveOutHint,
      )
  }
}

/** Formats the usage of a command, with an example that has something in common with the line. */
function formatUsageHint(command: PlantsCommand, path: string): string {
  const usage = `Usage: plants ${`${path} ${command.usage()}`.trim()}`
  // With the words between them, a usage and an example fit into 100 columns.
  const examples = command.examples.filter(
    (line) => line.includes(`plants ${path}`) && usage.length + line.length <= 89,
  )
  // `-n` is also found in `--name`, and `:` in a plant as JSON, of which bash removes the braces.
  const marks = command.argv.flatMap((word) => /^--?[a-z-]+|:/.exec(word) ?? [])
  const example = examples.find((line) => marks.some((mark) => line.includes(mark))) ?? examples[0]
  return example === undefined ? usage : `${usage}, as in: ${example}`
}

function createExcessArgumentError(command: PlantsCommand, usageHint: string): PlantsError {
  const { args, argv } = command
  const maxArguments = command.registeredArguments.length
  // A command may also reject an argument that is not surplus: `create` takes only `-`.
  const index = args.length > maxArguments ? maxArguments : 0
  const word = args[index] ?? ''
  const subject = isPlainWord(word) ? `the argument ${word}` : `argument number ${index + 1}`
  const usesStore = findOption(command, '--store')?.hidden === false
  const namesStore = usesStore && args.some((argument) => /\.(?:db|sqlite3?)$/i.test(argument))
  const option = findOption(command, argv[argv.indexOf(word) - 2] ?? '')
  const [, valueName = ''] = /<(\w+)>/.exec(option?.flags ?? '') ?? []
  const argumentHint = namesStore ? 'To use that store: --store FILE' : undefined
  const hint = argumentHint ?? continuationHints.get(valueName) ?? usageHint
  return createUsageError(`${getCommandPath(command)} does not take ${subject}`, hint)
}

/** Lists the arguments of a command, such as "a name and an address". */
function listArguments({ registeredArguments }: Command): string {
  const names = registeredArguments.map((argument) => argument.name())
  return names.map((name) => `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`).join(' and ')
}

function createUnknownOptionError(option: string, command: Command): PlantsError {
  const path = getCommandPath(command)
  const secretHint = secretOptions.get(`${path} ${option}`) ?? secretOptions.get(option)
  if (secretHint !== undefined)
    return createUsageError(
      `A ${option.slice(2)} is not accepted on the command line, where other users can see it`,
      secretHint,
    )
  if (findOption(command, option) || option === '--help')
    return createUsageError(`${option} takes no value`, `Write only: ${option}`)
  // Of the commands of the program, only those that the line mentions have their options.
  const owner = command.commands.find((subcommand) => findOption(subcommand, option))
  if (owner)
    return createUsageError(
      `${option} stands before the command to which it belongs`,
      `Write it behind the command: plants ${getCommandPath(owner)} ${option}`,
    )
  const names = [...command.options.map(({ long }) => long ?? ''), '--help']
  const hint = findFamiliarHint(option, path) ?? suggestNames(option, names)
  return createUnknownWordError('option', option, hint ?? formatHelpHint(path))
}

function findOption({ options }: Command, flag: string): Option | undefined {
  return options.find(({ long, short }) => long === flag || short === flag)
}

/** Creates the error of a word that is no command. */
export function createUnknownCommandError(word: string, command: Command): PlantsError {
  const path = getCommandPath(command)
  const names = command.commands.flatMap((subcommand) => [
    subcommand.name(),
    ...subcommand.aliases(),
  ])
  const listHint =
    path === '' || names.length === 0
      ? 'See: plants help'
      : `plants ${path} has the commands ${names.join(', ')}`
  const hint = findFamiliarHint(word, path) ?? suggestNames(word, names) ?? listHint
  return createUnknownWordError('command', word, hint)
}

function createUnknownWordError(noun: string, word: string, hint: string): PlantsError {
  return createUsageError(`Unknown ${noun}${isPlainWord(word) ? ` ${word}` : ''}`, hint)
}

/**
 * Suggests names that begin like a mistyped word, options with which it begins, as in `--sort-by`,
 * or similar names. Commander would also suggest `stores` for `status`.
 */
function suggestNames(typedWord: string, names: readonly string[]): string | undefined {
  const word = typedWord.toLowerCase()
  const beginnings = names.filter(
    (name) => name.startsWith(word) || (/^--\w{3}/.test(name) && word.startsWith(name)),
  )
  const nearNames =
    beginnings.length > 0 ? beginnings : names.filter((name) => isSimilar(word, name))
  if (nearNames.length === 0 || !/\w\w/.test(word)) return undefined
  return `Did you mean ${nearNames.length > 1 ? 'one of ' : ''}${nearNames.join(', ')}?`
}

/** Whether words with the same first letter have the same letters, but for one in four. */
function isSimilar(word: string, name: string): boolean {
  const [start = ''] = /^-*./.exec(word) ?? []
  const missingLetters = [...word].reduce((letters, letter) => letters.replace(letter, ''), name)
  const length = Math.max(word.length, name.length)
  const differences = missingLetters.length + length - name.length
  return name.startsWith(start) && differences <= Math.min(2, length / 4)
}
