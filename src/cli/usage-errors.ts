/*
 * Explains command lines that commander rejects, with one hint for each kind of error. commander
 * suggests the name that was probably meant. An argument may be a token or a password in the wrong
 * place, so an error repeats only a word of letters and dashes.
 */
import type { Command } from 'commander'
import { assertDefined, createUsageError, type PlantsError } from '../errors.js'
import { isPlainWord } from '../platform/escape.js'
import { setPasswordHint } from '../stores/address.js'
import { type CommandLineError, leaveOutHint, type PlantsCommand } from './command.js'
import { formatHelpHint, getCommandPath } from './command-names.js'

const columnsHint = 'To name the columns: --map id=COLUMN,name=COLUMN,tag=COLUMN'

/**
 * Hints for commands and options that other programs have, at most 16. One with the path of a
 * command is for this command, and any other is true for all.
 */
const familiarWords: ReadonlyMap<string, string> = new Map([
  ['search', 'To search: plants list --search TEXT'],
  ['edit', 'To change a plant: plants update ID --name TEXT'],
  ['view', 'To show a plant: plants get ID'],
  ['remove', 'To delete plants: plants delete ID'],
  ['login', 'To save a token: plants auth login --store ADDRESS'],
  ['--json', 'For output in JSON: --output json'],
  ['--format', 'For another format: --output FORMAT, or for a file, the end of its name'],
  ['--force', 'To be asked nothing: --yes, or where there is none, --no-input'],
  ['--update', 'To change plants that exist: plants import FILE --if-exists update'],
  ['--no-header', 'To name the columns of such a table: plants import FILE --columns id,name,tag'],
  ['--file', 'Files are arguments, as in: plants import plants.csv'],
  ['--id', 'Ids are arguments, as in: plants get 7 8'],
  ['import --id', columnsHint],
  ['import --name', columnsHint],
  ['tokens create --name', 'To name a token: plants tokens create --note TEXT'],
  ['-n', 'For the first plants only: plants list --limit 10'],
])

/** Options with a secret are not accepted: other users can see the arguments of a process. */
const secretOptions: ReadonlyMap<string, string> = new Map([
  ['--token', 'Set PLANTS_TOKEN, or save one: plants auth login --store ADDRESS'],
  ['--password', setPasswordHint],
])

/**
 * Converts the error of commander to an error for people. The codes of the errors are documented by
 * commander.
 */
export function explainCommandLineError({ command, code, message }: CommandLineError): PlantsError {
  const path = getCommandPath(command)
  const usageHint = formatUsageHint(command as PlantsCommand, path)
  const [sentence, suggestion] = splitMessage(message)
  const { registeredArguments, args } = command
  switch (code) {
    case 'commander.unknownCommand':
      return createUnknownWordError('command', args[0] ?? '', command, suggestion)
    case 'commander.unknownOption':
      return createUnknownOptionError(command, sentence, suggestion)
    case 'commander.excessArguments':
      return createUsageError(`${path} ${describeArguments(command)}`, usageHint)
    case 'commander.missingArgument': {
      const missing = assertDefined(registeredArguments[args.length])
      return createUsageError(`The ${missing.name()} is missing`, usageHint)
    }
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
function describeArguments({
  args,
  registeredArguments: { length: maxArguments },
}: Command): string {
  // A command may also reject an argument that is not surplus: `create` takes only `-`.
  const isSurplus = args.length > maxArguments
  const word = args[isSurplus ? maxArguments : 0] ?? ''
  if (isPlainWord(word)) return `does not take the argument ${word}`
  if (!isSurplus) return 'does not take this argument'
  if (maxArguments === 0) return 'takes no arguments'
  return maxArguments === 1 ? 'takes one argument' : `takes at most ${maxArguments} arguments`
}

function formatUsageHint(command: PlantsCommand, path: string): string {
  const usage = `Usage: plants ${`${path} ${command.usage()}`.trim()}`
  const example = command.examples.find((line) => line.includes(`plants ${path}`))
  return example === undefined ? usage : `${usage}, as in: ${example}`
}

/** Splits "error: unknown option '--tga'", and the line "(Did you mean --tag?)" below it. */
function splitMessage(message: string): [sentence: string, suggestion: string | undefined] {
  const sentence = message.replace(/\n\(Did you mean [^\n]*\)$/, '')
  const suggestion = message.slice(sentence.length + 2, -1)
  return [sentence.replace(/^error: /, ''), suggestion || undefined]
}

function createUnknownOptionError(
  command: Command,
  sentence: string,
  suggestion: string | undefined,
): PlantsError {
  // The value after `=` or a letter is left out, because it may be a secret.
  const text = sentence.slice(sentence.indexOf("'") + 1, -1)
  const option = text.replace(/^(--[^=]*|-.).*/s, '$1')
  const secretHint = secretOptions.get(option)
  if (secretHint !== undefined)
    return createUsageError(
      `A ${option.slice(2)} is not accepted on the command line, where other users can see it`,
      secretHint,
    )
  if (command.options.some(({ long }) => long === option) || option === '--help')
    return createUsageError(`${option} takes no value`, 'Leave it out')
  // Commander compares whole names, so for `--idem` it would suggest `--id`.
  const matches = command.options.filter(({ long, hidden }) => !hidden && long?.startsWith(option))
  const hint = matches.length === 1 ? `Did you mean ${matches[0]?.long}?` : suggestion
  return createUnknownWordError('option', option, command, hint)
}

/** Creates the error of a word that the command does not know. */
export function createUnknownWordError(
  noun: 'command' | 'option',
  word: string,
  command: Command,
  suggestion?: string,
): PlantsError {
  const path = getCommandPath(command)
  const wordOfCommand = familiarWords.get(`${path} ${word}`.trim())
  // The commands of other programs are none of `plants stores`.
  const wordOfAll = noun === 'option' ? familiarWords.get(word) : undefined
  const hint = wordOfCommand ?? wordOfAll ?? suggestion ?? formatHelpHint(path)
  return createUsageError(`Unknown ${noun}${isPlainWord(word) ? ` ${word}` : ''}`, hint)
}
