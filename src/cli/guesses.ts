import type { Command, Option } from 'commander'
import { choiceIn, outputFormats } from '../config/option-values.js'
import { fieldNames, idFromText } from '../plant/plant.js'
import { must } from '../platform/errors.js'
import { shellOption, shellWord } from '../platform/shell.js'
import type { PlantsCommand } from './command.js'

/** Words of other programs, twenty at most: a wrong suggestion is worse than none. */
export const foreignWords: ReadonlyMap<string, string> = new Map([
  ['search', 'list --search'],
  ['find', 'list --search'],
  ['tags', 'count --by tag'],
  ['apply', 'import --if-exists update'],
  ['edit', 'update'],
  ['view', 'get'],
  ['describe', 'get'],
  ['load', 'import'],
  ['dump', 'export'],
  ['start', 'serve'],
  ['status', 'doctor'],
  ['login', 'auth login'],
  ['logout', 'auth logout'],
  ['whoami', 'auth status'],
  ['use-context', 'stores use'],
  ['--format', '--output json'],
  ['--no-headers', '--output ndjson'],
  ['--name', '--search'],
  ['--reverse', '--desc'],
  ['--if-exists', 'import --if-exists'],
])

/** Suggested for their own letters alone, as short words are: `remote` is not `remove`, and `set` is not `get`. */
const risky = ['remove', 'rm', 'delete', 'revoke', 'unset', 'logout']

/** @param words what was typed in place of a command of this one, and after it */
export function commandHint(command: PlantsCommand, words: readonly string[]): string | undefined {
  const [word = '', ...others] = words
  const isTop = command.parent === null
  const names = command.commands.map((each) => [each.name(), ...each.aliases()])
  const begins = names.map(([name = '', ...aliases]) => [
    name,
    ...aliases.filter((alias) => risky.includes(alias)),
  ])
  const near =
    isTop && foreignWords.has(word) ? undefined : (begun(word, begins) ?? nearest(word, names))
  const isOther =
    near !== undefined && (word.length < 4 || risky.includes(near)) && hasOtherLetters(word, near)
  if (near !== undefined && !isOther) return `Did you mean ${near}?`
  const isConfig = nameOf(command) === 'config'
  const found = isTop || isConfig ? foreignCommand(word) : undefined
  const foreign = isTop || found?.startsWith('stores ') ? found : undefined // kubectl has its stores below config
  if (foreign?.endsWith(' --search'))
    return `Use: plants list${shellOption('search', others.length > 0 && !others.some(hasLogin) ? others.join(' ') : 'TEXT')}`
  if (foreign !== undefined) return `Did you mean ${foreign}?`
  const use =
    isTop || isConfig ? settingCommand(word === 'set' ? others : words, command) : undefined
  return use && `Use: ${use}`
}

/** Two letters may be exchanged, and of a long word one may be wrong. */
function foreignCommand(word: string): string | undefined {
  const typed = word.toLowerCase()
  const names = [...foreignWords.keys()].filter((name) => !name.startsWith('-'))
  const near = names.find((name) =>
    isNear(typed, name, word.length >= 6 || sortedLetters(typed) === sortedLetters(name) ? 1 : 0),
  )
  return near && foreignWords.get(near)
}

/** @param value of the unknown option, which is not repeated unless it is a word of ours, or a filter */
export function optionHint(
  command: Command,
  option: string,
  value: string | undefined,
): string | undefined {
  if (option === '-f') return optionHint(command, meaningOfF(command, value), value)
  const argument = argumentHint(command, option, value)
  if (argument !== undefined) return argument
  const longs = [...command.options.flatMap(({ long }) => long ?? []), '--help']
  const listed = command.options.flatMap(({ long, hidden }) =>
    long === undefined || hidden ? [] : [[long]],
  )
  const use = longs.includes('--search') ? filterValue(command, option, value) : undefined
  if (use !== undefined) return `Use: ${use.trim()}`
  if (option === '--out' && /[./]/.test(value ?? '')) return 'For a file: plants export FILE'
  const meant =
    orderOption(option, value, longs) ??
    formatOption(option, value, longs) ??
    foreignOption(command, option, longs) ??
    (/\.(db|sqlite3?)$|^postgres(ql)?:/.test(value ?? '') ? '--store' : undefined) ??
    begun(option, listed) ??
    nearest(
      option,
      longs.map((long) => [long]),
    )
  return meant && `Did you mean ${meant}?`
}

/** Other programs have it for a file, a format and --force. */
function meaningOfF(command: Command, value: string | undefined): string {
  if (formatIn(value) !== undefined) return '--format'
  const takesFile = command.registeredArguments.some((argument) => /^files?$/.test(argument.name()))
  return takesFile && value !== undefined ? '--file' : '--force'
}

/** For the value of `--filter tag=shade`, and for that of `--ids 1,2`. */
function filterValue(command: Command, option: string, value = ''): string | undefined {
  const { registeredArguments } = command
  if (/^tag=/.test(value) || (/^name=/.test(value) && maySearch(command)))
    return filterOptions([value], {})
  if (registeredArguments.some((argument) => argument.name() === 'id')) return undefined
  if (value.startsWith('id=')) return filterOptions([value], {})
  const ids = /^--ids?$/.test(option) ? value.split(',') : []
  return ids.length > 0 && ids.every(isId) ? filterOptions(ids, {}) : undefined
}

/** A search finds a part of a name or a tag, and a deletion of what it finds may delete more than was meant. */
function maySearch(command: Command): boolean {
  return command.name() !== 'delete'
}

/** For `--order desc`, `--order-by name` and `--group-by tag`. */
function orderOption(
  option: string,
  value: string | undefined,
  longs: readonly string[],
): string | undefined {
  const [, word] = /(order|sort|group)/.exec(option) ?? []
  const long = word === 'group' ? '--by' : '--sort'
  if (word === undefined || !longs.includes(long)) return undefined
  const field = choiceIn(fieldNames, value)
  if (field !== undefined) return `${long} ${field}`
  return long === '--sort' && /^desc/i.test(value ?? '') ? '--desc' : undefined
}

/** For `--format csv` and `--csv`. */
function formatOption(
  option: string,
  value: string | undefined,
  longs: readonly string[],
): string | undefined {
  const named = formatIn(option.slice(2))
  const isOfInput =
    longs.includes('--format') && (named === undefined || named === 'csv' || named === 'tsv')
  const isFormat = value?.toLowerCase() !== 'text' || /format|out/.test(option)
  const format = named ?? (isFormat ? formatIn(value) : undefined)
  return format && `${isOfInput ? '--format' : '--output'} ${format}`
}

function formatIn(text: string | undefined): string | undefined {
  return /^jsonl$/i.test(text ?? '') ? 'ndjson' : choiceIn(outputFormats, text)
}

/** Whose suggestion is an option of this command, or of another one for those that write single plants. */
function foreignOption(
  command: Command,
  option: string,
  longs: readonly string[],
): string | undefined {
  const foreign = option.startsWith('--') ? foreignWords.get(option) : undefined
  const [first = ''] = foreign?.split(' ') ?? []
  const isOurs = first.startsWith('-')
    ? longs.includes(first)
    : ['create', 'update'].includes(command.name())
  if (!isOurs || (first === '--search' && !maySearch(command))) return undefined
  return option === '--format' ? '--output' : foreign
}

/** Such as `--id 3` of get. */
function argumentHint(
  command: Command,
  option: string,
  value: string | undefined,
): string | undefined {
  const word = option === '--out' ? 'file' : option.slice(2)
  const names = command.registeredArguments.map((argument) => argument.name())
  const found = names.find((name) => name === word || name === `${word}s` || `${name}s` === word)
  if (found === undefined) return undefined
  const singular = found.replace(/s$/, '')
  const words = names.map((name) =>
    name !== found ? name.toUpperCase() : value === '-' ? '-' : singular.toUpperCase(),
  )
  return `The ${singular} is an argument: plants ${nameOf(command)} ${words.join(' ')}`
}

/**
 * The options that arguments belong to which a command does not take.
 *
 * @param words these arguments
 * @param line the whole command line
 */
export function strayHint(
  command: PlantsCommand,
  words: readonly string[],
  line: readonly string[],
): string | undefined {
  const name = nameOf(command)
  if (name in hintsWithoutWords) return hintsWithoutWords[name]
  if (words.some(hasLogin)) return 'Use: --store ADDRESS'
  const isIdOfPlant =
    name === 'create' &&
    command.opts()['id'] === undefined &&
    words.length === 1 &&
    words.every(isId)
  const text = isIdOfPlant
    ? undefined
    : (unquotedText(command, words, line) ?? unquotedArgument(command))
  const use = text === undefined ? places[name]?.(words, command)?.trim() : undefined
  const hint =
    text === undefined ? use && `Use: ${use}` : `A text with spaces is in quotes: ${text}`
  return hint !== undefined && hint.length <= 200 ? hint : undefined
}

/** By command: what stands there may be a token, and is not repeated. */
const hintsWithoutWords: Readonly<Record<string, string>> = {
  'auth login':
    'The service is --store ADDRESS. Its token is read from a prompt or, with --from-stdin, from stdin',
  'auth logout': 'Use: --store ADDRESS',
  'auth status': 'Use: --store ADDRESS',
  'auth token': 'Use: --store ADDRESS',
  'tokens create': 'Use: --note "TEXT"',
}

/** @param command got too few arguments */
export function missingHint(command: PlantsCommand): string | undefined {
  const isJoined = nameOf(command) === 'config set' && command.args[0]?.includes('=')
  const use = isJoined ? settingCommand(command.args, command) : undefined
  return use && `Use: ${use}`
}

/** For `NAME`, `NAME VALUE` and `NAME=VALUE`. */
function settingCommand(words: readonly string[], command: PlantsCommand): string | undefined {
  const [name = '', ...rest] = words.length === 1 ? must(words[0]).split('=') : words
  if (!command.isSetting(name) || rest.some((word) => command.isSetting(word))) return undefined
  return rest.length > 0
    ? `plants config set ${name} ${placeWord(rest.join('='))}`
    : `plants config get ${name}`
}

/** By command, what its stray arguments are as options. */
const places: Readonly<
  Record<string, (words: readonly string[], command: PlantsCommand) => string | undefined>
> = {
  create: (words, command) => plantOptions(words, command.opts()),
  update: (words, command) => {
    const [first = ''] = command.args
    if ((first !== '-' && !isId(first)) || words.some((word) => word.startsWith('id=')))
      return undefined
    return (
      fieldOptions(words) ??
      (command.opts()['name'] === undefined ? textOption('name', words) : undefined)
    )
  },
  list: (words, command) => {
    const [word = ''] = words.length === 1 ? words : []
    const field = /^(name|tag)s$/.exec(word)?.[1]
    if (field !== undefined) return `plants count --by ${field}`
    const isOfOthers = /^(stores|tokens|config|settings)$/.test(word)
    return isOfOthers ? `plants ${word} list` : filterOptions(words, command.opts())
  },
  count: (words, command) => {
    const field = /^(?:by )?(name|tag)s?$/.exec(words.join(' '))?.[1]
    return field ? `--by ${field}` : filterOptions(words, command.opts())
  },
  serve: listenOptions,
  doctor: ([word = '']) => storeOption(word),
  restore: ([word = '']) => storeOption(word),
  'config get': (_, command) => settingCommand(command.args, command),
  'config list': settingCommand,
}

/** The words of one note or, with an ending at the last one, of one name of a file. */
function unquotedArgument(command: Command): string | undefined {
  const { args, registeredArguments } = command
  const isFile = registeredArguments.some((argument) => argument.name() === 'file')
  const isName = args.every((word, at) => word.includes('.') === (at === args.length - 1))
  const isNote =
    nameOf(command) === 'tokens revoke' && args.every((word) => /^\p{L}{1,20}$/u.test(word)) // no token
  return isNote || (isFile && isName && !args.some(mayHaveSecret))
    ? shellWord(args.join(' '))
    : undefined
}

type Given = Readonly<Record<string, unknown>>

function plantOptions(words: readonly string[], given: Given): string | undefined {
  const [first = ''] = words
  if (words.length === 1) {
    if (first === '-' || /\.json$/i.test(first)) return shellOption('file', first)
    if (/\.(ndjson|jsonl|csv|tsv|xlsx)(\.gz)?$/i.test(first))
      return `plants import ${shellWord(first.replace(/^-/, './-'))}`
    if (first.startsWith('{')) return '--file PATH, or --file - for JSON on stdin'
  }
  const fields = fieldOptions(words)
  if (fields !== undefined) return fields
  const at =
    given['id'] === undefined ? words.findIndex((word) => word === 'next' || isId(word)) : -1
  const texts = words.filter((_, index) => index !== at)
  if (given['name'] !== undefined)
    return at >= 0 && texts.length === 0 ? shellOption('id', first) : undefined
  const id = given['id'] === undefined ? (words[at] ?? 'next') : undefined
  return shellOption('id', id) + textOption('name', texts.length > 0 ? texts : ['NAME'])
}

function isId(word: string): boolean {
  return idFromText(word) !== undefined
}

/** For `name=Fern`, each field once. */
function fieldOptions(words: readonly string[]): string | undefined {
  const fields = words.flatMap((word) => {
    const { groups } = /^(?<field>id|name|tag)=(?<text>.*)$/s.exec(word) ?? {}
    return groups ? [groups] : []
  })
  if (new Set(fields.map(({ field }) => field)).size < words.length) return undefined
  return fields.map(({ field, text }) => shellOption(must(field), text)).join('')
}

function filterOptions(words: readonly string[], given: Given): string | undefined {
  const [first = ''] = words
  if (first === 'plants' || (first === 'all' && words.length === 1)) return undefined
  if (words.every(isId)) return `plants get ${words.join(' ')}`
  if (words.length === 1 && isStorePath(first)) return storeOption(first)
  const { field, text = '' } = /^(?<field>id|name|tag)[=:](?<text>.*)$/s.exec(first)?.groups ?? {}
  if (field === 'id') return words.length === 1 && isId(text) ? `plants get ${text}` : undefined
  if (field !== undefined)
    return words.length > 1 ? undefined : shellOption(field === 'tag' ? field : 'search', text)
  return given['search'] === undefined ? textOption('search', words) : undefined
}

function listenOptions(words: readonly string[]): string | undefined {
  const options = words.map((word) => {
    const { host, port } =
      /^(?<host>[\w.-]+(?=:)|localhost|\d+(\.\d+){3})?:?(?<port>\d+)?$/.exec(word)?.groups ?? {}
    if (Number(port ?? 0) > 65_535) return undefined
    const listen = shellOption('host', host) + shellOption('port', port)
    return listen === '' ? storeOption(word) : listen
  })
  const areOptions = !options.includes(undefined)
  const areDifferent = new Set(options.map((option) => option?.split(' ')[1])).size === words.length
  return areOptions && areDifferent ? options.join('') : undefined
}

function isStorePath(word: string): boolean {
  return /[/\\]|\.(db|sqlite3?|bak)$/i.test(word)
}

function storeOption(word: string): string {
  return ` --store ${placeWord(word)}`
}

/** An address may have a password, and is not repeated. */
function placeWord(word: string): string {
  return mayHaveSecret(word) ? 'ADDRESS' : shellWord(word)
}

/** Whether it is more than a path: `user:password@host`, `postgres:…`, `host=… password=…`, or has an address in it. */
export function mayHaveSecret(word: string): boolean {
  return /[@=]|:\/\/|^[\w+.-]{2,}:/.test(word)
}

/** Whether it has an address with a user, and perhaps with a password. */
function hasLogin(word: string): boolean {
  return /:\/\/[^/\s]*@/.test(word)
}

function textOption(name: string, words: readonly string[]): string {
  return shellOption(name, words.join(' '))
}

/** The option with a text whose other words stand after it, because it was not in quotes. */
function unquotedText(
  command: Command,
  words: readonly string[],
  line: readonly string[],
): string | undefined {
  for (const option of command.options) {
    const value: unknown = command.getOptionValue(option.attributeName())
    if (!option.flags.endsWith(' <text>') || typeof value !== 'string') continue
    const start = line.findIndex(
      (word, at) => word === words[0] && isValueOf(option, value, line[at - 1]),
    )
    if (start < 0) continue
    const rest = words.filter((word, at) => line[start + at] === word)
    return shellOption(option.name(), [value, ...rest].join(' ')).trim()
  }
  return undefined
}

function isValueOf({ long, short }: Option, value: string, word: string | undefined): boolean {
  return [value, `${long}=${value}`, `${short}${value}`, `${short}=${value}`].some(
    (each) => each === word,
  )
}

/** The word of which at most two letters are missing at its end, if that is of the only group with such a word. */
function begun(word: string, groups: readonly (readonly string[])[]): string | undefined {
  const typed = word.toLowerCase()
  if (typed.replace(/^--?/, '') === '') return undefined
  const found = groups.flatMap(
    (group) =>
      group.find((each) => each.startsWith(typed) && each.length - typed.length <= 2) ?? [],
  )
  return found.length === 1 || found.includes(typed)
    ? (found.find((each) => each === typed) ?? found[0])
    : undefined
}

/** Whether more is wrong than a letter that is missing, too many, or exchanged with its neighbour. */
function hasOtherLetters(word: string, name: string): boolean {
  const typed = word.toLowerCase()
  const isChanged = typed.length === name.length && sortedLetters(typed) !== sortedLetters(name)
  return !name.startsWith(typed) && (isChanged || !isNear(typed, name, 1))
}

function sortedLetters(word: string): string {
  return Array.from(word).toSorted().join('')
}

/** The first near word of the only group that is nearest: one letter away or, from six letters on, two. */
function nearest(word: string, groups: readonly (readonly string[])[]): string | undefined {
  const typed = word.toLowerCase()
  const { length } = typed.replace(/^--/, '')
  const most = length < 2 ? 0 : length < 6 ? 1 : 2
  for (let edits = 0; edits <= most; edits++) {
    const near = groups.flatMap((group) => group.find((each) => isNear(typed, each, edits)) ?? [])
    if (near.length > 0) return near.length === 1 ? near[0] : undefined
  }
  return undefined
}

/** Whether so many letters were at most added, left out, changed, or exchanged with their neighbours. */
function isNear(a: string, b: string, edits: number): boolean {
  if (a === b) return true
  if (edits === 0 || Math.abs(a.length - b.length) > edits) return false
  if (a[0] === b[0]) return isNear(a.slice(1), b.slice(1), edits)
  const isExchanged = a[0] === b[1] && a[1] === b[0]
  return (
    isNear(a.slice(1), b, edits - 1) ||
    isNear(a, b.slice(1), edits - 1) ||
    isNear(a.slice(1), b.slice(1), edits - 1) ||
    (isExchanged && isNear(a.slice(2), b.slice(2), edits - 1))
  )
}

/** Such as `stores add`; empty for the program. */
export function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}`.trim() : ''
}
