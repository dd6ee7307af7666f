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
import { formatHelpHint, getCommandPath, isNamed } from './command-names.js'
import { findFamiliarHint } from './familiar-words.js'
import { quotesHint } from './ids.js'

/** Options with a secret are not accepted: other users can see the arguments of a process. */
const secretOptions: ReadonlyMap<string, string> = new Map([
  ['--token', 'Set PLANTS_TOKEN, or save one: plants auth login --store ADDRESS'],
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

const fileHint = 'To read a list: plants import FILE, or a store: plants list --store FILE'

/**
 * Converts the error of commander to an error for people. The codes of the errors are documented by
 * commander.
 */
export function explainCommandLineError({ command, code, message }: CommandLineError): PlantsError {
  const path = getCommandPath(command)
  const usageHint = formatUsageHint(command as PlantsCommand, path)
  const sentence = message.replace(/^error: /, '')
  switch (code) {
    case 'commander.unknownCommand': {
      const [word = ''] = command.args
      return createUnknownCommandError(word, command, /[./\\]/.test(word) ? fileHint : undefined)
    }
    case 'commander.unknownOption':
      // The sentence is "unknown option '--tga=shade'". The value may be a secret.
      return createUnknownOptionError(
        sentence.replace(/^.*?'(--[^=]*|-.).*/s, '$1').replace(/'$/, ''),
        command as PlantsCommand,
      )
    case 'commander.excessArguments':
      return createUsageError(
        `${path} ${describeArguments(command)}`,
        findSurplusHint(command as PlantsCommand) ?? usageHint,
      )
    case 'commander.missingArgument':
      return createUsageError(`${path} needs ${listRequiredArguments(command)}`, usageHint)
    case 'commander.optionMissingArgument':
      return createUsageError(`${/--[\w-]+/.exec(sentence)?.[0]} needs a value`, usageHint)
    default:
      // Two options exclude each other: "option '--socket <path>' cannot be used with option …".
      return createUsageError(
        sentence.replace(/option '(?:-\w, )?(--[\w-]+)(?: [^']*)?'/g, '$1'),
        leaveOutHint,
      )
  }
}

/** Says which argument a command does not take, or how many it takes. */
function describeArguments(command: Command): string {
  const { registeredArguments } = command
  const maxArguments = registeredArguments.length
  const word = findSurplusWord(command)
  if (isPlainWord(word)) return `does not take the argument ${word}`
  if (registeredArguments[0]?.name() === '-') return 'takes no plant as an argument'
  if (maxArguments === 0) return 'takes no arguments'
  return maxArguments === 1 ? 'takes one argument' : `takes at most ${maxArguments} arguments`
}

/** A command may also reject an argument that is not surplus: `create` takes only `-`. */
function findSurplusWord({ args, registeredArguments }: Command): string {
  return args[registeredArguments.length] ?? args[0] ?? ''
}

/** Lists the arguments that a command requires, such as "a name and an address". */
function listRequiredArguments({ registeredArguments }: Command): string {
  const names = registeredArguments.filter(({ required }) => required).map((arg) => arg.name())
  return names.map((name) => `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`).join(' and ')
}

function findSurplusHint(command: PlantsCommand): string | undefined {
  const { argv } = command
  const word = findSurplusWord(command)
  const usesStore = findOption(command, '--store')?.hidden === false
  if (usesStore && /\.(?:db|sqlite3?)$/i.test(word)) return 'To use that store: --store FILE'
  const flag = argv[argv.indexOf(word) - 2] ?? ''
  const [, valueName = ''] = /<(\w+)>/.exec(findOption(command, flag)?.flags ?? '') ?? []
  return continuationHints.get(valueName)
}

/** Formats the usage of a command, with the example that has most in common with the line. */
function formatUsageHint(command: PlantsCommand, path: string): string {
  const usage = `Usage: plants ${`${path} ${command.usage()}`.trim()}`
  // `-n` is also found in `--name`, and `:` in a plant as JSON, of which bash removes the braces.
  const marks = command.argv.flatMap((word) => /^--?[a-z-]+|:/.exec(word) ?? [])
  const countMarks = (line: string) => marks.filter((mark) => line.includes(mark)).length
  const [usageWithExample] = command.examples
    .filter((line) => line.includes(`plants ${path}`))
    .toSorted((left, right) => countMarks(right) - countMarks(left))
    .map((line) => `${usage}, as in: ${line}`)
    .filter((hint) => hint.length <= 98) // A line has 100 columns.
  return usageWithExample ?? usage
}

function createUnknownOptionError(option: string, command: PlantsCommand): PlantsError {
  const secretHint = secretOptions.get(option)
  if (secretHint !== undefined)
    return createUsageError(
      `A ${option.slice(2)} is not accepted on the command line, where other users can see it`,
      secretHint,
    )
  if (findOption(command, option) || option === '--help')
    return createUsageError(`${option} takes no value`, `Write only: ${option}`)
  const { argv, commands } = command
  const laterWords = argv.slice(argv.findIndex((word) => word.startsWith(option)))
  const owner = commands.find(
    (candidate) =>
      laterWords.some((word) => isNamed(candidate, word)) && findOption(candidate, option),
  )
  if (owner)
    return createUsageError(
      `${option} stands before the command to which it belongs`,
      `Write it behind the command: plants ${getCommandPath(owner)} ${option}`,
    )
  const path = getCommandPath(command)
  const names = [...command.options.map(({ long }) => long ?? ''), '--help']
  const hint = findFamiliarHint(option, path) ?? suggestNames(option, names)
  return createUnknownWordError('option', option, hint ?? formatHelpHint(path))
}

function findOption({ options }: Command, flag: string): Option | undefined {
  return options.find(({ long, short }) => long === flag || short === flag)
}

/**
 * Creates the error of a word that is no command.
 *
 * @param programHint what to do if the word is not near a command of the program
 * @param noun what the word could be
 */
export function createUnknownCommandError(
  word: string,
  command: Command,
  programHint = formatHelpHint(''),
  noun = 'command',
): PlantsError {
  const path = getCommandPath(command)
  const names = command.commands.flatMap((subcommand) => [
    subcommand.name(),
    ...subcommand.aliases(),
  ])
  const otherHint =
    path === '' ? programHint : `plants ${path} has the commands ${names.join(', ')}`
  const hint = findFamiliarHint(word, path) ?? suggestNames(word, names) ?? otherHint
  return createUnknownWordError(noun, word, hint)
}

function createUnknownWordError(noun: string, word: string, hint: string): PlantsError {
  return createUsageError(`Unknown ${noun}${isPlainWord(word) ? ` ${word}` : ''}`, hint)
}

/**
 * Suggests names that begin like a mistyped word, options with which it begins, as in `--sort-by`,
 * or names that differ from it by few letters. Commander would also suggest `stores` for `status`.
 */
function suggestNames(typedWord: string, names: readonly string[]): string | undefined {
  const word = typedWord.toLowerCase()
  const beginning = names.filter(
    (name) =>
      (/^(?:--)?\w{2}/.test(word) && name.startsWith(word)) ||
      (/^--\w{3}/.test(name) && word.startsWith(name)),
  )
  const similarNames =
    beginning.length > 0 ? beginning : names.filter((name) => isSimilar(word, name))
  if (similarNames.length === 0) return undefined
  return `Did you mean ${similarNames.length > 1 ? 'one of ' : ''}${similarNames.join(', ')}?`
}

/** Whether words of three or more letters differ by one letter, or of six or more by two. */
function isSimilar(word: string, name: string): boolean {
  const [letters, otherLetters] = [word.replace(/^--/, ''), name.replace(/^--/, '')]
  const maxEdits = Math.min(2, Math.floor(Math.max(letters.length, otherLetters.length) / 3))
  return letters[0] === otherLetters[0] && differsByAtMost(maxEdits, letters, otherLetters)
}

/** Counts letters that are wrong, surplus, missing or swapped. */
function differsByAtMost(maxEdits: number, word: string, name: string): boolean {
  if (word === name) return true
  if (word[0] === name[0]) return differsByAtMost(maxEdits, word.slice(1), name.slice(1))
  if (maxEdits === 0) return false
  const isSwapped = word[0] === name[1] && word[1] === name[0]
  return [[1, 1], [1, 0], [0, 1], ...(isSwapped ? [[2, 2]] : [])].some(([wordStart, nameStart]) =>
    differsByAtMost(maxEdits - 1, word.slice(wordStart), name.slice(nameStart)),
  )
}
