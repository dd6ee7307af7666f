import { parseArgs } from 'node:util'
import type { Command } from 'commander'
import { version } from '../../../package.json'
import { writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { parseChoice, parseOutput } from '../../platform/values.js'
import { loadCommands, pathTo, plants } from '../commands/index.js'
import { answerCompletion } from '../completion/complete.js'
import type { CommandDefinition, OptionDefinition } from '../define-command.js'
import { helpOption, helpPage, widthFor } from '../help/page.js'
import { parsedCommand, pathOf, subcommandsOf, unknownCommand, usageError } from './usage.js'

/** Does what a command line says. Help, the version and a Tab are answered from the definitions; commander is loaded for the rest. */
export async function runProgram(argv: string[], io: Io): Promise<void> {
  if (!io.argumentsAreExact()) throw malformed('An argument is not UTF-8', 'Use a UTF-8 terminal, or give the plant as JSON with --file')
  await loadCommands(argv)
  const [first, ...rest] = argv
  if (first === '__complete' && rest[0] === '--') return answerCompletion(rest.slice(1), plants, io)
  const isHelp = (word: string) => word === '-h' || word === '--help'
  const words = argv.filter((word) => !isHelp(word))
  const path = words.length < argv.length || first === undefined ? pathTo(words) : undefined
  if (path) return writeAnswer(io, helpPage(path, widthFor(io)))
  if (first === 'help' && !rest.some((word) => word.startsWith('-'))) return writeHelp(rest, io)
  if (argv.length === 1 && (first === '-V' || first === '--version')) return writeVersion(undefined, io)
  await parse(argv, io)
}

/** What `--output` and `--no-color` say, also on an invalid command line. */
export function outputFlags(argv: string[]): { output: string | undefined; color: boolean } {
  const options = { output: { type: 'string' }, 'no-color': { type: 'boolean' } } as const
  const { output, 'no-color': noColor } = parseArgs({ args: argv, options, strict: false }).values
  return { output: typeof output === 'string' ? output : undefined, color: !noColor }
}

async function writeHelp(words: readonly string[], io: Io): Promise<void> {
  const topic = words.length === 1 ? plants.topics?.find(({ name }) => name === words[0]) : undefined
  const path = pathTo(words)
  const width = widthFor(io)
  if (topic) return writeAnswer(io, await topic.page(width))
  if (path) return writeAnswer(io, helpPage(path, width))
  const known = words.findIndex((_, index) => !pathTo(words.slice(0, index + 1)))
  const parent = pathTo(words.slice(0, known)) ?? [plants]
  const names = (parent.at(-1)?.commands ?? []).map(({ name }) => name)
  throw await unknownCommand(words[known] ?? '', names, words.slice(0, known).join(' '))
}

async function parse(argv: string[], io: Io): Promise<void> {
  const { Command, CommanderError } = await import('commander')
  const program = new Command(plants.name)
    .version(version, '-V, --version')
    .helpOption(helpOption.flags)
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined, outputError: () => undefined })
    .showSuggestionAfterError(false)
    .exitOverride()
  for (const option of plants.options ?? []) if (!option.flags.endsWith('--version')) addOption(program, option)
  addCommands(program, plants, io)
  refuseOptionsAsValues(argv, program)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.version') return writeVersion(outputFlags(argv).output, io)
    if (!['commander.help', 'commander.helpDisplayed'].includes(error.code)) throw await usageError(error, argv, program)
    await checkHelp(error.code, argv, program)
    await writeAnswer(io, helpPage(pathTo(pathOf(parsedCommand(program))) ?? [plants], widthFor(io)))
  }
}

/** Refuses a command line without a command, or with an unknown one, for which commander would show the help of the program. */
async function checkHelp(code: string, argv: string[], program: Command): Promise<void> {
  const [word] = program.parseOptions(argv).operands
  if (word === undefined && code === 'commander.help') throw malformed('No command was given', 'See: plants --help')
  const names = subcommandsOf(program)
  if (word !== undefined && !names.includes(word)) throw await unknownCommand(word, names, '')
}

function addCommands(parent: Command, { commands = [] }: CommandDefinition, io: Io): void {
  // Of those that are not loaded, only what the help lists is known.
  for (const definition of commands.filter(({ run, commands: below }) => run ?? below)) {
    const { run } = definition
    const command = parent.command(definition.name)
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
  parent.command('help [command...]').action((words: string[]) => writeHelp([...path, ...words], io))
}

/** Not by `.choices()`: its error names neither the option nor the value in a field. */
function addOption(command: Command, { flags, description, choices, parse: given, conflicts, default: text }: OptionDefinition): void {
  const option = command.createOption(flags, description)
  const flag = option.long ?? flags
  const read = given ?? (choices && ((name: string, value: string) => parseChoice(name, value, choices)))
  if (read) option.argParser((value: string) => read(flag, value))
  if (text !== undefined) option.default(read ? read(flag, text) : text, text)
  if (conflicts) option.conflicts(conflicts)
  command.addOption(option)
}

/** Refuses `--name --tag x`, where commander would take `--tag` for the name. */
function refuseOptionsAsValues(argv: string[], program: Command): void {
  const commands = [program, ...program.commands.flatMap((command) => [command, ...command.commands])]
  const takesValue = new Set(commands.flatMap((command) => command.options.flatMap((option) => (option.required && option.long) || [])))
  const end = argv.indexOf('--')
  const index = argv.findIndex((argument, at) => takesValue.has(argument) && /^-[^\d.]/.test(argv[at + 1] ?? '') && (end < 0 || at < end))
  if (index < 0) return
  const next = (argv[index + 1] ?? '').replace(/(?<=^--[^=]*)=.*/s, '')
  const hint = `For a value that begins with a dash: ${argv[index]}=${shellWord(next)}`
  throw malformed(`${argv[index]} needs a value, but ${next} follows`, hint)
}

/** Prints the version; as JSON also of what the program runs on. */
async function writeVersion(output: string | undefined, io: Io): Promise<void> {
  if (output === undefined || parseOutput('--output', output) === 'text') return writeAnswer(io, `${version}\n`)
  const { bun, node } = process.versions
  const driver = import('../../platform/sqlite.js').then(({ describeDriver }) => describeDriver())
  const sqlite = await driver.catch((error: unknown) => {
    if (!(error instanceof PlantsError)) throw error // the version is printed also where no store can be opened
  })
  const platform = `${process.platform}-${process.arch}`
  const runtime = bun === undefined ? `node ${node}` : `bun ${bun}`
  await writeAnswer(io, `${toJson({ version, runtime, sqlite: sqlite?.version, driver: sqlite?.driver, platform })}\n`)
}
