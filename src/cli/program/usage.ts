import type { CommanderError } from 'commander'
import { parseInt64, parseJson } from '../../plant/json.js'
import { malformed, type PlantsError, shellWord } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { editsBetween, similar } from '../../platform/nearest.js'
import { type CommandLine, findOption, longName, optionsAt, parseCommandLine, takesValue } from '../command-line.js'
import { plants } from '../commands/index.js'
import { commandFor } from '../define-command.js'

/** The words of other programs, by what they mean here. An option is suggested only if the command has it; the first match counts. COUNT is a number. */
export const habits: Readonly<Record<string, readonly string[]>> = {
  'list --search TEXT': ['search', 'find'],
  'list --fields id,name': ['list --columns'],
  count: ['list --count'],
  'update ID --name TEXT': ['edit', 'rename'],
  'delete ID': ['remove'],
  'import FILE': ['load'],
  'export --out FILE': ['dump', 'list --out'],
  'auth login': ['login'],
  'auth logout': ['logout'],
  'auth status': ['whoami'],
  'tokens revoke ID': ['tokens delete', 'tokens remove', 'tokens rm'],
  'stores use STORE': ['use', 'switch', 'context'],
  'stores list': ['stores current', 'contexts'],
  'stores add NAME ADDRESS': ['stores create', 'stores new'],
  'stores remove NAME': ['stores delete'],
  'config unset SETTING': ['config remove', 'config rm', 'config delete', 'config reset'],
  doctor: ['status'],
  help: ['man', 'docs', 'browse', 'feedback'],
  '--format json': ['export --json', 'import --json', '-f json'],
  '--format csv': ['--csv', '-f csv'],
  '--output json': ['--json', '--format', '--jq', '-j'],
  '--store': ['--db', '--url'],
  '--yes': ['--force', '-f'],
  '--if-exists update': ['--force', '--upsert', '--replace'],
  '--check': ['--dry-run'],
  '--dry-run': ['--check'],
  '--out': ['--file', '-f'],
  '--limit COUNT': ['-n COUNT', '--max', '-l'],
  '--search': ['--filter', '--name', '-n'],
  '--verbose': ['--debug'],
  '--quiet': ['--silent'],
  '--no-input': ['--input'],
}

/** The option for an excess argument. Hints repeat the argument, so commands that could get a token or a password are not listed. */
export const optionForArgument: Readonly<Record<string, string>> = {
  create: '--name',
  update: '--name',
  list: '--search',
  export: '--out',
  serve: '--store',
  doctor: '--store',
}

/**
 * The error for an invalid command line. The value of an unknown option is left out, because it may be a secret.
 *
 * @param cause the error of commander, if the line names a command
 */
export function usageError(argv: string[], parsed: CommandLine, cause?: CommanderError): PlantsError {
  const { names, command, operands, unknown, pending } = parsed
  const { arguments: args = [] } = command
  const name = names.join(' ')
  const invalid = (message: string, hint = seeHelp(name)) => malformed(message, hint, cause)
  if (pending) return invalid(`${nameOf(argv.at(-1))} needs a value`)
  const conflict = conflictIn(parsed)
  if (conflict) return invalid(conflict.join(' cannot be used with '), 'Leave out one of them')
  if (command.commands && operands.length > 0) return unknownCommand(parsed)
  const [option] = unknown
  if (option !== undefined) return invalid(...explainUnknownOption(option, argv, parsed))
  if (command === plants) return invalid('No command was given')
  const missing = args[operands.length]?.name.slice(1, -1)
  if (missing !== undefined) return invalid(`${name} needs ${/^[aeiou]/.test(missing) ? 'an' : 'a'} ${missing}`)
  const takes = ['no arguments', '1 argument'][args.length] ?? `${args.length} arguments`
  return invalid(`${name} takes ${takes}, but got ${operands.length}`, hintForExcessArgument(name, argv, parsed))
}

function conflictIn({ command, given }: CommandLine): [option: string, other: string] | undefined {
  for (const option of command.options ?? []) {
    const other = option.conflicts?.find((name) => given.has(`--${name}`))
    if (given.has(longName(option)) && other !== undefined) return [longName(option), `--${other}`]
  }
  return undefined
}

export function unknownCommand({ names, command, operands: [word = '', ...next], unknown }: CommandLine): PlantsError {
  const { commands = [], topics = [] } = command
  const others = [...commands, ...(commands.length > 0 ? [{ name: 'help' }] : [])].filter(({ name }) => name !== word) // after `--`
  const known = [...others, ...topics].map(({ name }) => name)
  const guess = didYouMean(word, names, known, [...next, ...unknown])
  const hint = topics.reduce((text, { name }) => text?.replace(`mean ${name}?`, `mean: plants help ${name}`), guess)
  return malformed(`Unknown command ${nameOf(word)}`, hint ?? seeHelp(names.join(' ')))
}

/** The hint for an excess argument that was probably meant as the value of an option. */
function hintForExcessArgument(name: string, argv: string[], { command, operands, given }: CommandLine): string | undefined {
  const option = optionForArgument[name]
  if (option === undefined || argv.includes('--')) return undefined
  const extra = operands.slice(command.arguments?.length)
  if (extra.length === 1 && extra[0] === 'help') return `For its help: plants help ${name}`
  const value = given.get(option)
  const words = argv.filter((word) => !extra.includes(word))
  const commandWith = (...options: string[]) => `plants ${[...words, ...options].map(shellWord).join(' ')}`
  const isRepeated = extra.some((word) => argv.indexOf(word) !== argv.lastIndexOf(word)) // one may be the value of an option
  const ofPlant = name === 'create' && !isRepeated ? hintForPlant(extra, given, commandWith) : undefined
  if (ofPlant !== undefined) return ofPlant
  if (value !== undefined) return `For a value with spaces: ${option} ${shellWord([value, ...extra].join(' '))}`
  return isRepeated ? undefined : `Did you mean: ${commandWith(option, extra.join(' '))}`
}

/** The hint for a plant in the arguments of `create`: as JSON, or as an id and a name. */
function hintForPlant([first = '', ...others]: string[], given: CommandLine['given'], commandWith: (...options: string[]) => string) {
  if (first.startsWith('{') && others.length === 0 && 'value' in parseJson(first))
    return `Write it to stdin: printf %s ${shellWord(first)} | ${commandWith()}`
  const hasOneName = given.has('--name') !== others.length > 0
  if (parseInt64(first) === undefined || given.has('--id') || !hasOneName) return undefined
  return `Did you mean: ${commandWith('--id', first, ...(others.length > 0 ? ['--name', others.join(' ')] : []))}`
}

function explainUnknownOption(text: string, argv: string[], parsed: CommandLine): [message: string, hint?: string] {
  const flag = nameOf(text)
  const meant = meantCommand(argv)
  const name = meant.names.join(' ')
  const option = findOption(flag, meant)
  if (option && text.includes('=') && !takesValue(option)) return [`${flag} takes no value`, seeHelp(name)]
  if (flag === '--token' || flag === '--password') {
    const [noun, variable] = flag === '--token' ? ['token', 'PLANTS_TOKEN'] : ['password', 'PGPASSWORD']
    const message = `A ${noun} is not accepted on the command line, where other users can see it`
    return [message, `Set ${variable}, or save it with: plants auth login`]
  }
  if (option) return [`Unknown option ${flag} before the command`, `Write it after the command: plants ${name} ${flag}`]
  const words = idAsArgument(text, argv, parsed)
  if (words) return [`Unknown option ${flag}`, `Did you mean: plants ${words.map(shellWord).join(' ')}`]
  const [value = text.slice(flag.length)] = text === flag ? argv.slice(argv.indexOf(text) + 1) : []
  const guess = didYouMean(flag, meant.names, optionsAt(meant).map(longName), value === '' ? [] : [value])
  return [`Unknown option ${flag}`, guess ?? seeHelp(name)]
}

/** The command that was meant, even if it follows the unknown option. */
function meantCommand(argv: string[]): CommandLine {
  let meant = parseCommandLine([], plants)
  for (const word of argv) if (commandFor(word, meant.command.commands)) meant = parseCommandLine([...meant.names, word], plants)
  return meant
}

/** The command line with the id as the argument that it is, where it was given as an option and no other option is unknown. */
function idAsArgument(text: string, argv: string[], { command, unknown }: CommandLine): string[] | undefined {
  const option = /^(--id(?==|$)|-id?)=?/
  if (!option.test(text) || unknown.length > 1 || !/^.ids?\W/.test(command.arguments?.[0]?.name ?? '')) return undefined
  return argv.flatMap((word) => (word === text ? text.replace(option, '') || [] : word))
}

/**
 * The suggestion for an unknown command or option, if there is one.
 *
 * @param names the command before it
 * @param next the words after it, which the suggestion repeats
 */
function didYouMean(word: string, names: readonly string[], known: readonly string[], next: readonly string[]): string | undefined {
  const name = word.toLowerCase()
  const typed = [[...names, name].join(' '), ...(name.startsWith('-') ? [name, `${name} ${next[0]?.replace(/^\d+$/, 'COUNT')}`] : [])]
  const isKnown = (meant: string) => !meant.startsWith('-') || known.includes(meant.split(' ')[0] ?? '')
  const fits = ([meant, words]: [string, readonly string[]]) => isKnown(meant) && words.some((habit) => typed.includes(habit))
  const [meant] = Object.entries(habits).find(fits) ?? []
  if (meant?.startsWith('-')) return `Did you mean ${filled(meant, next.slice(0, 1)).replace(' COUNT', '')}?`
  if (meant !== undefined) return `Did you mean: plants ${filled(meant, next)}`
  if (/^-[^-]/.test(word)) return undefined
  // A suggestion that removes something or weakens security must begin like the word, and differ in one edit if it changes plants.
  const isRisky = (guess: string) => /^(delete|remove|revoke|unset|logout|--allow-)/.test(guess)
  const isFar = (guess: string) => /^(delete|restore)$/.test(guess) && editsBetween(name, guess) > 1
  const beginning = (text: string) => text.slice(0, text.startsWith('--') ? 4 : 3)
  const guesses = similar(word, known).filter((guess) => !isFar(guess) && (!isRisky(guess) || beginning(guess) === beginning(word)))
  return guesses.length === 0 ? undefined : `Did you mean ${guesses.length > 1 ? 'one of ' : ''}${guesses.join(', ')}?`
}

/** What is meant, with the words that were given for it, where there are no options among them. */
function filled(meant: string, words: readonly string[]): string {
  const left = words.some((word) => word.startsWith('-')) ? [] : [...words]
  const text = meant.replace(/\b(COUNT|FILE|ID|STORE|TEXT)\b/g, (name) => {
    const [first] = left
    if (first === undefined || (/COUNT|ID/.test(name) && !/^\d+$/.test(first))) return name
    return shellWord(left.splice(0, name === 'TEXT' ? left.length : 1).join(' '))
  })
  return text === meant ? meant : [text, ...left.map(shellWord)].join(' ')
}

function seeHelp(name: string): string {
  return `See: plants ${name && `${name} `}--help`
}

/** An option without its value, or a word; a blank word is in quotes. */
function nameOf(text = ''): string {
  if (text.startsWith('--')) return text.replace(/[= ].*/s, '')
  if (text.startsWith('-')) return text.slice(0, 2)
  return text.trim() === '' ? JSON.stringify(text) : shorten(text)
}
