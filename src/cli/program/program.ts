import { parseArgs } from 'node:util'
import type { Command } from 'commander'
import { version } from '../../../package.json'
import { writeAnswer } from '../../output/output.js'
import { malformed, shellWord } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { parseChoice } from '../../platform/values.js'
import { loadCommands, pathTo, plants } from '../commands/index.js'
import { writeVersion } from '../commands/version.js'
import { printCompletions } from '../completion/complete.js'
import { isInteractive, mayColor } from '../context.js'
import { aliasesOf, type CommandDefinition, type GlobalFlags, type HelpLayout, type OptionDefinition } from '../define-command.js'
import { helpOption, helpPage } from '../help/page.js'
import { parsedCommand, pathOf, typedCommand, unknownCommand, usageError } from './usage.js'

/** Runs a command line. Help, the version and completions come from the definitions; commander is loaded only for the rest. */
export async function runProgram(argv: string[], io: Io): Promise<void> {
  if (!io.argumentsAreExact()) throw malformed('An argument is not UTF-8', 'Use a UTF-8 terminal, or read the plant from JSON with --file')
  await loadCommands(argv)
  const [first, ...rest] = argv
  if (first === '__complete' && rest[0] === '--') return printCompletions(rest.slice(1), plants, io)
  if (first === '__complete' && rest[0] === '--next') return printCompletions([...rest.slice(2), ''], plants, io)
  const isHelp = (word: string) => word === '-h' || word === '--help'
  const words = argv.filter((word) => !isHelp(word))
  const path = words.length < argv.length || first === undefined ? pathTo(words) : undefined
  if (path) return writeHelp((layout) => helpPage(path, layout), outputFlags(argv), io)
  if (first === 'help' && !rest.some((word) => word.startsWith('-'))) return answerHelp(rest, outputFlags(argv), io)
  if (argv.length === 1 && ['-V', '--version', 'version'].includes(first ?? '')) return writeVersion(undefined, io)
  await parse(argv, io)
}

/** The values of `--output`, `--no-color` and `--no-input`, even if the command line is invalid. */
export function outputFlags(argv: string[]): GlobalFlags {
  const flag = { type: 'boolean' } as const
  const options = { output: { type: 'string', short: 'o' }, 'no-color': flag, 'no-input': flag } as const
  const { output, 'no-color': noColor, 'no-input': noInput } = parseArgs({ args: argv, options, strict: false }).values
  return { output: typeof output === 'string' ? output : undefined, color: !noColor, input: !noInput }
}

async function answerHelp(words: readonly string[], flags: GlobalFlags, io: Io): Promise<void> {
  const topic = words.length === 1 ? plants.topics?.find(({ name }) => name === words[0]) : undefined
  const path = pathTo(words)
  if (topic) return writeHelp((layout) => topic.page(layout), flags, io)
  if (path) return writeHelp((layout) => helpPage(path, layout), flags, io)
  const known = words.findIndex((_, index) => !pathTo(words.slice(0, index + 1)))
  throw await unknownCommand(words[known] ?? '', words.slice(0, known))
}

/** Prints help, in a pager if the page is longer than an interactive terminal. */
async function writeHelp(page: (layout: HelpLayout) => string | Promise<string>, flags: GlobalFlags, io: Io): Promise<void> {
  const { isTerminal } = io.stdout
  const strong = mayColor(io.stdout, flags, io) ? (text: string) => `\u001b[1m${text}\u001b[22m` : String // chalk takes 2 ms to load
  const text = await page({ width: isTerminal ? io.stdout.columns : 100, strong })
  const isLong = isTerminal && text.split('\n').length > io.stdout.rows
  if (isLong && isInteractive(flags, io) && io.env['TERM'] !== 'dumb') {
    io.signal.throwIfAborted() // from here on the pager receives Ctrl-C
    const { showInPager } = await import('../../platform/programs.js')
    if (showInPager(text, io)) return
  }
  await writeAnswer(io, text)
}

async function parse(given: string[], io: Io): Promise<void> {
  const { Command, CommanderError } = await import('commander')
  const program = new Command(plants.name)
    .version(version, '-V, --version')
    .helpOption(helpOption.flags)
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined, outputError: () => undefined })
    .showSuggestionAfterError(false)
    .exitOverride()
  for (const option of plants.options ?? []) if (!option.flags.endsWith('--version')) addOption(program, option)
  addCommands(program, plants, io)
  rejectOptionsAsValues(given, program)
  const argv = separateSwitches(given, program)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.version') return writeVersion(outputFlags(argv).output, io)
    if (!['commander.help', 'commander.helpDisplayed'].includes(error.code)) throw await usageError(error, argv, program)
    await checkHelp(error.code, argv, program)
    const path = pathTo(pathOf(parsedCommand(program))) ?? [plants]
    await writeHelp((layout) => helpPage(path, layout), outputFlags(argv), io)
  }
}

/** Rejects a command line without a command or with an unknown one, for which commander would show the help of the program. */
async function checkHelp(code: string, argv: string[], program: Command): Promise<void> {
  const [word, ...next] = program.parseOptions(argv).operands
  if (word === undefined && code === 'commander.help') throw malformed('No command was given', 'See: plants --help')
  if (word !== undefined && word !== 'help' && !pathTo([word])) throw await unknownCommand(word, [], next)
}

function addCommands(parent: Command, { commands = [] }: CommandDefinition, io: Io): void {
  // A command that is not loaded has neither `run` nor subcommands.
  for (const definition of commands.filter(({ run, commands: below }) => run ?? below)) {
    const { run } = definition
    const command = parent.command(definition.name).aliases(aliasesOf(definition))
    for (const { name, description, parse: read } of definition.arguments ?? []) {
      const argument = command.createArgument(name, description)
      if (read) argument.argParser((text: string) => read(argument.name(), text))
      command.addArgument(argument)
    }
    for (const option of definition.options ?? []) addOption(command, option)
    if (run) command.action(() => run({ args: command.processedArgs.flat(), flags: command.optsWithGlobals() }, io))
    else addCommands(command, definition, io)
  }
  const path = pathOf(parent)
  parent.helpCommand(false)
  parent.command('help [command...]').action((words: string[]) => answerHelp([...path, ...words], parent.optsWithGlobals(), io))
}

/** Does not use `.choices()`, whose error has no fields for the option and the value. */
function addOption(command: Command, { flags, description, choices, parse: given, conflicts, default: text }: OptionDefinition): void {
  const option = command.createOption(flags, description)
  const flag = option.long ?? flags
  const read = given ?? (choices && ((name: string, value: string) => parseChoice(name, value, choices)))
  if (read) option.argParser((value: string) => read(flag, value))
  if (text !== undefined) option.default(read ? read(flag, text) : text, text)
  if (conflicts) option.conflicts(conflicts)
  command.addOption(option)
}

/** Rejects `--name --tag x`, where commander would use `--tag` as the name. */
function rejectOptionsAsValues(argv: string[], program: Command): void {
  const commands = [program, ...program.commands.flatMap((command) => [command, ...command.commands])]
  const withValue = commands.flatMap(({ options }) => options.filter(({ required }) => required))
  const longOf = new Map(withValue.flatMap(({ long, short }) => [long, short].map((name) => [name, long])))
  const end = argv.indexOf('--')
  const index = argv.findIndex((argument, at) => longOf.has(argument) && /^-[^\d.]/.test(argv[at + 1] ?? '') && (end < 0 || at < end))
  if (index < 0) return
  const next = (argv[index + 1] ?? '').replace(/(?<=^--[^=]*)=.*/s, '')
  const hint = `For a value that begins with a dash: ${longOf.get(argv[index])}=${shellWord(next)}`
  throw malformed(`${argv[index]} needs a value, but ${next} follows`, hint)
}

/**
 * Gives `-y -q` for `-yq`: commander takes the two together only where one command has both. Refuses `-name Fern`, where commander would take
 * "ame" for the name.
 */
function separateSwitches(argv: string[], program: Command): string[] {
  const options = [program, typedCommand(argv, program)].flatMap((command) => command.options)
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  const isLong = (word: string) => options.find(({ long }) => long === `-${word.replace(/=.*/s, '')}`)
  const at = argv.slice(0, end).findIndex(isLong)
  if (at >= 0) {
    const [word = '', next = ''] = argv.slice(at)
    const value = isLong(word)?.required && !word.includes('=') && !next.startsWith('-') ? ` ${shellWord(next)}` : ''
    throw malformed(`Unknown option ${word.replace(/=.*/s, '')}`, `Did you mean -${shellWord(word)}${value}?`)
  }
  const switches = options.flatMap(({ short, required }) => (required ? [] : short))
  const apart = (word: string): string[] =>
    word.length > 2 && switches.includes(word.slice(0, 2)) ? [word.slice(0, 2), ...apart(`-${word.slice(2)}`)] : [word]
  return [...argv.slice(0, end).flatMap(apart), ...argv.slice(end)]
}
